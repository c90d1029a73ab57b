"""A load that changes, against the simulator: several workers together have what is asked, and
phases have figures.
"""

from pathlib import Path

import pytest

import loadgen
from loadgen.cli import exit_codes

RUN = loadgen.RunSettings(engine="sim", random_input_len=32, random_output_len=16)


async def test_two_workers_share_a_concurrency_profile() -> None:
    result = await loadgen.run(RUN.replace(concurrency_profile="2@1s,6@1s,2@1s", workers=2))
    before, burst, after = result.data["loadgen"]["phases"]
    assert result.data["max_concurrent_requests"] == 6
    assert result.data["completed"] == sum(phase["ok"] for phase in (before, burst, after))
    assert burst["ok"] > before["ok"] > 0 < after["ok"]
    assert after["recovered_after_s"] is not None


async def test_two_workers_share_a_population_of_users() -> None:
    settings = RUN.replace(users=8, think_time="0.2:0.4", duration=3.0, workers=2)
    result = await loadgen.run(settings)
    # An answer takes 16 tokens of 8 ms and more, so that each user sends at most every 0.32 s.
    assert 8 <= result.data["completed"] <= 8 * 3 / 0.32 + 8
    assert result.data["max_concurrent_requests"] <= 8
    assert result.data["loadgen"]["closed_loop"]


@pytest.mark.parametrize("workers", [1, 2])
async def test_a_condition_ends_the_run_and_keeps_what_was_measured(
    workers: int, tmp_path: Path
) -> None:
    path = tmp_path / "records.jsonl"
    settings = RUN.replace(request_rate=40, duration=60.0, workers=workers, records=str(path))
    # An answer takes 16 tokens of 8 ms and more.
    result = await loadgen.run(settings.replace(stop_when="e2el_p50>10s,e2el_p50>50ms over 2s"))
    own = result.data["loadgen"]
    assert own["stopped"]["condition"] == "e2el_p50>50ms over 2s"
    assert 2 <= own["stopped"]["at_s"] < 30
    assert own["stopped"]["value"] > 50
    assert own["partial"].startswith("--stop-when e2el_p50>50ms over 2s: ")
    assert own["outcomes"]["ok"] == result.data["completed"] > 40
    assert own["cancelled"]["in_flight"] == 0
    assert own["cancelled"]["never_sent"] > 1000
    assert [check["ok"] for check in own["checks"] if check["name"] == "run cut short"] == [None]
    assert exit_codes.code(result, strict=False, interrupted=False) == exit_codes.STOPPED
    assert loadgen.from_records(path).data["loadgen"]["stopped"] == own["stopped"]
