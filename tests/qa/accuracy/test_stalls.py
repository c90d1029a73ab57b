"""Stalls of the event loop: a client that never stops for 5 ms reads promptly, and claims a small
error.

`make mutants` has these tests notice a client that does stop.
"""

import numpy as np
import pytest

from bench.accuracy.measuring import Run, compared
from loadgen.metrics.statistic import client_error_ms
from loadgen.testing.process import Process

STALL_MS = 4.0  # a little less than the 5 ms
LATE_NS, MAX_LATE_SHARE = 1e6, 0.05

pytestmark = pytest.mark.accuracy


async def measure(metronome: Process) -> Run:
    return await compared(
        metronome,
        tokens=8,
        plan={"first_ms": 40.0, "gap_ms": 40.0},
        request_rate=50,
        num_prompts=200,
    )


async def test_few_tokens_are_read_late(metronome: Process) -> None:
    run = await measure(metronome)
    late_ns = np.concatenate(
        [np.subtract(record.read_times, record.stamps) for record in run.records]
    )
    assert len(late_ns) == 200 * 8
    assert np.mean(late_ns > LATE_NS) < MAX_LATE_SHARE


async def test_client_error_is_less_than_a_stall(metronome: Process) -> None:
    run = await measure(metronome)
    error = client_error_ms(run.result.snapshot, "icl", "p99")
    assert error is not None
    assert error < STALL_MS
