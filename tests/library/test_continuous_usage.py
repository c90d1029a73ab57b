"""--continuous-usage: usage with every event where the server gives it, and no harm where it does not."""

import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from aiohttp import web

import loadgen
from tests.wire.bytes_of import DONE, event

SETTINGS = loadgen.RunSettings(backend="openai-chat", num_prompts=3, request_rate=100, continuous_usage=True)


class Mine:
    def prompts(self, count: int) -> Iterator[loadgen.Prompt]:
        return iter([loadgen.Prompt("Hello", 1, 5, "mine")] * count)

    def provenance(self) -> dict[str, Any]:
        return {"name": "mine"}


@contextlib.asynccontextmanager
async def server(*, knows: bool) -> AsyncIterator[tuple[str, list[dict[str, Any]]]]:
    """A server that counts tokens in every event if asked to, or refuses to be asked; and the bodies it was sent."""
    asked: list[dict[str, Any]] = []

    async def models(request: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "m"}]})

    async def chat(request: web.Request) -> web.Response:
        asked.append(await request.json())
        each = "continuous_usage_stats" in asked[-1]["stream_options"]
        if each and not knows:
            return web.json_response({"error": "continuous_usage_stats: unknown"}, status=400)
        counts = [{"usage": {"prompt_tokens": 1, "completion_tokens": n}} if each else {} for n in (2, 5)]
        body = event(choices=[{"index": 0, "delta": {"content": "a b"}}], **counts[0])
        body += event(choices=[{"index": 0, "delta": {"content": "c d e"}, "finish_reason": "stop"}], **counts[1])
        body += event(choices=[], usage={"prompt_tokens": 1, "completion_tokens": 5}) + DONE
        return web.Response(body=body, content_type="text/event-stream")

    app = web.Application()
    app.add_routes([web.get("/v1/models", models), web.post("/v1/chat/completions", chat)])
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", asked
    finally:
        await runner.cleanup()


async def test_each_event_has_its_tokens_where_the_server_counts_them() -> None:
    async with server(knows=True) as (url, asked):
        result = await loadgen.run(SETTINGS.replace(base_url=url), dataset=Mine())
    own = result.data["loadgen"]
    assert own["tokens"]["itl_counted_by"] == "usage"
    assert own["tokens"]["imputed_gaps"] == 9  # three in each of three answers
    assert own["provenance"]["settings"]["continuous_usage"] is True
    assert len(asked) == 4  # one to see whether the server takes it
    assert "\nITL  " in str(result)


async def test_a_server_that_refuses_it_is_asked_without() -> None:
    async with server(knows=False) as (url, asked):
        result = await loadgen.run(SETTINGS.replace(base_url=url), dataset=Mine())
    own = result.data["loadgen"]
    assert result.data["completed"] == 3
    assert own["tokens"]["itl_counted_by"] == "events"
    assert own["provenance"]["engine"]["continuous_usage"] == "refused"
    assert own["provenance"]["settings"]["continuous_usage"] is False
    assert own["provenance"]["asked"]["continuous_usage"] is True
    assert ["continuous_usage_stats" in json.dumps(body) for body in asked] == [True, False, False, False]
