"""Values: percentiles as numpy has them, and what runs drawn anew do to them."""

import numpy as np
import pytest

from loadgen.analysis.compare.latency_values import Values
from loadgen.stats.block_bootstrap import RESAMPLES
from loadgen.util.arrays import Floats
from tests.helpers.queue_runs import values


def each(*ms: float) -> Values:
    """A value for each request."""
    return values(*([one] for one in ms))


def drawn(ms: Floats, p: float) -> Floats:
    """The percentile of runs of which every request is drawn by itself, as numpy computes it."""
    count = len(ms)
    index = np.random.default_rng(0).integers(count, size=(RESAMPLES, count))
    return np.percentile(ms[index], p, axis=1)


def test_of_a_request_without_values_there_is_no_mean() -> None:
    means = values([], [3.0, 1.0, 1.0, 1.0]).means
    assert np.isnan(means[0])
    assert means[1] == 1.5


@pytest.mark.parametrize("p", [50, 90])
def test_percentiles_of_runs_drawn_anew_scatter_as_if_each_had_been_sorted(p: float) -> None:
    ms = np.random.default_rng(3).exponential(20.0, 800)
    found, right = each(*ms).percentile(p, 1, 0), drawn(ms, p)
    assert found is not None
    assert found.mean() == pytest.approx(right.mean(), rel=0.01)
    assert found.std() == pytest.approx(right.std(), rel=0.15)


def test_a_percentile_of_a_run_that_shows_no_difference_is_its_own() -> None:
    found = each(*[7.0] * 200).percentile(50, 5, 0)
    assert found is not None
    assert (found == 7.0).all()


def test_percentiles_of_few_values_are_not_told() -> None:
    assert each(*np.arange(661.0)).percentile(99, 1, 0) is None
    assert each(*np.arange(662.0)).percentile(99, 1, 0) is not None
    assert each(*np.arange(662.0)).percentile(0, 1, 0) is None
    assert values().percentile(50, 1, 0) is None


def test_gaps_of_one_request_share_its_fate() -> None:
    """A hundred gaps of each of 200 requests tell what 200 requests tell, not what 20,000 would."""
    levels = np.random.default_rng(1).normal(10.0, 1.0, 200)
    found = values(*(np.full(100, level) for level in levels))
    means, medians = found.mean(1, 0), found.percentile(50, 1, 0)
    assert means is not None
    assert medians is not None
    assert means.std() == pytest.approx(levels.std() / np.sqrt(200), rel=0.15)
    assert medians.std() == pytest.approx(drawn(levels, 50).std(), rel=0.3)


def test_values_that_share_their_fate_are_fewer_than_they_are() -> None:
    """A thousand requests in lumps of 20 are fifty, of which nothing is said."""
    levels = np.random.default_rng(1).normal(10.0, 1.0, 50)
    lumps, apart = each(*np.repeat(levels, 20)), each(*np.random.default_rng(1).normal(10.0, 1.0, 1000))
    assert lumps.mean(20, 0) is None
    assert lumps.percentile(50, 20, 0) is None
    assert apart.mean(20, 0) is not None
    assert apart.percentile(50, 20, 0) is not None
