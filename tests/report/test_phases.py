"""Each phase of a rate profile has the figures of the requests that were due in it, and the time
to recover.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from loadgen.config.settings import RunSettings
from loadgen.core.record import Record
from loadgen.report.result import RunResult
from loadgen.report.result.request_groups import PhaseResult
from loadgen.report.sections import groups
from loadgen.workload.arrivals import Schedule
from tests.helpers.console_lines import cells, printed
from tests.helpers.run_facts import failed, run_data, steady

QUIET_BURST_QUIET = "2@10s,10@10s,2@10s"


def found(
    records: Sequence[Record], due_ms: Sequence[float], profile: str = QUIET_BURST_QUIET
) -> list[PhaseResult]:
    settings = RunSettings(rate_profile=profile).implied()
    schedule = Schedule.of(np.array(due_ms, dtype=np.int64) * 1_000_000, 30 * 10**9)
    return PhaseResult.each(run_data(records, settings, schedule))


def burst_of(ttft_ms: float) -> tuple[list[Record], list[float]]:
    """2 req/s of 1 s, then 10 of `ttft_ms` and more, then 2 of 1 s again."""
    due = [500.0 * i for i in range(20)] + [10_000 + 100.0 * i for i in range(100)]
    due += [20_000 + 500.0 * i for i in range(20)]
    waits = [1_000.0] * 20 + [ttft_ms] * 100 + [1_000.0] * 20
    records = [
        steady(i, due=at, ttft=wait, n=1)
        for i, (at, wait) in enumerate(zip(due, waits, strict=True))
    ]
    return records, due


def test_a_request_belongs_to_the_phase_in_which_it_was_due() -> None:
    records, due = burst_of(3_000)
    before, burst, after = found(records, due)
    assert [phase.load for phase in (before, burst, after)] == ["2@10s", "10@10s", "2@10s"]
    assert [(phase.start_s, phase.end_s) for phase in (before, burst, after)] == [
        (0, 10),
        (10, 20),
        (20, 30),
    ]
    assert [(phase.due, phase.requests, phase.ok) for phase in (before, burst, after)] == [
        (20, 20, 20),
        (100, 100, 100),
        (20, 20, 20),
    ]
    assert [phase.ttft_ms.p50 for phase in (before, burst, after)] == pytest.approx(
        [1_000, 3_000, 1_000]
    )


def test_rates_are_of_what_came_in_the_phase() -> None:
    records, due = burst_of(3_000)
    _, burst, after = found(records, due)
    # Two of before, and those due in its first 7 s.
    assert burst.answers_per_s == pytest.approx((2 + 70) / 10)
    assert after.answers_per_s == pytest.approx((30 + 18) / 10)
    assert burst.output_throughput == pytest.approx(7.2, rel=0.02)


def test_backlog_recovers_when_the_requests_of_the_burst_have_ended() -> None:
    records, due = burst_of(3_000)
    before, burst, after = found(records, due)
    assert (before.recovered_after_s, burst.recovered_after_s) == (None, None)
    # The last request of the burst is due 0.1 s before its end and takes 3 s.
    assert after.recovered_after_s == pytest.approx(2.9, abs=0.11)


def test_a_run_that_ends_before_it_has_recovered_says_nothing() -> None:
    due = [500.0 * i for i in range(20)] + [10_000 + 100.0 * i for i in range(100)]
    records = [steady(i, due=at, ttft=1_000, n=1) for i, at in enumerate(due[:20])]
    assert found(records, due)[2].recovered_after_s is None


def test_failed_requests_have_no_latency() -> None:
    records = [failed(0, due=0), steady(1, due=100, ttft=50, gap=10, n=3)]
    first, *_ = found(records, [0, 100])
    assert (first.requests, first.ok, first.failed) == (2, 1, 1)
    assert (first.ttft_ms.count, first.tpot_ms.mean) == (1, pytest.approx(10))


def test_a_phase_without_requests_is_shown_empty() -> None:
    _, _, last = found([steady(0, due=0, ttft=50, n=1)], [0])
    assert (last.requests, last.ttft_ms.p50, last.output_throughput) == (0, None, 0)


def test_a_run_without_a_profile_has_no_phases() -> None:
    assert PhaseResult.each(run_data([steady(0)])) == []


def shown(records: Sequence[Record], due: Sequence[float], **settings: Any) -> list[str]:
    asked = RunSettings(rate_profile=QUIET_BURST_QUIET, **settings).implied()
    schedule = Schedule.of(np.array(due, dtype=np.int64) * 1_000_000, 30 * 10**9)
    return printed(groups.blocks(RunResult.of(run_data(records, asked, schedule), [])))


def test_the_table_has_a_row_for_each_phase_and_tells_the_recovery() -> None:
    title, head, *rows, recovery = shown(*burst_of(3_000))
    assert title == "Phases of the load; latencies are p50 / p99 in ms from scheduled send"
    columns = ["phase", "requests", "ok", "failed", "ok/s", "tok/s", "TTFT", "TPOT", "E2EL"]
    assert cells(head) == columns
    assert [cells(row)[:4] for row in rows] == [
        ["2@10s", "20", "20", "0"],
        ["10@10s", "100", "100", "0"],
        ["2@10s", "20", "20", "0"],
    ]
    assert re.fullmatch(r"Backlog recovered 2\.[89] s after the burst \(phase 2@10s\)", recovery)


def test_answers_in_one_piece_have_e2el_alone() -> None:
    _, head, *_ = shown(*burst_of(3_000), disable_stream=True)
    assert cells(head)[-1] == "E2EL"
    assert not {"TTFT", "TPOT"} & {*cells(head)}
