"""Tokens counted by the run's tokenizer after the run, if the server's counts do not suffice."""

import json
import re
from pathlib import Path

import pytest

import loadgen
from loadgen import report
from tests.helpers.command_line import TOKENIZER
from tests.helpers.repeated import Repeated
from tests.helpers.response_bytes import DONE, answer, delta, streamed, usage
from tests.helpers.scripted_server import Script, chatting, serving

SETTINGS = loadgen.RunSettings(
    backend="openai-chat", num_prompts=4, request_rate=100, tokenizer=TOKENIZER
)


MINE = Repeated(loadgen.Prompt("Hello", 1, 5, "mine"))
# Usage was asked, and is not told; two words are in one event and three in the next.
UNCOUNTED = chatting(lambda ask: streamed(answer("badu kemo", " badu kemo badu")))


async def test_tokens_are_counted_by_the_tokenizer_and_said_to_be() -> None:
    async with serving(UNCOUNTED) as url:
        result = await loadgen.run(SETTINGS.replace(base_url=url), dataset=MINE)
    tokens = result.data["loadgen"]["tokens"]
    assert (tokens["output_counted_by"], tokens["itl_counted_by"]) == ("tokenizer", "events")
    assert result.data["total_output_tokens"] == 20
    assert re.search(r"output, counted by tokenizer +20\n", report.render(result))


async def test_records_remember_what_the_tokenizer_counted(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    async with serving(UNCOUNTED) as url:
        result = await loadgen.run(SETTINGS.replace(base_url=url, records=str(path)), dataset=MINE)
    assert len(path.read_text().splitlines()) == 1 + 4 + 1
    assert report.render(loadgen.from_records(path)) == report.render(result)


async def test_without_a_tokenizer_events_are_counted() -> None:
    async with serving(UNCOUNTED) as url:
        result = await loadgen.run(
            SETTINGS.replace(base_url=url, tokenizer="/no/such/file"), dataset=MINE
        )
    assert result.data["loadgen"]["tokens"]["output_counted_by"] == "events"
    assert result.data["total_output_tokens"] == 8
    assert json.dumps(result.data)


# -- servers that count tokens which they never stream

WORDS = (" badu", " kemo", " badu", " kemo", " badu")


def gateway(counted: int) -> Script:
    """A server of five words, each in an event, of which usage counts so many tokens."""
    events = [*(delta(content=text) for text in WORDS), delta("stop")]
    counts = usage(prompt_tokens=1, completion_tokens=counted)
    return chatting(lambda ask: streamed(b"".join([*events, counts, DONE])))


@pytest.mark.parametrize("workers", [1, 2])
async def test_hidden_tokens_are_in_no_tpot_and_named(tmp_path: Path, workers: int) -> None:
    path = tmp_path / "records.jsonl"
    settings = SETTINGS.replace(records=str(path), workers=workers, goodput=("tpot:100",))
    async with serving(gateway(505)) as url:
        result = await loadgen.run(settings.replace(base_url=url), dataset=MINE)
    own = result.data["loadgen"]
    assert own["tokens"]["text_sample"] == {
        "answers": 4,
        "counted": 505,
        "streamed": 5,
        "difference": 500,
    }
    assert own["tokens"]["tpot_over"] == "streamed tokens of a sample"
    assert (result.data["total_output_tokens"], own["tokens"]["decode_tokens"]) == (4 * 505, 4 * 4)
    assert own["rates"]["goodput_requests_per_s"] is None
    assert loadgen.from_records(path).data["loadgen"]["tokens"] == own["tokens"]
    assert report.render(loadgen.from_records(path)) == report.render(result)


@pytest.mark.parametrize("counted", [5, 13])
async def test_a_few_tokens_that_no_text_shows_stay_a_count(counted: int) -> None:
    async with serving(gateway(counted)) as url:
        result = await loadgen.run(SETTINGS.replace(base_url=url), dataset=MINE)
    tokens = result.data["loadgen"]["tokens"]
    assert (tokens["tpot_over"], tokens["text_sample"]) == ("tokens counted", None)
    assert (tokens["unseen_tokens"], tokens["decode_tokens"]) == (
        4 * (counted - 5),
        4 * (counted - 1),
    )


async def test_bundles_are_no_hidden_tokens() -> None:
    words = " badu" * 20
    events = (
        delta(content=words) + delta(content=words) + delta("stop") + usage(completion_tokens=40)
    )
    async with serving(chatting(lambda ask: streamed(events + DONE))) as url:
        result = await loadgen.run(SETTINGS.replace(base_url=url), dataset=MINE)
    tokens = result.data["loadgen"]["tokens"]
    assert tokens["text_sample"] == {"answers": 4, "counted": 40, "streamed": 40, "difference": 0}
    assert tokens["tpot_over"] == "tokens counted"


async def test_hidden_tokens_are_not_checked_without_a_tokenizer() -> None:
    async with serving(gateway(505)) as url:
        result = await loadgen.run(
            SETTINGS.replace(base_url=url, tokenizer="/no/such/file"), dataset=MINE
        )
    tokens = result.data["loadgen"]["tokens"]
    assert (tokens["tpot_over"], tokens["text_sample"]) == ("tokens counted", None)
