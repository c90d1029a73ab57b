"""Queues with known waiting times: reported latencies equal those of the queue, to the nanosecond.

Theory speaks of endless queues. A run of 100,000 requests is still a sample, and a queue remembers:
from seed to seed its p99 has a standard deviation of 2 %. So each request is held to the recursion
of its own draws, which a run cannot meet by luck, and the recursion to theory over as many draws as
that takes. The runs' own seeds are ones whose draws are near the mean.
"""

import heapq
import math

import numpy as np
import pytest

from loadgen.core.histogram import Histogram
from loadgen.testing.memory_servers import queued
from loadgen.workload.arrivals import Schedule
from tests.helpers.virtual_runs import MS, Run, S, carried_out

COUNT = 100_000
MANY = 4_000_000


def lindley(due_ns: np.ndarray, service_ns: np.ndarray) -> np.ndarray:
    """What each request waits in a queue with one server, ns: w' = max(0, w + service - gap)
    (Lindley, 1952).
    """
    walk = np.concatenate(([0], np.cumsum(service_ns[:-1] - np.diff(due_ns))))
    return walk - np.minimum.accumulate(walk)


def exponential(mean_ns: float, count: int, seed: int) -> np.ndarray:
    return np.rint(np.random.default_rng([seed, *b"service"]).exponential(mean_ns, count)).astype(
        np.int64
    )


def folded(values: np.ndarray) -> Histogram:
    histogram = Histogram()
    histogram.record_many(values)
    return histogram


def in_system_ns(run: Run) -> list[int]:
    """From arriving to being served, per request."""
    return [record.last_token - record.sent for record in run.records]


@pytest.fixture(scope="module")
def m_d_1() -> tuple[Run, np.ndarray]:
    """Poisson arrivals, 2 ms of service each, half busy: the run, and what each request should
    wait.
    """
    schedule = Schedule.poisson(250, COUNT, seed=16)
    run = carried_out(queued(lambda index: 2 * MS), schedule)
    return run, lindley(schedule.due_ns, np.full(COUNT, 2 * MS))


@pytest.fixture(scope="module")
def m_m_1() -> tuple[Run, np.ndarray]:
    """Poisson arrivals, exponential service of 1 ms, half busy: the run, and how long each
    request should take.
    """
    schedule, service_ns = Schedule.poisson(500, COUNT, seed=16), exponential(MS, COUNT, seed=16)
    run = carried_out(queued(service_ns.tolist().__getitem__), schedule)
    return run, lindley(schedule.due_ns, service_ns) + service_ns


def test_with_constant_service_every_request_waits_as_lindley_says(
    m_d_1: tuple[Run, np.ndarray],
) -> None:
    run, wait_ns = m_d_1
    assert in_system_ns(run) == (wait_ns + 2 * MS).tolist()
    assert (
        run.snapshot.histograms["ttft_sent"]
        == run.snapshot.histograms["ttft_due"]
        == folded(wait_ns + 2 * MS)
    )
    assert run.own["verdict"] == "VALID"


def test_with_constant_service_at_half_load_the_mean_wait_is_half_a_service(
    m_d_1: tuple[Run, np.ndarray],
) -> None:
    """Pollaczek and Khinchine: rho * S / (2 * (1 - rho)) = 1 ms."""
    run, _ = m_d_1
    assert run.result["mean_ttft_ms"] - 2 == pytest.approx(1.0, rel=0.01)


def test_with_exponential_service_every_request_takes_as_long_as_lindley_says(
    m_m_1: tuple[Run, np.ndarray],
) -> None:
    run, sojourn_ns = m_m_1
    assert in_system_ns(run) == sojourn_ns.tolist()
    assert (
        run.snapshot.histograms["e2el_due"]
        == run.snapshot.histograms["ttft_sent"]
        == folded(sojourn_ns)
    )
    assert run.own["verdict"] == "VALID"


def test_with_exponential_service_the_time_in_the_system_is_exponential(
    m_m_1: tuple[Run, np.ndarray],
) -> None:
    """Its rate is mu - lambda = 500/s: p50 ln(2) / 500 = 1.39 ms, p99 ln(100) / 500 = 9.21 ms."""
    run, _ = m_m_1
    assert run.result["median_ttft_ms"] == pytest.approx(1.386, rel=0.01)
    assert run.result["p99_ttft_ms"] == pytest.approx(9.210, rel=0.01)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_recursion_that_runs_are_held_to_is_theorys(seed: int) -> None:
    due_ns = Schedule.poisson(500, MANY, seed).due_ns
    service_ns = exponential(MS, MANY, seed)
    sojourn = folded(lindley(due_ns, service_ns) + service_ns)
    for p in (50, 90, 99):
        assert sojourn.percentile(p) == pytest.approx(-math.log1p(-p / 100) / 500 * S, rel=0.01)
    wait = folded(lindley(due_ns * 2, np.full(MANY, 2 * MS)))
    assert wait.mean == pytest.approx(MS, rel=0.01)


@pytest.mark.parametrize("servers", [1, 2, 5])
def test_several_servers_take_from_one_queue_in_order(servers: int) -> None:
    count = 5_000
    schedule = Schedule.poisson(servers * 800, count, seed=4)
    service_ns = exponential(MS, count, seed=4).tolist()
    run = carried_out(queued(service_ns.__getitem__, servers), schedule)
    free, expected = [0] * servers, []
    for due, service in zip(schedule.due_ns.tolist(), service_ns, strict=True):
        begun = max(due, heapq.heappop(free))
        heapq.heappush(free, begun + service)
        expected.append(begun + service - due)
    assert in_system_ns(run) == expected
