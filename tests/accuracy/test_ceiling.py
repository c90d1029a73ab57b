"""Ceiling: as the load is raised, a check turns red before the error per token leaves its bound."""

from collections.abc import Callable

import numpy as np
import pytest

import loadgen
from loadgen.checks import Verdict
from loadgen.measurer import Worker
from loadgen.testing.process import Process
from tests.accuracy.measuring import Short, Watch, measured, ms

MEDIAN_NS, P99_NS = 200_000, 500_000
SECONDS = 4.0
ATTEMPTS = 3
RATES = (2_000, 4_000, 8_000, 12_000, 16_000, 20_000, 24_000)
LEAST_RATE = 4_000

pytestmark = pytest.mark.accuracy


def red(result: loadgen.Result) -> str:
    """The names of the checks that failed."""
    return ", ".join(check["name"] for check in result.data["loadgen"]["checks"] if check["ok"] is False)


@pytest.mark.parametrize("events", [25_000, 50_000, 75_000, 100_000, 150_000])
async def test_no_run_is_valid_whose_stamps_are_not(metronome: Process, row: Callable[..., None], events: int) -> None:
    tokens = 50
    plan = {"first_ms": 20.0, "gap_ms": 20.0}
    run = await measured(metronome, tokens=tokens, plan=plan, request_rate=events / tokens, duration=SECONDS)
    median, p99 = np.percentile(run.errors_ns, (50, 99))
    exact = median <= MEDIAN_NS and p99 <= P99_NS
    told = f"median {ms(median)}, p99 {ms(p99)}; {run.result.verdict}: {red(run.result) or 'no check is red'}"
    bound = "median <= 0.2 ms and p99 <= 0.5 ms, or not VALID"
    # Whatever the cause, others included: a run that is wrong must not be called right.
    row(f"{events:,} tokens/s", told, bound, exact or run.result.verdict is not Verdict.VALID)


async def test_how_much_load_one_process_can_make(roofline: Process, row: Callable[..., None]) -> None:
    watch = Watch(roofline)
    highest, busy, why = 0, 0.0, "no higher rate was tried"
    for rate in RATES:
        result = await valid_if_possible(roofline, rate)
        if result.verdict is not Verdict.VALID:
            why = f"{red(result)} at {rate:,}"
            break
        highest, busy = rate, result.data["loadgen"]["client"]["busy_share"]
    told = f"VALID up to {highest:,} req/s, loop {busy:.0%} busy; {why}"
    row("1 token, answered at once", told, f">= {LEAST_RATE:,} req/s", highest >= LEAST_RATE, watch.end())


async def valid_if_possible(server: Process, rate: int) -> loadgen.Result:
    """A run at a rate: the first VALID one of a few, else the last."""
    settings = loadgen.RunSettings(base_url=server.url, backend="openai-chat", request_rate=rate, duration=SECONDS)
    left = ATTEMPTS
    while True:
        left -= 1
        async with Worker() as worker:
            result = await loadgen.run(settings, dataset=Short(1), measurer=worker)
        if result.verdict is Verdict.VALID or not left:
            return result
