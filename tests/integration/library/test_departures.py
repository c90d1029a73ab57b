"""Users who leave and users who come again, against the simulator: it stops, and it refuses."""

from pathlib import Path

import pytest

import loadgen
from loadgen.config.settings import RunSettings
from loadgen.core.outcome import Outcome
from loadgen.metrics.records.file import RecordFile
from loadgen.workload.draws import EarlyEndDraws

SMALL = loadgen.RunSettings(
    engine="sim", request_rate=100, num_prompts=60, random_input_len=8, random_output_len=40
)


def drawn(settings: RunSettings) -> set[int]:
    (draws,) = EarlyEndDraws.each(settings)
    return {index for index in range(60) if draws.drawn(index)}


@pytest.mark.parametrize("disconnect", ["30%@tokens=5", "30%@after=60ms"])
@pytest.mark.parametrize("workers", [1, 2])
async def test_users_leave_and_the_server_stops(
    disconnect: str, workers: int, tmp_path: Path
) -> None:
    path = tmp_path / "run.jsonl"
    settings = SMALL.replace(disconnect=disconnect, workers=workers, records=str(path))
    result = await loadgen.run(settings)
    left = {record.index for record in RecordFile(path) if record.outcome is Outcome.DISCONNECTED}
    assert left == drawn(settings)
    own = result.data["loadgen"]
    assert own["outcomes"] == {"disconnected": len(left), "ok": 60 - len(left)}
    assert (own["error_rate"], result.data["failed"]) == (0.0, 0)
    assert (own["departures"]["drawn"], own["departures"]["disconnected"]) == (len(left), len(left))
    server = own["departures"]["server"]
    assert (server["stopped"], server["aborted"], server["unfinished"]) == (True, len(left), 0)
    assert loadgen.from_records(path).data["loadgen"]["departures"] == own["departures"]
    accounting = [check for check in own["checks"] if check["group"] == "A"]
    assert [check["name"] for check in accounting if check["ok"] is False] == []


async def test_a_server_that_refuses_is_asked_again(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    settings = SMALL.replace(
        request_rate=float("inf"),
        num_prompts=24,
        engine="sim",
        engine_arg=("--max-concurrent-requests=8",),
        retry="429@attempts=5",
        records=str(path),
    )
    result = await loadgen.run(settings)
    own = result.data["loadgen"]
    assert own["outcomes"] == {"ok": 24}
    retries = own["retries"]
    assert (retries["requests"], retries["ok"], retries["first_refusals"]) == (
        16,
        16,
        {"status(429)": 16},
    )
    again = [record for record in RecordFile(path) if record.attempts > 1]
    assert retries["attempts"] == 24 + sum(record.attempts - 1 for record in again)
    assert {record.first_status for record in again} == {429}
    for record in again:
        assert record.due <= record.first_sent < record.first_closed
        assert record.sent - record.first_closed >= 10**9, "Retry-After: 1"
    assert own["latency_ms"]["ttft_due"]["max"] >= 1000 > own["latency_ms"]["ttft_sent"]["max"]
    assert loadgen.from_records(path).data["loadgen"]["retries"] == retries


async def test_without_retries_a_refusal_is_a_failure() -> None:
    settings = SMALL.replace(request_rate=float("inf"), num_prompts=24, engine="sim")
    result = await loadgen.run(settings.replace(engine_arg=("--max-concurrent-requests=8",)))
    assert result.data["loadgen"]["outcomes"] == {"ok": 8, "status(429)": 16}
    assert result.data["loadgen"]["retries"] is None
