"""A server that counts no tokens: the run's tokenizer does, once the run is over."""

import json
from pathlib import Path

import loadgen
from tests.commands.calling import TOKENIZER
from tests.faults.servers import chatting, serving
from tests.repeated import Repeated
from tests.wire.bytes_of import answer, streamed

SETTINGS = loadgen.RunSettings(backend="openai-chat", num_prompts=4, request_rate=100, tokenizer=TOKENIZER)


MINE = Repeated(loadgen.Prompt("Hello", 1, 5, "mine"))
# Usage was asked, and is not told; two words are in one event and three in the next.
UNCOUNTED = chatting(lambda ask: streamed(answer("badu kemo", " badu kemo badu")))


async def test_tokens_are_counted_by_the_tokenizer_and_said_to_be() -> None:
    async with serving(UNCOUNTED) as url:
        result = await loadgen.run(SETTINGS.replace(base_url=url), dataset=MINE)
    tokens = result.data["loadgen"]["tokens"]
    assert (tokens["output_counted_by"], tokens["itl_counted_by"]) == ("tokenizer", "events")
    assert result.data["total_output_tokens"] == 20
    assert "Output tokens counted by tokenizer: 20" in str(result)


async def test_records_remember_what_the_tokenizer_counted(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    async with serving(UNCOUNTED) as url:
        result = await loadgen.run(SETTINGS.replace(base_url=url, records=str(path)), dataset=MINE)
    assert len(path.read_text().splitlines()) == 1 + 4 + 1
    assert str(loadgen.from_records(path)) == str(result)


async def test_without_a_tokenizer_events_are_counted() -> None:
    async with serving(UNCOUNTED) as url:
        result = await loadgen.run(SETTINGS.replace(base_url=url, tokenizer="/no/such/file"), dataset=MINE)
    assert result.data["loadgen"]["tokens"]["output_counted_by"] == "events"
    assert result.data["total_output_tokens"] == 8
    assert json.dumps(result.data)
