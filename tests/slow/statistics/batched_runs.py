"""How often intervals by batch means hold, on simulated servers with continuous batching.

`python -m tests.slow.statistics.batched_runs` prints the shares in docs/accuracy.md.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from loadgen.analysis.compare.confidence_interval import ConfidenceInterval, interval_within_run
from loadgen.analysis.compare.metrics import metric_by_name
from loadgen.analysis.compare.run_requests import EndedRequests, LatencyValues, RunRequests
from loadgen.core.histogram import Histogram
from loadgen.stats.batch_means import BatchMeans
from tests.helpers.queue_runs import values

PAIRS = 200
METRICS = ("tpot_mean", "tpot_p50", "icl_mean", "icl_p50")
TOKENS = 32  # of an answer, or the mean of answers of different lengths


@dataclass(frozen=True, slots=True)
class Server:
    """A server that decodes all requests in steps, and its load.

    Attributes:
        name: What is special about it.
        count: Number of requests.
        rate: Requests/s, as a Poisson process.
        varied: Whether answers have different lengths, geometrically distributed.
        scatter: Standard deviation of the logarithm of a step's time.
        memory: Correlation of a step's time with the one before.
    """

    name: str
    count: int
    rate: float
    varied: bool = False
    scatter: float = 0.01
    memory: float = 0.9


SERVERS = (
    Server("120 requests, 20/s", 120, 20.0),
    Server("300 requests, 20/s", 300, 20.0),
    Server("300 requests, 20/s, answers of different lengths", 300, 20.0, varied=True),
    Server("1,000 requests, 20/s, noise that lasts a second", 1000, 20.0, False, 0.02, 0.99),
    Server("1,000 requests, 60/s, answers of different lengths", 1000, 60.0, varied=True),
)
DRIFTING = Server("300 requests, 20/s, noise that lasts ten seconds", 300, 20.0, False, 0.02, 0.999)


@cache
def run(server: Server, arrivals: int, noise: int, factor: float = 1.0) -> RunRequests:
    """Simulate a run: a step takes 8 ms and 0.25 ms for each request, times its noise and a factor.

    Args:
        server: The server and its load.
        arrivals: The seed of due times and lengths.
        noise: The seed of the noise.
        factor: How much longer each step takes.
    """
    random, count = np.random.default_rng(arrivals), server.count
    due = np.cumsum(random.exponential(1000 / server.rate, count))
    lengths = 1 + random.geometric(1 / TOKENS, count) if server.varied else np.full(count, TOKENS)
    shocks = iter(np.random.default_rng(noise + 10**6).standard_normal(10**6).tolist())
    deviation = server.scatter * next(shocks)
    fresh = server.scatter * math.sqrt(1 - server.memory**2)
    begun, ended, left = np.empty(count), np.empty(count), lengths.tolist()
    gaps: list[list[float]] = [[] for _ in range(count)]
    active: list[int] = []
    clock, following = 0.0, 0
    while following < count or active:
        if not active:
            clock = max(clock, due[following])
        while following < count and due[following] <= clock:
            active.append(following)
            begun[following] = clock
            following += 1
        deviation = server.memory * deviation + fresh * next(shocks)
        step = factor * (8 + 0.25 * len(active)) * math.exp(deviation)
        clock += step
        for request in active:
            gaps[request].append(step)
            left[request] -= 1
            if not left[request]:
                ended[request] = clock
        active = [request for request in active if left[request]]
    latencies = {
        "tpot": values(*((ended - begun) / lengths)[:, None]),
        "icl": _gaps(gaps),
    }
    waits = EndedRequests(np.ones(count), {})
    in_flight = float((ended - due).sum() / (ended.max() - due[0]))
    return RunRequests(np.zeros(count), np.ones(count), latencies, waits, in_flight)


def _gaps(gaps: list[list[float]]) -> LatencyValues:
    together = np.concatenate(gaps)
    distribution = Histogram()
    distribution.record_many(np.rint(1e6 * together).astype(np.int64))
    median = (distribution.percentile(50.0) or 0.0) / 1e6
    sums, counts, within = np.array(
        [(sum(own), len(own), sum(gap <= median for gap in own)) for own in gaps], dtype=float
    ).T
    return LatencyValues(sums, counts, {50.0: within}, distribution)


def intervals(
    server: Server, name: str, *, other_times: bool, factor: float = 1.0, pairs: int = PAIRS
) -> Iterator[ConfidenceInterval]:
    """Yield the intervals of pairs of runs, the second of which takes longer by a factor; of those
    pairs that have one.
    """
    metric = metric_by_name(name)
    assert metric is not None
    for seed in range(pairs):
        one = run(server, seed, 2 * seed)
        other = run(server, seed + 50_000 * other_times, 2 * seed + 1, factor)
        scheme = BatchMeans(max(one.batch_length, other.batch_length))
        if one.too_short_for(scheme.length) is None:
            difference = math.log(_value(other, name) / _value(one, name))
            found = interval_within_run([one], [other], metric, difference, scheme)
            assert found is not None
            yield found


def _value(requests: RunRequests, name: str) -> float:
    latency, _, statistic = name.partition("_")
    of_latency = requests.latencies[latency]
    if statistic == "mean":
        return float(of_latency.sums.sum() / of_latency.counts.sum())
    return (of_latency.distribution.percentile(50.0) or 0.0) / 1e6


def share_that_differs(server: Server, name: str, *, other_times: bool) -> float:
    """Return the share of pairs of equal runs whose interval leaves out 0, of those that have
    one.
    """
    found = list(intervals(server, name, other_times=other_times))
    return sum(each.excludes_zero for each in found) / len(found)


def main() -> None:
    """Print the table."""
    print(f"| server | times | {' | '.join(METRICS)} | of 5 %, shown |")
    for server in (*SERVERS, DRIFTING):
        for other_times in (False, True):
            shares = [share_that_differs(server, name, other_times=other_times) for name in METRICS]
            longer = intervals(server, "tpot_p50", other_times=other_times, factor=1.05, pairs=50)
            shown = [each.low > 0 for each in longer]
            cells = " | ".join(f"{share:.1%}" for share in shares)
            times = "different" if other_times else "same"
            print(f"| {server.name} | {times} | {cells} | {np.mean(shown):.0%} |", flush=True)


if __name__ == "__main__":
    main()
