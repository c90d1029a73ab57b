"""Coverage: the client error that a run claims is at least its true error, and hardly wider."""

import asyncio
import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
import uvloop

from bench.accuracy.conditions import alone, beside_hogs, limited, stopped
from bench.accuracy.judging import Claim, claims
from bench.accuracy.measuring import compared
from loadgen.testing.process import Process

RUNS = int(os.environ.get("LOADGEN_COVERAGE_RUNS", "250"))  # of each condition
MIN_COVERAGE, WIDTH, MIN_WIDTH_MS = 0.99, 3.0, 0.1
BOUND = (
    f"covers >= {MIN_COVERAGE:.0%}; in the median <= max({WIDTH:g} x the figure's true error, "
    f"{MIN_WIDTH_MS:g} ms)"
)
CONDITIONS = {
    "alone": alone,
    "a busy program on every core": beside_hogs,
    "a quota of 30% of a core, shared with a busy program": limited(0.3, neighbours=1),
    "stopped for 50 ms again and again": stopped,
}

pytestmark = pytest.mark.accuracy


def claims_of_a_run(metronome: Process) -> list[Claim]:
    """Measure for a second through the library."""
    plan = {"first_ms": 20.0, "gap_ms": 10.0}
    run = compared(metronome, tokens=20, plan=plan, worker=False, request_rate=100, duration=1.0)
    return claims(uvloop.run(run))


@pytest.mark.parametrize("load", CONDITIONS)
async def test_claimed_error_covers_the_truth(
    metronome: Process, row: Callable[..., None], load: str
) -> None:
    loop, fresh = asyncio.get_running_loop(), multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        1, fresh
    ) as client:  # one process for all runs, since a start takes as long as a run
        async with CONDITIONS[load](await loop.run_in_executor(client, os.getpid)):
            runs = [
                await loop.run_in_executor(client, claims_of_a_run, metronome) for _ in range(RUNS)
            ]
    found = [claim for figures in runs for claim in figures]
    share = sum(all(claim.holds for claim in figures) for figures in runs) / RUNS
    claimed, true = np.median([(claim.claimed_ms, claim.true_ms) for claim in found], axis=0)
    width = float(
        np.median([claim.claimed_ms / max(WIDTH * claim.true_ms, MIN_WIDTH_MS) for claim in found])
    )
    told = (
        f"covers {share:.1%} of {RUNS} runs; client error in the median {width:.0%} of what is "
        "allowed"
    )
    told += f" ({claimed:.3f} ms, true error {true:.3f} ms)"
    if missed := [claim for claim in found if not claim.holds]:
        told += f"; worst: {max(missed, key=lambda claim: claim.true_ms - claim.claimed_ms)}"
    row(load, told, BOUND, share >= MIN_COVERAGE and width <= 1)
