"""Classes of requests from a library call: each is asked and measured apart, and the records
reproduce it.
"""

from collections import Counter
from pathlib import Path

import orjson
import pytest

import loadgen
from loadgen import report
from loadgen.engines.sim.http1 import Request
from loadgen.metrics.records.file import RecordFile
from tests.helpers.repeated import Repeated
from tests.helpers.response_bytes import answer, streamed
from tests.helpers.scripted_server import chatting, serving
from tests.helpers.sim_server import simulated

MINE = Repeated(loadgen.Prompt("one two three", 3, 2, "mine"))
CHAT = (
    "chat:rate=150,priority=-1,random_input_len=20,random_output_len=4,"
    "slo=ttft_p99<30s,goodput=ttft:30000"
)
BATCH = "batch:rate=50,priority=3,random_input_len=90,random_output_len=9,goodput=e2el:0.001"


@pytest.mark.parametrize("workers", [1, 2])
async def test_each_class_has_its_prompts_and_its_figures(workers: int, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with simulated(scheduling_policy="priority", step_base_ms=1) as server:
        settings = loadgen.RunSettings(
            base_url=server.base_url,
            classes=(CHAT, BATCH),
            num_prompts=80,
            workers=workers,
            records=str(path),
        )
        result = await loadgen.run(settings)
    chat, batch = result.classes
    assert chat.ok + batch.ok == result.numbers.completed == 80
    assert (chat.output_tokens, batch.output_tokens) == (4 * chat.ok, 9 * batch.ok)
    assert (chat.good_share, batch.good_share) == (1.0, 0.0)
    assert [(row.limit, row.met) for row in result.slo] == [("chat:ttft_p99<30s", True)]
    records = list(RecordFile(path))
    assert {(record.class_number, record.prompt_tokens) for record in records} == {(0, 20), (1, 90)}
    lines = map(orjson.loads, path.read_bytes().splitlines()[1:-1])
    assert Counter(line["class"] for line in lines) == {
        "chat": chat.requests,
        "batch": batch.requests,
    }
    saved = loadgen.from_records(path)
    assert saved.data["loadgen"]["classes"] == result.data["loadgen"]["classes"]
    assert report.render(saved) == report.render(result)


async def test_requests_of_a_class_have_its_headers_model_and_priority() -> None:
    asked: list[tuple[str | None, str, int]] = []

    def reply(request: Request) -> bytes:
        asked.append(
            (request.headers.get("x-tenant"), request.json["model"], request.json["priority"])
        )
        return streamed(answer("a", "b"))

    classes = {
        "gold": {"priority": -5, "headers": "X-Tenant=gold"},
        "iron": {"priority": 0, "model": "small"},
    }
    async with serving(chatting(reply, listed=["m", "small"])) as url:
        result = await loadgen.run(
            loadgen.RunSettings(
                base_url=url,
                backend="openai-chat",
                classes=classes,
                num_prompts=40,
                preflight=False,
            ),
            dataset=MINE,
        )
    assert set(asked) == {("gold", "m", -5), (None, "small", 0)}
    gold, iron = result.classes
    counts = Counter(tenant for tenant, _, _ in asked)
    assert (counts["gold"], counts[None]) == (gold.ok, iron.ok)


async def test_a_simulator_of_the_run_has_its_priorities_and_adapters() -> None:
    result = await loadgen.run(
        loadgen.RunSettings(
            engine="sim",
            classes=("a:priority=2", "b:model=sql"),
            num_prompts=20,
            request_rate=200.0,
        )
    )
    assert result.outcomes == {"ok": 20}
    assert [one.model for one in result.classes] == [None, "sql"]


async def test_a_closed_loop_of_a_duration_goes_on_with_the_classes() -> None:
    with simulated(step_base_ms=1, frontend_ms=0) as server:
        result = await loadgen.run(
            loadgen.RunSettings(
                base_url=server.base_url,
                classes=(
                    "short:share=0.9,random_output_len=1",
                    "long:share=0.1,random_output_len=2",
                ),
                max_concurrency=8,
                duration=1.0,
                random_input_len=5,
            )
        )
    short, long = result.classes
    assert short.requests + long.requests == result.numbers.completed
    assert (short.output_tokens, long.output_tokens) == (short.ok, 2 * long.ok)
    assert short.requests > long.requests > 0
