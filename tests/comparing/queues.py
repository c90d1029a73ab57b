"""Runs of simulated queues, of which theory knows that they are alike: requests that wait for each other."""

from functools import cache

import numpy as np

from loadgen.comparing.sample import Ended, Sample
from loadgen.comparing.values import Values
from loadgen.schedule import Floats


@cache
def queue(load: float, servers: int, count: int, *, arrivals: int, service: int, factor: float = 1.0) -> Sample:
    """A run of M/M/c: requests at the same times for one seed of the arrivals, served in a mean time of `factor`.

    The TTFT is the wait and a tenth of the service, the E2EL all of it, in ms of which the service takes 1,000.
    """
    due = np.cumsum(np.random.default_rng(arrivals).exponential(1 / (load * servers), count))
    served = factor * np.random.default_rng(service).exponential(1.0, count)
    free, begins = np.zeros(servers), np.empty(count)
    for number in range(count):
        first = int(free.argmin())
        begins[number] = max(due[number], free[first])
        free[first] = begins[number] + served[number]
    closed = begins + served
    order = np.argsort(closed)
    ended = Ended(np.diff(closed[order], prepend=due[0]), {"request_throughput": np.ones(count)})
    latencies = {"ttft": begins + served / 10 - due, "e2el": closed - due}
    in_flight = float((closed - due).sum() / (closed.max() - due[0]))
    return Sample(np.ones(count), {name: _values(1000 * each) for name, each in latencies.items()}, ended, in_flight)


def _values(each: Floats) -> Values:
    order = np.argsort(each)
    return Values(each[order], np.ones(len(each)), order, len(each))
