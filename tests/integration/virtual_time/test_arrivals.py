"""Arrivals as the server sees them: the process that was asked for, in one piece and in stripes.

Distributions are compared by Kolmogorov and Smirnov's distance at its 1 % critical value, on fixed
seeds.
"""

import math
from collections.abc import Callable

import numpy as np
import pytest

from loadgen.config.settings import RunSettings
from loadgen.testing.memory import Reply
from loadgen.testing.memory_servers import answered
from loadgen.workload.arrivals import Schedule
from tests.helpers.virtual_runs import MS, START_NS, S, carried_out

COUNT = 20_000
RATE = 1_000.0
Distribution = Callable[[np.ndarray], np.ndarray]


def arrivals_ns(settings: RunSettings, stripe: tuple[int, int] = (0, 1)) -> np.ndarray:
    """When a server gets the requests of a run, ns from its start."""
    seen: list[int] = []

    def server(index: int, body: bytes, arrived_ns: int) -> Reply:
        seen.append(arrived_ns - START_NS)
        return answered([arrived_ns + MS])

    carried_out(server, Schedule.from_settings(settings, seed=11), settings, stripe=stripe)
    return np.array(seen)


def follows(values: np.ndarray, distribution: Distribution) -> bool:
    """Whether the distance between the values and a distribution is one that chance explains."""
    below = distribution(np.sort(values))
    steps = np.arange(len(values) + 1) / len(values)
    return max(np.max(steps[1:] - below), np.max(below - steps[:-1])) < 1.63 / math.sqrt(
        len(values)
    )


def uniform(values: np.ndarray) -> np.ndarray:
    return np.clip(values, 0, 1)


def erlang(stages: int, mean: float) -> Distribution:
    """The gamma distribution of a whole-numbered shape."""

    def below(values: np.ndarray) -> np.ndarray:
        x = values * stages / mean
        return 1 - np.exp(-x) * sum(x**i / math.factorial(i) for i in range(stages))

    return below


def half_gamma(mean: float) -> Distribution:
    """The gamma distribution of shape 1/2: that of a normal variable's square."""
    return np.vectorize(lambda value: math.erf(math.sqrt(value / mean / 2)))


@pytest.fixture(scope="module")
def poisson() -> np.ndarray:
    return arrivals_ns(RunSettings(request_rate=RATE, num_prompts=COUNT))


@pytest.mark.parametrize(
    ("burstiness", "distribution"),
    [(1.0, erlang(1, S / RATE)), (4.0, erlang(4, S / RATE)), (0.5, half_gamma(S / RATE))],
    ids=["exponential", "even", "bursty"],
)
def test_gaps_have_the_distribution_that_was_asked_for(
    burstiness: float, distribution: Distribution
) -> None:
    gaps = np.diff(
        arrivals_ns(RunSettings(request_rate=RATE, num_prompts=COUNT, burstiness=burstiness))
    )
    assert follows(gaps, distribution)
    others = [erlang(1, S / RATE), erlang(4, S / RATE), half_gamma(S / RATE)]
    assert sum(follows(gaps, other) for other in others) == 1


def test_arrivals_stand_on_no_grid_of_milliseconds(poisson: np.ndarray) -> None:
    assert follows(poisson % MS / MS, uniform)


@pytest.mark.parametrize("n", [2, 7])
def test_stripes_together_are_the_process_and_each_is_every_nth_of_it(
    poisson: np.ndarray, n: int
) -> None:
    settings = RunSettings(request_rate=RATE, num_prompts=COUNT)
    stripes = [arrivals_ns(settings, (i, n)) for i in range(n)]
    assert np.array_equal(np.sort(np.concatenate(stripes)), poisson)
    for stripe in stripes:
        assert follows(np.diff(stripe), erlang(n, n * S / RATE))


@pytest.mark.parametrize("strategy", ["linear", "exponential"])
def test_a_ramp_brings_as_many_requests_by_each_time_as_its_rate_integrates_to(
    strategy: str,
) -> None:
    settings = RunSettings(
        ramp_up_strategy=strategy, ramp_up_start_rps=200, ramp_up_end_rps=2_000, num_prompts=COUNT
    )
    end_s = Schedule.from_settings(settings, seed=11).duration_ns / S
    t = arrivals_ns(settings) / S
    if strategy == "linear":
        expected = 200 * t + 1_800 * t**2 / (2 * end_s)
    else:
        expected = 200 * end_s / math.log(10) * (10 ** (t / end_s) - 1)
    assert expected[-1] == pytest.approx(COUNT, rel=1e-6)
    assert follows(expected[:-1] / COUNT, uniform)  # the last one ends the window
    assert follows(np.diff(expected), erlang(1, 1.0))
    assert not follows(t[:-1] / end_s, uniform)
