"""The steady state of a closed loop: its window, and its rates, none of which exceeds what is
possible.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from loadgen.config.settings import RunSettings
from loadgen.core.record import Record
from loadgen.report.result import RunResult
from loadgen.report.result.rates import SteadyState
from loadgen.workload.arrivals import Schedule
from tests.helpers.run_facts import failed, result, run_data, steady
from tests.helpers.saved_json import render

LOOP = RunSettings(max_concurrency=20)


def rounds(count: int, slots: int = 20) -> Iterator[Record]:
    """Requests of 20 tokens and 115 ms, 20 at a time, each sent when another ends."""
    for number in range(count * slots):
        yield steady(number, due=number // slots * 115, ttft=20, gap=5, n=20)


def state(records: Any, settings: RunSettings = LOOP, **options: Any) -> SteadyState | None:
    return SteadyState.of(run_data(list(records), settings, **options))


def known(records: Any, settings: RunSettings = LOOP, **options: Any) -> SteadyState:
    found = state(records, settings, **options)
    assert found is not None
    return found


def test_rates_of_a_full_loop_are_those_of_its_slots() -> None:
    found = known(rounds(100))
    assert (found.window.start_s, found.window.end_s, found.window.threshold_abs) == (0.0, 11.5, 19)
    # Those that end with the window are outside.
    assert found.request_throughput == pytest.approx(20 / 0.115, rel=0.011)
    assert found.output_throughput == pytest.approx(20 * 20 / 0.115, rel=0.001)
    assert found.output_throughput <= 20 * 20 / 0.115
    assert found.input_throughput == pytest.approx(20 * 10 / 0.115)
    assert found.total_token_throughput == found.output_throughput + (found.input_throughput or 0)


def test_ramp_and_tail_are_outside_the_window() -> None:
    ramp = [steady(number, due=number * 1000, ttft=20, gap=5, n=20) for number in range(5)]
    tail = [steady(5 + 400, due=5000 + 20 * 115 + 1000, ttft=20, gap=5, n=20)]
    full = [
        steady(5 + number, due=5000 + number // 20 * 115, ttft=20, gap=5, n=20)
        for number in range(400)
    ]
    found = known([*ramp, *full, *tail])
    assert (found.window.start_s, found.window.end_s) == (5.0, 7.3)
    assert (found.window.requests_started_in_window, found.window.requests_total) == (400, 406)
    assert found.output_throughput == pytest.approx(20 * 20 / 0.115, rel=0.01)


def test_latencies_are_those_of_the_requests_sent_in_the_window() -> None:
    slow = [steady(number, due=number * 1000, ttft=900, gap=1, n=2) for number in range(3)]
    full = [
        steady(3 + number, due=3000 + number // 20 * 115, ttft=20, gap=5, n=20)
        for number in range(200)
    ]
    found = known([*slow, *full])
    assert (found.mean_ttft_ms, found.median_ttft_ms) == (pytest.approx(20), pytest.approx(20))
    assert found.percentiles_ttft_ms == [(99.0, pytest.approx(20))]
    assert (found.mean_tpot_ms, found.p99_tpot_ms) == (pytest.approx(5), pytest.approx(5))
    assert (found.mean_e2el_ms, found.median_e2el_ms) == (pytest.approx(115), pytest.approx(115))
    assert found.percentiles_e2el_ms == [(99.0, pytest.approx(115))]


def test_answers_of_one_token_have_no_tpot() -> None:
    found = known(steady(number, due=number // 20 * 20, ttft=20, n=1) for number in range(200))
    assert (found.mean_tpot_ms, found.mean_ttft_ms) == (None, pytest.approx(20))


def test_tokens_of_failed_requests_do_not_count_and_their_slots_do() -> None:
    broken = [failed(2000 + number, due=0) for number in range(2)]
    found = known([*list(rounds(50, slots=18)), *broken], LOOP.replace(steady_state_threshold=0.9))
    assert found.output_throughput == pytest.approx(18 * 20 / 0.115, rel=0.002)
    assert found.window.observed_peak == 20


@pytest.mark.parametrize(
    ("limit", "warns"),
    [
        ({}, True),
        ({"steady_state_min_window": 1.0}, False),
        ({"steady_state_min_window": 3.0}, True),
    ],
)
def test_a_short_window_has_a_warning(limit: dict[str, float], warns: bool) -> None:
    found = known(rounds(20), LOOP.replace(**limit))
    assert (found.window.warning is not None) is warns


@pytest.mark.parametrize(
    ("changes", "schedule"),
    [
        ({"steady_state_threshold": 0.0}, None),
        ({"max_concurrency": None}, None),
        ({"max_concurrency": 40}, None),
        ({"request_rate": 100.0}, Schedule.burst(40)),
    ],
)
def test_runs_without_a_full_loop_have_none(
    changes: dict[str, Any], schedule: Schedule | None
) -> None:
    assert state(rounds(2), LOOP.replace(**changes), schedule=schedule) is None


def test_it_stands_in_the_result() -> None:
    data = result(list(rounds(20)), LOOP)
    assert data["steady_state"]["window"]["target_concurrency"] == 20
    assert RunResult.from_dict(data).to_dict()["steady_state"] == data["steady_state"]


def test_the_report_has_a_line_of_it() -> None:
    text = " ".join(render(result(list(rounds(20)), LOOP)).split())
    shown = (
        "Steady-state output throughput: 3469.57 tok/s (19 or more of 20 in flight, 2.3 s, "
        "shorter than 10 s: "
    )
    assert shown in text
    assert "; medians in ms: TTFT 20.00, TPOT 5.00, E2EL 115.00" in text
    assert "Steady output throughput" not in text
