"""The bench of rates has a row for every client at every rate; its figures are not tested."""

import shutil

import pytest

from bench.performance.clients import C_LIMIT, C_SAME_CALLS
from bench.performance.rates import LATE, Run, highest, measure, report
from tests.helpers.documents import cells_of


def ran(rate: int, verdict: str, *failed_checks: str) -> Run:
    result = {
        "verdict": verdict,
        "failed_checks": failed_checks,
        "cpu_s": 0.5,
        "wall_s": 2.0,
        "late_p50_ms": 0.1,
        "late_p99_ms": 0.4,
    }
    return Run(rate, "loadgen", result, 100.0, 3, 0.3)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_every_client_sends_all_requests_at_every_rate() -> None:
    runs = measure((100, 200), 0.2, 1)
    assert [(run.rate, run.client) for run in runs] == [
        (rate, client) for rate in (100, 200) for client in ("loadgen", C_LIMIT, C_SAME_CALLS)
    ]
    for run in runs:
        assert run.us_per_request > 0
        assert run.result["late_p99_ms"] >= run.result["late_p50_ms"]
        assert run.connections >= 0
    assert all(run.connections == 0 for run in runs if run.client != "loadgen")
    assert [row[0] for row in cells_of(report(runs, 0.2))] == 3 * ["100"] + 3 * ["200"]


def test_the_highest_rate_is_the_last_before_one_that_fails() -> None:
    assert highest({2_000: True, 5_000: True, 10_000: False, 20_000: True}) == "5,000 requests/s"
    assert highest({2_000: False, 5_000: True}) == "none of these"


def test_a_rate_is_valid_only_where_every_round_was() -> None:
    runs = [
        ran(2_000, "VALID"),
        ran(2_000, "VALID"),
        ran(5_000, "VALID"),
        ran(5_000, "SUSPECT", "other programs used the CPU"),
        ran(10_000, "INVALID", LATE, "load not sent"),
        ran(10_000, "SUSPECT", LATE),
    ]
    text = report(runs, 2.0)
    assert "at which loadgen was VALID in every round: 2,000 requests/s." in text
    assert "at which it sent in time in every round: 5,000 requests/s." in text
    rows = {row[0]: row[2] for row in cells_of(text)}
    assert rows == {
        "2,000": "2 VALID",
        "5,000": "1 VALID, 1 SUSPECT, other programs used the CPU",
        "10,000": f"1 INVALID, 1 SUSPECT, {LATE}, load not sent",
    }
