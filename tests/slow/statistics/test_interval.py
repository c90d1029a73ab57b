"""Intervals: textbook numbers where starts tell, and on simulated queues how often they leave out the truth."""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from loadgen.analysis.compare.interval import Basis, Interval, by_starts, rounding, within
from loadgen.analysis.compare.metrics import BUCKET, named
from loadgen.analysis.compare.sample import Ended, Sample
from loadgen.stats.variance import Noise
from tests.helpers.queue_runs import queue

ONE, OTHER = np.array([1.00, 1.02, 0.97, 1.01]), np.array([1.10, 1.16, 1.11])
RUNS = 100


class TestByStarts:
    def test_it_is_students_of_two_samples(self) -> None:
        found, right = by_starts(ONE, OTHER), stats.ttest_ind(OTHER, ONE)
        assert found.by_chance == pytest.approx(right.pvalue)
        assert (found.low, found.high) == pytest.approx(tuple(right.confidence_interval(0.95)))
        assert found.basis is Basis.STARTS

    def test_starts_that_never_differ_leave_no_room(self) -> None:
        same = by_starts(np.ones(3), np.ones(3))
        assert (same.low, same.high, same.by_chance) == (0.0, 0.0, 1.0)
        assert not same.leaves_out_none
        apart = by_starts(np.ones(3), np.full(3, 2.0))
        assert (apart.low, apart.high, apart.by_chance) == (1.0, 1.0, 0.0)

    def test_starts_that_never_differ_still_differ_by_what_they_are_rounded_to(self) -> None:
        """As a digital scale: by a step's length over the root of 12 on each side."""
        step = rounding(BUCKET, BUCKET)
        assert step == pytest.approx(BUCKET / math.sqrt(6))
        one, two, ten = (by_starts(np.zeros(3), np.full(3, steps * BUCKET), rounded=step) for steps in (1, 2, 10))
        assert not one.leaves_out_none
        assert two.leaves_out_none
        assert one.high - one.low == pytest.approx(2 * stats.t.ppf(0.975, 4) * step)
        assert two.by_chance > 1e-3 > ten.by_chance

    def test_rounding_adds_to_the_noise_as_independent_errors_do(self) -> None:
        plain, rounded = by_starts(ONE, OTHER), by_starts(ONE, OTHER, rounded=0.03)
        half = (plain.high - plain.low) / 2 / stats.t.ppf(0.975, 5)
        assert rounded.high - rounded.low == pytest.approx(2 * stats.t.ppf(0.975, 5) * math.hypot(half, 0.03))

    def test_of_single_starts_it_has_the_freedom_of_the_noise_that_was_kept(self) -> None:
        found = by_starts(ONE[:1], OTHER[:1], Noise(0.02, 4))
        half = stats.t.ppf(0.975, 4) * 0.02 * math.sqrt(2)
        assert (found.low, found.high) == pytest.approx((0.10 - half, 0.10 + half))
        assert found.basis is Basis.NOISE

    def test_what_the_starts_themselves_differ_by_is_pooled_with_it(self) -> None:
        found = by_starts(ONE, OTHER, Noise(0.02, 4))
        squares = 4 * 0.02**2 + ONE.var() * 4 + OTHER.var() * 3
        half = stats.t.ppf(0.975, 9) * math.sqrt(squares / 9 * (1 / 4 + 1 / 3))
        assert found.high - found.low == pytest.approx(2 * half)


def of_two(one: Sample, other: Sample, name: str) -> Interval | None:
    """The interval of a difference between two runs; None where they do not tell it."""
    metric = named(name)
    assert metric is not None
    length = max(one.enough, other.enough)
    values = [sample.drawn(metric, sample.count, 0) for sample in (one, other)]
    if values[0] is None or values[1] is None or one.why_not(length):
        return None
    return within([one], [other], metric, math.log(values[1][0] / values[0][0]), length)


def pairs(load: float, *, arrivals: int = 0, factor: float = 1.0) -> Iterator[tuple[Sample, Sample]]:
    """Runs of 1,000 requests at two queues of four servers.

    Args:
        load: Of what they can serve.
        arrivals: 0, where both have requests at the same times; 1, where each has its own.
        factor: How much longer the second takes for each.
    """
    for seed in range(RUNS):
        yield (
            queue(load, 4, 1000, arrivals=seed, service=5000 + seed),
            queue(load / factor, 4, 1000, arrivals=seed + 9000 * arrivals, service=7000 + seed, factor=factor),
        )


class TestWithin:
    @pytest.mark.parametrize("arrivals", [0, 1], ids=["same times", "other times"])
    @pytest.mark.parametrize(
        "name", ["request_throughput", "ttft_mean", "ttft_p50", "ttft_p99", "e2el_mean", "e2el_p90", "e2el_p99"]
    )
    @pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
    def test_queues_that_are_alike_are_told_apart_about_as_seldom_as_promised(
        self, load: float, name: str, arrivals: int
    ) -> None:
        """One pair in twenty is promised, though requests that wait for each other are no independent ones."""
        found = [of_two(*pair, name) for pair in pairs(load, arrivals=arrivals)]
        assert sum(one is not None and one.leaves_out_none for one in found) / RUNS <= 0.1

    @pytest.mark.parametrize("name", ["e2el_mean", "e2el_p50", "e2el_p90"])
    def test_queues_that_are_unlike_are_told_apart_mostly(self, name: str) -> None:
        found = [of_two(*pair, name) for pair in pairs(0.3, factor=1.3)]
        assert sum(one is not None and one.low > 0 for one in found) / RUNS >= 0.8

    def test_where_requests_wait_for_each_other_too_long_nothing_is_told(self) -> None:
        """At 80 % load a thousand requests are a few busy spells."""
        assert not any(of_two(*pair, "ttft_p99") for pair in pairs(0.8))

    def test_it_is_the_same_every_time(self) -> None:
        runs = [[queue(0.3, 4, 1000, arrivals=0, service=seed) for seed in (1, 2)] for _ in range(2)]
        found = [of_two(*pair, "e2el_p90") for pair in runs]
        assert found[0] == found[1]
        assert found[0] is not None

    def test_a_metric_that_is_0_in_some_run_has_none(self) -> None:
        run = queue(0.6, 4, 1000, arrivals=0, service=0)
        metric = named("output_throughput")
        assert metric is not None
        idle = replace(run, ended=Ended(run.ended.waits_s, {"output_throughput": np.zeros(1000)}))
        assert within([idle], [idle], metric, 0.0, 10) is None
