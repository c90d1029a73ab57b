"""Streams: ten thousand of them at once, from one process.

All begin before the first has ended, so that each has a connection of its own; most of those come from further loopback
addresses.
"""

from collections.abc import Callable

import numpy as np
import pytest

from loadgen.checks import Verdict
from loadgen.testing.process import Process
from loadgen.util.source_address import CONNECTIONS_PER_LOOPBACK
from tests.qa.accuracy.judging import red
from tests.qa.accuracy.measuring import Finding, best_of, compared, ms

STREAMS, RATE, TOKENS, GAP_MS = 10_000, 2_000, 10, 600

pytestmark = pytest.mark.accuracy


async def test_ten_thousand_streams_at_once(metronome: Process, row: Callable[..., None]) -> None:
    assert STREAMS / RATE < TOKENS * GAP_MS / 1e3, "the first has not ended when the last begins"
    plan = {"first_ms": GAP_MS, "gap_ms": GAP_MS}

    async def attempt() -> Finding:
        run = await compared(
            metronome,
            tokens=TOKENS,
            plan=plan,
            request_rate=RATE,
            num_prompts=STREAMS,
            warm_connections=str(STREAMS),
        )
        data = run.result.data
        assert data["loadgen"]["outcomes"] == {"ok": STREAMS}
        assert data["max_concurrent_requests"] == STREAMS
        assert run.client["warm_connections"] == STREAMS
        assert run.client["late_connections"] == 0
        assert len(run.errors_ns) == STREAMS * TOKENS
        p99 = np.percentile(run.errors_ns, 99)
        busy, verdict = run.client["busy_share"], run.result.verdict
        seen = f"all at once, none lost; {verdict}: {red(run.result) or 'no check is red'}"
        seen += f"; error per token p99 {ms(p99)}; loop {busy:.0%} busy"
        return Finding(seen, verdict is Verdict.VALID, run.excuse(sound=busy <= 0.7))

    found = await best_of(3, attempt)
    load = f"{STREAMS:,} from {-(-STREAMS // CONNECTIONS_PER_LOOPBACK)} addresses, a token each in {GAP_MS} ms"
    row(load, found.measured, "all at once, none lost, VALID", found.met, found.disturbance)
