"""Runs of simulated queues, of which theory knows that they are alike: requests that wait for
each other.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np

from loadgen.analysis.compare.run_requests import EndedRequests, LatencyValues, RunRequests
from loadgen.core.histogram import Histogram
from loadgen.util.arrays import Floats


@cache
def queue(
    load: float, servers: int, count: int, *, arrivals: int, service: int, factor: float = 1.0
) -> RunRequests:
    """A run of M/M/c: requests at the same times for one seed of the arrivals, served in a mean
    time of `factor`.

    The TTFT is the wait and a tenth of the service, the E2EL all of it, in ms of which the service
    takes 1,000.
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
    ended = EndedRequests(
        np.diff(closed[order], prepend=due[0]), {"request_throughput": np.ones(count)}
    )
    latencies = {"ttft": begins + served / 10 - due, "e2el": closed - due}
    found = {name: values(*(1000 * each)[:, None]) for name, each in latencies.items()}
    in_flight = float((closed - due).sum() / (closed.max() - due[0]))
    return RunRequests(np.zeros(count), np.ones(count), found, ended, in_flight)


def values(*each: Sequence[float] | Floats) -> LatencyValues:
    """What requests tell that had these values, ms."""
    ms, owner = (
        np.concatenate([np.empty(0), *each]),
        np.repeat(np.arange(len(each)), [len(one) for one in each]),
    )
    distribution = Histogram()
    distribution.record_many(np.rint(1e6 * ms).astype(np.int64))

    def of_each(what: Floats) -> Floats:
        return np.bincount(owner, weights=what, minlength=len(each)).astype(float)

    ends_ms = {p: (distribution.percentile(p) or 0.0) / 1e6 for p in (0.0, 50.0, 90.0, 99.0)}
    within = {p: of_each((ms <= end_ms).astype(float)) for p, end_ms in ends_ms.items()}
    return LatencyValues(of_each(ms), of_each(np.ones(len(ms))), within, distribution)
