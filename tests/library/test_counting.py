"""A server that counts no tokens: the run's tokenizer does, once the run is over."""

import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from aiohttp import web

import loadgen
from tests.commands.calling import TOKENIZER
from tests.wire.bytes_of import answer

SETTINGS = loadgen.RunSettings(backend="openai-chat", num_prompts=4, request_rate=100, tokenizer=TOKENIZER)


class Mine:
    def prompts(self, count: int) -> Iterator[loadgen.Prompt]:
        return iter([loadgen.Prompt("Hello", 1, 5, "mine")] * count)

    def provenance(self) -> dict[str, Any]:
        return {"name": "mine"}


@contextlib.asynccontextmanager
async def server() -> AsyncIterator[str]:
    """A server that ignores that usage was asked, and puts two words into an event and three into the next."""

    async def models(request: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "m"}]})

    async def chat(request: web.Request) -> web.Response:
        return web.Response(body=answer("badu kemo", " badu kemo badu"), content_type="text/event-stream")

    app = web.Application()
    app.add_routes([web.get("/v1/models", models), web.post("/v1/chat/completions", chat)])
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def test_tokens_are_counted_by_the_tokenizer_and_said_to_be() -> None:
    async with server() as url:
        result = await loadgen.run(SETTINGS.replace(base_url=url), dataset=Mine())
    tokens = result.data["loadgen"]["tokens"]
    assert (tokens["output_counted_by"], tokens["itl_counted_by"]) == ("tokenizer", "events")
    assert result.data["total_output_tokens"] == 20
    assert "Output tokens counted by tokenizer: 20" in str(result)


async def test_records_remember_what_the_tokenizer_counted(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    async with server() as url:
        result = await loadgen.run(SETTINGS.replace(base_url=url, records=str(path)), dataset=Mine())
    assert len(path.read_text().splitlines()) == 1 + 4 + 1
    assert str(loadgen.from_records(path)) == str(result)


async def test_without_a_tokenizer_events_are_counted() -> None:
    async with server() as url:
        result = await loadgen.run(SETTINGS.replace(base_url=url, tokenizer="/no/such/file"), dataset=Mine())
    assert result.data["loadgen"]["tokens"]["output_counted_by"] == "events"
    assert result.data["total_output_tokens"] == 8
    assert json.dumps(result.data)
