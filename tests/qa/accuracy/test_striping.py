"""Striping: a schedule cut among clients reaches the server as the whole does.

Where the clients sent as they should and the server read late all the same, a miss is the server's.
"""

import asyncio
import operator
from collections.abc import Callable
from functools import reduce
from pathlib import Path

import numpy as np
import pytest

from bench.accuracy.measuring import Finding, Short, Watch, best_of, ms
from loadgen.client.compiled_transport import CompiledTransport
from loadgen.client.load_loop import Load
from loadgen.client.timeouts import Timeouts
from loadgen.config.settings import RunSettings
from loadgen.metrics.recorder import Recorder
from loadgen.runner.coordinator import LEAD_NS
from loadgen.testing.process import Process
from loadgen.testing.truth import Truth
from loadgen.util.clock import now_ns
from loadgen.workload import request_store
from loadgen.workload.arrivals import Schedule
from loadgen.workload.request_store import Requests
from loadgen.workload.target import Target

RATE, COUNT = 300, 1_500
ARRIVAL_P99_NS, LAG_P99_NS = 1_000_000, 500_000

pytestmark = pytest.mark.accuracy


async def send_striped(url: str, schedule: Schedule, stripes: int, folder: Path) -> tuple[int, int]:
    """Let so many clients send a stripe each; returns when the clock started, and the p99 of the
    lag, ns.
    """
    settings = RunSettings(
        base_url=url, backend="openai-chat", extra_body={"metronome": {"first_ms": 5.0}}
    )
    target = Target.from_settings(settings, "metronome")
    data = Short(1)
    request_store.write(
        folder, data.prompts(schedule.count), target.body, data.provenance, schedule.count
    )
    transports = [CompiledTransport(target, Timeouts(connect=10**10)) for _ in range(stripes)]
    with Requests(folder) as bodies:
        try:
            for transport in transports:
                await transport.open()
                await transport.warm(RATE // stripes)
            start_ns = now_ns() + LEAD_NS
            recorders, loads = [], []
            for i, transport in enumerate(transports):
                stripe = schedule.stripe(i, stripes)
                recorders.append(Recorder(start_ns, len(stripe.numbers)))
                loads.append(Load(settings, transport, bodies, recorders[-1], stripe))
            await asyncio.gather(*(load.run() for load in loads))
        finally:
            for transport in transports:
                await transport.close()
    lag_ns = reduce(operator.add, (recorder.waits["lag"] for recorder in recorders)).percentile(99)
    assert lag_ns is not None
    return start_ns, round(lag_ns)


@pytest.mark.parametrize("stripes", [1, 2, 3])
async def test_stripes_arrive_as_the_whole(
    metronome: Process, row: Callable[..., None], tmp_path: Path, stripes: int
) -> None:
    schedule = Schedule.poisson(RATE, COUNT, seed=5)

    async def attempt() -> Finding:
        Truth.forget(metronome.url)
        watch = Watch(metronome)
        start_ns, lag_ns = await send_striped(metronome.url, schedule, stripes, tmp_path)
        truth, disturbance = Truth.fetch(metronome.url), watch.end()
        order = np.argsort(truth.number)
        assert truth.number[order].tolist() == list(range(COUNT)), "each request arrives once"
        late = truth.arrival_ns[order] - start_ns - schedule.due_ns
        assert late.min() > 0, "a request came before it was due"
        p99 = np.percentile(late, 99)
        seen = f"all {COUNT:,}; sent after due p99 {ms(lag_ns)}, arrival {ms(p99)}"
        server = "the server was late itself" if lag_ns <= LAG_P99_NS else ""
        return Finding(seen, p99 <= ARRIVAL_P99_NS, disturbance or server)

    found = await best_of(3, attempt)
    row(
        f"in {stripes} stripes, {RATE} req/s",
        found.measured,
        "each once, p99 <= 1 ms",
        found.met,
        found.disturbance,
    )
