"""Error per token: the client's stamp less the time at which the server wrote the token."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from loadgen.testing.process import Process
from tests.qa.accuracy.measuring import Finding, best_of, compared, ms

MEDIAN_NS, P99_NS = 200_000, 500_000
BOUND = "median <= 0.2 ms, p99 <= 0.5 ms, never < 0"

full = pytest.mark.accuracy


@pytest.mark.parametrize(
    ("rate", "requests", "tokens", "gap_ms"),
    [
        pytest.param(1, 10, 50, 20, marks=full),
        pytest.param(10, 100, 50, 20, marks=full),
        pytest.param(100, 100, 50, 20),
        pytest.param(300, 3_000, 50, 20, marks=full),
        pytest.param(1_000, 10_000, 50, 20, marks=full),
        pytest.param(1_000, 20_000, 50, 200, marks=full, id="10,000 streams at once"),
    ],
)
async def test_a_token_is_stamped_when_it_comes(
    metronome: Process, row: Callable[..., None], rate: int, requests: int, tokens: int, gap_ms: int
) -> None:
    streams = round(rate * tokens * gap_ms / 1e3)

    async def attempt() -> Finding:
        plan = {"first_ms": gap_ms, "gap_ms": gap_ms}
        asked = {"request_rate": rate, "num_prompts": requests, "warm_connections": str(math.ceil(1.05 * streams))}
        run = await compared(metronome, tokens=tokens, plan=plan, **asked)
        errors = run.errors_ns
        assert len(errors) == requests * tokens
        assert errors.min() >= 0, "seen before it was written"
        best, median, p99 = np.percentile(errors, (1, 50, 99))
        seen = f"median {ms(median)}, p99 {ms(p99)}, max {ms(errors.max())}; loop {run.client['busy_share']:.0%} busy"
        return Finding(seen, median <= MEDIAN_NS and p99 <= P99_NS, run.excuse(sound=best <= MEDIAN_NS))

    found = await best_of(3, attempt)
    row(f"{rate:,} req/s, {streams:,} at once", found.measured, BOUND, found.met, found.disturbance)
