"""As the load is raised, a check turns red before the error per token leaves its bound."""

from collections.abc import Callable

import pytest

import loadgen
from loadgen.checks import Verdict
from loadgen.testing.process import Process
from tests.qa.accuracy.judging import PLAN, judge, red
from tests.qa.accuracy.measuring import Watch, compared, measured

SECONDS = 4.0
ATTEMPTS = 3
RATES = (2_000, 4_000, 8_000, 12_000, 16_000, 20_000, 24_000)
MIN_RATE = 4_000

pytestmark = pytest.mark.accuracy


@pytest.mark.parametrize("events", [25_000, 50_000, 75_000, 100_000, 150_000])
async def test_run_with_inaccurate_stamps_is_not_valid(
    metronome: Process, row: Callable[..., None], events: int
) -> None:
    tokens = 50
    run = await compared(metronome, tokens=tokens, plan=PLAN, request_rate=events / tokens, duration=SECONDS)
    judge(row, f"{events:,} tokens/s", run)


async def test_how_much_load_one_process_can_make(roofline: Process, row: Callable[..., None]) -> None:
    watch = Watch(roofline)
    highest, busy, why = 0, 0.0, "no higher rate was tried"
    for rate in RATES:
        result = await valid_if_possible(roofline, rate, watch.quietest)
        if result.verdict is not Verdict.VALID:
            why = f"{red(result)} at {rate:,}"
            break
        highest, busy = rate, result.data["loadgen"]["client"]["busy_share"]
    told = f"VALID up to {highest:,} req/s, loop {busy:.0%} busy; {why}"
    row("1 token, answered at once", told, f">= {MIN_RATE:,} req/s", highest >= MIN_RATE, watch.end())


async def valid_if_possible(server: Process, rate: int, processor: int) -> loadgen.Result:
    """A run at a rate: the first VALID one of a few, else the last."""
    settings = loadgen.RunSettings(base_url=server.url, backend="openai-chat", request_rate=rate, duration=SECONDS)
    left = ATTEMPTS
    while True:
        left -= 1
        result = await measured(server, settings, 1, processor)
        if result.verdict is Verdict.VALID or not left:
            return result
