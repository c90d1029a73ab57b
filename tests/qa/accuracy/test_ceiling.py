"""Ceiling: as the load is raised, the printed figures stay as near to the truth as they claim."""

from collections.abc import Callable

import numpy as np
import pytest

import loadgen
from bench.accuracy.judging import PLAN, TOKENS_BOUND, claims, judge, stamps, verdict
from bench.accuracy.measuring import Run, Watch, compared, measured
from loadgen.checks import Verdict
from loadgen.testing.process import Process

SECONDS = 4.0
ATTEMPTS = 3
TOKENS = 50
STEPS = range(500, 6_000, 500)  # req/s
RATES = (2_000, 4_000, 8_000, 12_000, 16_000, 20_000, 24_000)
MIN_RATE = 4_000

pytestmark = pytest.mark.accuracy


async def run_at(metronome: Process, rate: float) -> Run:
    return await compared(metronome, tokens=TOKENS, plan=PLAN, request_rate=rate, duration=SECONDS)


def lateness(run: Run) -> str:
    """Say who could not keep up in a run; empty if both sides could."""
    if any(
        check.ok is False
        for check in run.result.checks
        if check.name in ("requests sent late", "rate off schedule")
    ):
        return "not sent on time"
    return "the server fell behind" if np.median(run.server_late_ns) > PLAN["gap_ms"] * 1e6 else ""


@pytest.mark.parametrize("events", [25_000, 50_000, 75_000, 100_000, 150_000])
async def test_loaded_client_is_as_exact_as_it_claims(
    metronome: Process, row: Callable[..., None], events: int
) -> None:
    judge(row, f"{events:,} tokens/s", await run_at(metronome, events / TOKENS))


async def test_highest_rate_that_is_sent_on_time(
    metronome: Process, row: Callable[..., None]
) -> None:
    watch, highest, highest_rate, late = Watch(metronome), None, 0, ""
    for rate in STEPS:
        for _ in range(ATTEMPTS):
            run = await run_at(metronome, rate)
            if not (late := lateness(run)):
                break
        if late:
            break
        highest, highest_rate = run, rate
    disturbance = watch.end()
    bound = f"TTFT, TPOT and E2EL VALID; {TOKENS_BOUND.format(100)}"
    if highest is None:
        row(
            "highest rate still sent on time",
            f"{late} at {rate:,} req/s",
            bound,
            False,
            disturbance,
        )
        return
    found, figures = stamps(highest), claims(highest)
    worst = max(
        (c for c in figures if c.name in ("ttft_due", "tpot", "e2el_due")),
        key=lambda claim: claim.excess,
    )
    gap = next(claim for claim in figures if (claim.name, claim.statistic) == ("icl", "p99"))
    told = (
        f"{highest_rate:,} req/s of {TOKENS} tokens, loop {highest.client['busy_share']:.0%} busy"
    )
    told += f" ({late} at {rate:,}); {found.measured};"
    told += f" TTFT, TPOT and E2EL within {worst.excess:.0%} of what is allowed ({worst});"
    told += f" p99 gap {'VALID' if gap.excess <= 1 else 'SUSPECT'} ({gap})"
    row(
        "highest rate still sent on time", told, bound, found.met and worst.excess <= 1, disturbance
    )


async def test_how_much_load_one_process_can_make(
    roofline: Process, row: Callable[..., None]
) -> None:
    watch = Watch(roofline)
    highest, busy, why = 0, 0.0, "no higher rate was tried"
    for rate in RATES:
        result = await valid_if_possible(roofline, rate, watch.quietest)
        if result.verdict is not Verdict.VALID:
            why = f"{verdict(result)} at {rate:,}"
            break
        highest, busy = rate, result.data["loadgen"]["client"]["busy_share"]
    told = f"VALID up to {highest:,} req/s, loop {busy:.0%} busy; {why}"
    row(
        "1 token, answered at once",
        told,
        f">= {MIN_RATE:,} req/s",
        highest >= MIN_RATE,
        watch.end(),
    )


async def valid_if_possible(server: Process, rate: int, processor: int) -> loadgen.Result:
    """A run at a rate: the first VALID one of a few, else the last."""
    settings = loadgen.RunSettings(
        base_url=server.url, backend="openai-chat", request_rate=rate, duration=SECONDS
    )
    left = ATTEMPTS
    while True:
        left -= 1
        result = await measured(server, settings, 1, processor=processor)
        if result.verdict is Verdict.VALID or not left:
            return result
