"""Judging: a run keeps its bounds, or it is not VALID, whatever the cause."""

from collections.abc import Callable

import numpy as np

import loadgen
from loadgen.checks import Verdict
from tests.qa.accuracy.measuring import Run, ms

MEDIAN_NS, P99_NS = 200_000, 500_000
# Stalls of the loop are held against a tenth of the gap: that has to be less than the bound, if one is to be red first.
PLAN = {"first_ms": 20.0, "gap_ms": 4.0}
BOUND = "median <= 0.2 ms and p99 <= 0.5 ms, or not VALID"


def red(result: loadgen.Result) -> str:
    """The names of the checks that failed."""
    return ", ".join(check["name"] for check in result.data["loadgen"]["checks"] if check["ok"] is False)


def judge(row: Callable[..., None], load: str, run: Run) -> None:
    """Add the row of a run."""
    median, p99 = np.percentile(run.errors_ns, (50, 99))
    assert run.errors_ns.min() >= 0
    told = f"median {ms(median)}, p99 {ms(p99)}; {run.result.verdict}: {red(run.result) or 'no check is red'}"
    exact = median <= MEDIAN_NS and p99 <= P99_NS
    row(load, told, BOUND, exact or run.result.verdict is not Verdict.VALID)
