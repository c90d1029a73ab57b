"""Feed: what an event costs, ns of CPU time; a script that needs an installed loadgen alone:
`python feed.py`.

A run feeds from C what it reads, so here a call of Python feeds many events.
"""

import time

from loadgen.core.http1 import Response
from loadgen.core.record import Record
from loadgen.engines.sim.http1 import chunk
from loadgen.testing.replies import STREAM, delta

EVENTS, READ, ROUNDS = 20_000, 20, 15


def fed() -> float:
    """Feed EVENTS events, READ at a time; returns the CPU time per event, ns."""
    response, record = Response(), Record()
    response.begin(record)
    response.feed(STREAM, 1)
    read = chunk(delta(content=" word")) * READ
    began = time.process_time()
    for at_ns in range(2, 2 + EVENTS // READ):
        response.feed(read, at_ns)
    took = time.process_time() - began
    assert record.events == EVENTS
    return took / EVENTS * 1e9


if __name__ == "__main__":
    print(min(fed() for _ in range(ROUNDS)))
