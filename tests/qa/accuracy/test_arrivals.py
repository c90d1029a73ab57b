"""Arrivals: requests reach the server when the schedule says, and as the process it was drawn
from.
"""

import math
from collections.abc import Callable

import numpy as np
import pytest

from bench.accuracy.measuring import Finding, Watch, best_of, compared, ms
from loadgen.core.outcome import Outcome
from loadgen.testing.process import Process

LAG_P99_NS = 500_000
# of distance * sqrt(n): one sample in a thousand from the right distribution is further away
KS_CRITICAL = 1.95
KS_GRID = (
    10.0  # less than half of what a grid of 1 ms makes of so many, but more than any delays do
)
KS_SAMPLES = 1_000
BOUND = f"lag p99 <= 0.5 ms; KS * sqrt(n) <= {KS_CRITICAL}"

full = pytest.mark.accuracy


def distance(uniform: "np.typing.NDArray[np.float64]") -> float:
    """The Kolmogorov-Smirnov distance of values from the uniform distribution on [0, 1], times
    sqrt(n).
    """
    values, n = np.sort(uniform), len(uniform)
    steps = np.arange(n + 1) / n
    return float(max(np.max(steps[1:] - values), np.max(values - steps[:-1]))) * math.sqrt(n)


@pytest.mark.parametrize(
    ("rate", "requests"),
    [
        pytest.param(100, 2_000, marks=full),
        pytest.param(500, 1_000),
        pytest.param(1_000, 10_000, marks=full),
        pytest.param(2_000, 20_000, marks=full),
        pytest.param(5_000, 50_000, marks=full),
    ],
)
async def test_requests_arrive_as_scheduled(
    metronome: Process, row: Callable[..., None], rate: int, requests: int
) -> None:
    async def attempt() -> Finding:
        plan, watch = {"first_ms": 5.0}, Watch(metronome)
        run = await compared(
            metronome,
            tokens=1,
            plan=plan,
            processor=watch.quietest,
            request_rate=rate,
            num_prompts=requests,
        )
        disturbance = watch.end()
        outcomes = run.result.data["loadgen"]["outcomes"]
        assert set(outcomes) <= {Outcome.OK.value, Outcome.CLIENT_ERROR.value}
        if len(run.records) < requests:  # so far behind that no file is left for another connection
            return Finding(
                f"{len(run.records):,} of {requests:,} requests sent", False, disturbance
            )
        assert np.all(run.arrival_ns > run.due_ns), "a request came before it was due"
        # Others hardly disturb each moment: what is not sound by its best samples has no excuse.
        best, lag = np.percentile(run.sent_ns - run.due_ns, (1, 99))
        seen = np.percentile(run.arrival_ns - run.due_ns, 99)
        grid = distance(run.arrival_ns[:KS_SAMPLES] % 1_000_000 / 1e6)
        # Gaps below the bound on lag tell of lag and of what a request costs the server. What the
        # others have beyond it is exponential again, since such gaps have no memory.
        gaps = np.diff(np.sort(run.arrival_ns))
        beyond = gaps[gaps > LAG_P99_NS][:KS_SAMPLES] - LAG_P99_NS
        poisson = distance(1 - np.exp(-beyond * (rate / 1e9)))
        sound = best <= LAG_P99_NS and grid <= KS_GRID
        told = (
            f"lag p99 {ms(lag)}, at the server {ms(seen)}; KS of gaps {poisson:.2f}, of times "
            f"in 1 ms {grid:.2f}"
        )
        return Finding(
            told,
            lag <= LAG_P99_NS and max(grid, poisson) <= KS_CRITICAL,
            disturbance if sound else "",
        )

    found = await best_of(3, attempt)
    row(f"Poisson, {rate:,} req/s", found.measured, BOUND, found.met, found.disturbance)
