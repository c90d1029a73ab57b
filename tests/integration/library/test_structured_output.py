"""Requests with JSON schemas end to end: answers are judged after the run, and the records keep
what was found.
"""

import json
from pathlib import Path

import pytest

import loadgen
from loadgen.engines.sim.http1 import Request
from tests.helpers.command_line import TOKENIZER
from tests.helpers.command_line import loadgen as command
from tests.helpers.response_bytes import answer, streamed
from tests.helpers.scripted_server import chatting, serving

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
FORM = {
    "response_format": {"type": "json_schema", "json_schema": {"name": "number", "schema": SCHEMA}}
}
ANSWERS = ('{"n": 1}', '{"n": "one"}', "one")


def reply(ask: Request) -> bytes:
    """Answers in turn with what matches the schema, what violates it, and text; with text where
    none is asked for.
    """
    if "response_format" not in ask.json:
        return streamed(answer("a text"))
    text = ANSWERS[int(ask.json["messages"][0]["content"]) % 3]
    return streamed(answer(text[:3], text[3:]))


@pytest.mark.parametrize("workers", [1, 2])
async def test_answers_are_judged_by_the_schemas_of_their_rows(
    tmp_path: Path, workers: int
) -> None:
    rows = [{"prompt": str(number), "output_tokens": 4} for number in range(12)]
    rows = [row | {"extra_body": FORM} for row in rows[:9]] + rows[9:]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = loadgen.RunSettings(
        backend="openai-chat",
        tokenizer=TOKENIZER,
        dataset_name="jsonl",
        dataset_path=str(tmp_path / "rows.jsonl"),
        num_prompts=12,
        request_rate=200,
        workers=workers,
        records=str(tmp_path / "records.jsonl"),
    )
    async with serving(chatting(reply)) as url:
        result = await loadgen.run(settings.replace(base_url=url))
    found = result.structured_output
    assert found is not None
    assert (found.answers, found.json, found.checked, found.matching) == (9, 6, 6, 3)
    assert result.data["loadgen"]["provenance"]["prompts"]["structured"] == 9
    line = "Structured output: 6 of 9 answers are JSON, 3 of 6 match their schema"
    assert line in command("report", "--full", str(tmp_path / "records.jsonl")).stdout


async def test_a_run_that_asks_for_no_json_has_no_such_figures() -> None:
    settings = loadgen.RunSettings(
        backend="openai-chat", tokenizer=TOKENIZER, num_prompts=3, random_input_len=4
    )
    async with serving(chatting(reply)) as url:
        result = await loadgen.run(settings.replace(base_url=url))
    assert result.structured_output is None
