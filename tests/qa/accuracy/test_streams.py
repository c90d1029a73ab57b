"""Streams: ten thousand of them at once, from one process.

All begin before the first has ended, so that each has a connection of its own; most of those come
from further loopback addresses.
"""

from collections.abc import Callable

import pytest

from bench.accuracy.judging import TOKENS_BOUND, stamps, verdict
from bench.accuracy.measuring import Watch, compared
from loadgen.checks import Verdict
from loadgen.testing.process import Process
from loadgen.util.source_address import CONNECTIONS_PER_LOOPBACK

STREAMS, RATE, TOKENS, GAP_MS = 10_000, 2_000, 10, 800

pytestmark = pytest.mark.accuracy


async def test_ten_thousand_streams_at_once(metronome: Process, row: Callable[..., None]) -> None:
    assert STREAMS / RATE < TOKENS * GAP_MS / 1e3, "the first has not ended when the last begins"
    watch = Watch(metronome)
    run = await compared(
        metronome,
        processor=watch.quietest,
        tokens=TOKENS,
        plan={"first_ms": GAP_MS, "gap_ms": GAP_MS},
        request_rate=RATE,
        num_prompts=STREAMS,
        warm_connections=str(STREAMS),
    )
    disturbance, data = watch.end(), run.result.data
    assert data["loadgen"]["outcomes"] == {"ok": STREAMS}
    assert data["max_concurrent_requests"] == STREAMS
    assert run.client["warm_connections"] == STREAMS
    assert len(run.stamps_ns) == STREAMS * TOKENS
    found, late = stamps(run), run.client["late_connections"]
    busy = f"loop {run.client['busy_share']:.0%} busy"
    told = (
        f"all at once, none lost, {late:,} waited for a connection; {verdict(run.result)}; "
        f"{found.measured}; {busy}"
    )
    load = (
        f"{STREAMS:,} from {-(-STREAMS // CONNECTIONS_PER_LOOPBACK)} addresses, a token each "
        f"in {GAP_MS} ms"
    )
    bound = f"all at once, none lost, each on an open connection, VALID; {TOKENS_BOUND.format(100)}"
    row(
        load,
        told,
        bound,
        found.met and not late and run.result.verdict is Verdict.VALID,
        disturbance,
    )
