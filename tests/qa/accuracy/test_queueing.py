"""Queueing in real time: each request beside Lindley's recursion of the same draws.

What the server itself was late in reading a request or in writing its answer is taken off: it is no
error of the client. In a queue it would count more than once, since all who wait behind a late one
are late.
"""

from collections.abc import Callable

import numpy as np
import pytest

from bench.accuracy.measuring import Finding, Int64s, Watch, best_of, compared, ms
from loadgen.testing.metronome import Pace
from loadgen.testing.process import Process

TOLERANCE_NS, SHARE = 500_000, 0.99
BOUND = "within 0.5 ms (99 % of them)"

pytestmark = pytest.mark.accuracy


def departures(due_ns: Int64s, service_ns: Int64s) -> Int64s:
    """When each request leaves a queue with one server, first come, first served (Lindley,
    1952).
    """
    leaves, free = np.empty_like(due_ns), 0
    for i, (due, service) in enumerate(zip(due_ns.tolist(), service_ns.tolist(), strict=True)):
        leaves[i] = free = max(due, free) + service
    return leaves


@pytest.mark.parametrize(
    ("name", "pace", "theory"),
    [
        ("M/D/1", Pace(shape="constant", first_ms=2.0, queue=True), "mean wait 1.0 ms"),
        ("M/M/1", Pace(shape="exponential", first_ms=1.0, queue=True), "p50 1.39 ms, p99 9.21 ms"),
    ],
    ids=["M/D/1", "M/M/1"],
)
async def test_each_request_takes_as_long_as_the_queue_says(
    metronome: Process, row: Callable[..., None], name: str, pace: Pace, theory: str
) -> None:
    rate = 250 if pace.shape == "constant" else 500
    requests = 20 * rate

    async def attempt() -> Finding:
        fields = {"shape": pace.shape, "first_ms": pace.first_ms, "queue": True}
        watch = Watch(metronome)
        run = await compared(
            metronome,
            tokens=1,
            plan=fields,
            processor=watch.quietest,
            request_rate=rate,
            num_prompts=requests,
        )
        disturbance = watch.end()
        service = np.array([int(pace.offsets_ns(number, 1)[0]) for number in range(requests)])
        way = run.arrival_ns - run.sent_ns
        sojourn = run.stamps_ns - run.server_late_ns - run.due_ns
        errors = np.abs(sojourn - (departures(run.due_ns + way, service) - run.due_ns))
        share = float(np.mean(errors <= TOLERANCE_NS))
        p50, p99 = np.percentile(sojourn, (50, 99))
        told = (
            f"mean wait {ms(np.mean(sojourn - service))}"
            if name == "M/D/1"
            else f"p50 {ms(p50)}, p99 {ms(p99)}"
        )
        seen = (
            f"{share:.2%} of requests, error p99 {ms(np.percentile(errors, 99))}; {told} "
            f"(theory: {theory})"
        )
        # A machine that wakes the server later than that wakes the client no sooner.
        slow = "the server was late itself" if np.mean(way > TOLERANCE_NS) > 1 - SHARE else ""
        return Finding(seen, share >= SHARE, disturbance or slow)

    found = await best_of(3, attempt)
    row(
        f"{name}, {rate} req/s, utilisation 0.5",
        found.measured,
        BOUND,
        found.met,
        found.disturbance,
    )
