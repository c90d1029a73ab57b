"""Probes beside the load of a run: counted apart, and no part of its numbers."""

import pytest

import loadgen
from loadgen.engines.sim.http1 import Request, whole
from loadgen.testing.replies import models
from tests.helpers.response_bytes import answer, streamed
from tests.helpers.scripted_server import chatting, serving

SMALL = loadgen.RunSettings(
    engine="sim", request_rate=50, num_prompts=50, random_input_len=8, random_output_len=3
)


async def test_probes_are_sent_beside_the_load_and_counted_apart(tmp_path) -> None:
    records = tmp_path / "records.jsonl"
    result = await loadgen.run(SMALL.replace(probe_request_rate=20.0, records=str(records)))
    assert result.numbers.completed == 50
    assert result.numbers.total_output_tokens == 150
    assert 2 <= result.numbers.probe_completed <= 30
    assert result.numbers.probe_failed == 0
    assert 0 < result.numbers.probe_median_e2el_ms <= result.numbers.probe_max_e2el_ms
    assert loadgen.from_records(records).numbers.probe_completed == result.numbers.probe_completed
    assert [check.ok for check in result.checks if check.name == "other clients"] == [True]


@pytest.mark.parametrize("status", [200, 500])
async def test_a_probe_asks_for_one_token_of_its_own_prompt(tmp_path, status: int) -> None:
    asked: list[bytes] = []

    def reply(request: Request) -> bytes:
        if b'"Hi"' in request.body:
            asked.append(request.body)
            return whole(status, models("m")) if status != 200 else streamed(answer("Hello"))
        return streamed(answer("Hello", " world"))

    path = tmp_path / "prompts.jsonl"
    path.write_text('{"prompt": "One", "output_tokens": 2}\n')
    settings = loadgen.RunSettings(
        backend="openai-chat", tokenizer="none", dataset_name="jsonl", num_prompts=1
    )
    async with serving(chatting(reply)) as url:
        target = settings.replace(base_url=url, dataset_path=str(path), probe_request_rate=100.0)
        result = await loadgen.run(target)
    assert b'"max_completion_tokens":1' in asked[0]
    assert result.numbers.completed == 1
    asked_for = (result.numbers.probe_completed, result.numbers.probe_failed)
    assert asked_for == ((len(asked), 0) if status == 200 else (0, len(asked)))


async def test_a_rate_that_is_none_is_refused() -> None:
    with pytest.raises(loadgen.BadInput, match="probe_request_rate: -1"):
        await loadgen.run(SMALL.replace(probe_request_rate=-1.0))
