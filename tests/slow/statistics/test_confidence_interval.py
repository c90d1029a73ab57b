"""Intervals: textbook numbers by starts; coverage on simulated queues within runs.

`make test-all` simulates one in five queues and metrics, and `make qa` the others.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import stats

from loadgen.analysis.compare.confidence_interval import (
    Basis,
    ConfidenceInterval,
    interval_by_starts,
    interval_within_run,
    rounding_error,
)
from loadgen.analysis.compare.metrics import BUCKET, metric_by_name
from loadgen.analysis.compare.run_requests import EndedRequests, RunRequests
from loadgen.stats.block_bootstrap import BlockBootstrap
from loadgen.stats.variance import Noise
from tests.helpers.queue_runs import queue
from tests.helpers.thinning import every_nth

ONE, OTHER = np.array([1.00, 1.02, 0.97, 1.01]), np.array([1.10, 1.16, 1.11])
RUNS = 100
NAMES = [
    "request_throughput",
    "ttft_mean",
    "ttft_p50",
    "ttft_p99",
    "e2el_mean",
    "e2el_p90",
    "e2el_p99",
]


class TestIntervalByStarts:
    def test_interval_by_starts_equals_students_t(self) -> None:
        found, right = interval_by_starts(ONE, OTHER), stats.ttest_ind(OTHER, ONE)
        assert found.p_value == pytest.approx(right.pvalue)
        assert (found.low, found.high) == pytest.approx(tuple(right.confidence_interval(0.95)))
        assert found.basis is Basis.STARTS

    def test_equal_starts_have_a_point_interval(self) -> None:
        same = interval_by_starts(np.ones(3), np.ones(3))
        assert (same.low, same.high, same.p_value) == (0.0, 0.0, 1.0)
        assert not same.excludes_zero
        apart = interval_by_starts(np.ones(3), np.full(3, 2.0))
        assert (apart.low, apart.high, apart.p_value) == (1.0, 1.0, 0.0)

    def test_equal_starts_have_a_rounding_error(self) -> None:
        """As a digital scale: by a step's length over the root of 12 on each side."""
        step = rounding_error(BUCKET, BUCKET)
        assert step == pytest.approx(BUCKET / math.sqrt(6))
        one, two, ten = (
            interval_by_starts(np.zeros(3), np.full(3, steps * BUCKET), rounding=step)
            for steps in (1, 2, 10)
        )
        assert not one.excludes_zero
        assert two.excludes_zero
        assert one.high - one.low == pytest.approx(2 * stats.t.ppf(0.975, 4) * step)
        assert two.p_value > 1e-3 > ten.p_value

    def test_rounding_adds_in_quadrature(self) -> None:
        plain, rounded = (
            interval_by_starts(ONE, OTHER),
            interval_by_starts(ONE, OTHER, rounding=0.03),
        )
        half = (plain.high - plain.low) / 2 / stats.t.ppf(0.975, 5)
        assert rounded.high - rounded.low == pytest.approx(
            2 * stats.t.ppf(0.975, 5) * math.hypot(half, 0.03)
        )

    def test_single_starts_use_the_df_of_the_noise_file(self) -> None:
        found = interval_by_starts(ONE[:1], OTHER[:1], Noise(0.02, 4))
        half = stats.t.ppf(0.975, 4) * 0.02 * math.sqrt(2)
        assert (found.low, found.high) == pytest.approx((0.10 - half, 0.10 + half))
        assert found.basis is Basis.NOISE

    def test_starts_are_pooled_with_the_noise_file(self) -> None:
        found = interval_by_starts(ONE, OTHER, Noise(0.02, 4))
        squares = 4 * 0.02**2 + ONE.var() * 4 + OTHER.var() * 3
        half = stats.t.ppf(0.975, 9) * math.sqrt(squares / 9 * (1 / 4 + 1 / 3))
        assert found.high - found.low == pytest.approx(2 * half)


def of_two(one: RunRequests, other: RunRequests, name: str) -> ConfidenceInterval | None:
    """The interval of a difference between two runs; None where they do not tell it."""
    metric = metric_by_name(name)
    assert metric is not None
    length = max(one.block_length, other.block_length)
    values = [sample.resample(metric, BlockBootstrap(sample.count), 0) for sample in (one, other)]
    if values[0] is None or values[1] is None or one.too_short_for(length):
        return None
    return interval_within_run(
        [one], [other], metric, math.log(values[1][0] / values[0][0]), BlockBootstrap(length)
    )


def pairs(
    load: float, *, arrivals: int = 0, factor: float = 1.0
) -> Iterator[tuple[RunRequests, RunRequests]]:
    """Runs of 1,000 requests at two queues of four servers.

    Args:
        load: Of what they can serve.
        arrivals: 0, where both have requests at the same times; 1, where each has its own.
        factor: How much longer the second takes for each.
    """
    for seed in range(RUNS):
        yield (
            queue(load, 4, 1000, arrivals=seed, service=5000 + seed),
            queue(
                load / factor,
                4,
                1000,
                arrivals=seed + 9000 * arrivals,
                service=7000 + seed,
                factor=factor,
            ),
        )


class TestIntervalWithinRun:
    # Each metric at each load, every second of them with arrivals of their own.
    @pytest.mark.parametrize(
        ("load", "name", "arrivals"),
        every_nth(
            [
                pytest.param(
                    load,
                    name,
                    number % 2,
                    id=f"{load}-{name}-{('same times', 'other times')[number % 2]}",
                )
                for number, (load, name) in enumerate(product([0.3, 0.6, 0.8], NAMES))
            ],
            step=5,
        ),
    )
    def test_equal_queues_rarely_differ(self, load: float, name: str, arrivals: int) -> None:
        """One pair in twenty is promised, though requests that wait for each other are no
        independent ones.
        """
        found = [of_two(*pair, name) for pair in pairs(load, arrivals=arrivals)]
        assert sum(one is not None and one.excludes_zero for one in found) / RUNS <= 0.1

    @pytest.mark.parametrize("name", every_nth(["e2el_p90", "e2el_p50", "e2el_mean"], step=3))
    def test_unequal_queues_mostly_differ(self, name: str) -> None:
        found = [of_two(*pair, name) for pair in pairs(0.3, factor=1.3)]
        assert sum(one is not None and one.low > 0 for one in found) / RUNS >= 0.8

    def test_long_dependence_has_no_interval(self) -> None:
        """At 80 % load a thousand requests are a few busy spells."""
        assert not any(of_two(*pair, "ttft_p99") for pair in pairs(0.8))

    def test_interval_is_deterministic(self) -> None:
        runs = [
            [queue(0.3, 4, 1000, arrivals=0, service=seed) for seed in (1, 2)] for _ in range(2)
        ]
        found = [of_two(*pair, "e2el_p90") for pair in runs]
        assert found[0] == found[1]
        assert found[0] is not None

    def test_metric_of_0_has_no_interval(self) -> None:
        run = queue(0.6, 4, 1000, arrivals=0, service=0)
        metric = metric_by_name("output_throughput")
        assert metric is not None
        idle = replace(
            run, ended=EndedRequests(run.ended.waits_s, {"output_throughput": np.zeros(1000)})
        )
        assert interval_within_run([idle], [idle], metric, 0.0, BlockBootstrap(10)) is None
