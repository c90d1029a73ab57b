"""LatencyValues: replicates of means and percentiles against those of numpy."""

import numpy as np
import pytest

from loadgen.analysis.compare.run_requests import LatencyValues
from loadgen.stats.block_bootstrap import RESAMPLES, BlockBootstrap
from loadgen.util.arrays import Floats
from tests.helpers.queue_runs import values


def each(*ms: float) -> LatencyValues:
    """A value for each request."""
    return values(*([one] for one in ms))


def drawn(ms: Floats, p: float) -> Floats:
    """The percentile of runs of which every request is drawn by itself, as numpy computes it."""
    count = len(ms)
    index = np.random.default_rng(0).integers(count, size=(RESAMPLES, count))
    return np.percentile(ms[index], p, axis=1)


def test_request_without_values_has_no_mean() -> None:
    means = values([], [3.0, 1.0, 1.0, 1.0]).means
    assert np.isnan(means[0])
    assert means[1] == 1.5


@pytest.mark.parametrize("p", [50, 90])
def test_percentiles_scatter_as_those_of_numpy(p: float) -> None:
    ms = np.random.default_rng(3).exponential(20.0, 800)
    found, right = each(*ms).resample_percentile(p, BlockBootstrap(1), 0), drawn(ms, p)
    assert found is not None
    assert found.mean() == pytest.approx(right.mean(), rel=0.01)
    assert found.std() == pytest.approx(right.std(), rel=0.15)


def test_percentile_of_equal_values_does_not_vary() -> None:
    found = each(*[7.0] * 200).resample_percentile(50, BlockBootstrap(5), 0)
    assert found is not None
    assert (found == 7.0).all()


def test_too_few_values_have_no_percentile() -> None:
    assert each(*np.arange(661.0)).resample_percentile(99, BlockBootstrap(1), 0) is None
    assert each(*np.arange(662.0)).resample_percentile(99, BlockBootstrap(1), 0) is not None
    assert each(*np.arange(662.0)).resample_percentile(0, BlockBootstrap(1), 0) is None
    assert values().resample_percentile(50, BlockBootstrap(1), 0) is None


def test_gaps_of_one_request_count_as_one() -> None:
    """A hundred gaps of each of 200 requests tell what 200 requests tell, not what 20,000 would."""
    levels = np.random.default_rng(1).normal(10.0, 1.0, 200)
    found = values(*(np.full(100, level) for level in levels))
    means, medians = (
        found.resample_mean(BlockBootstrap(1), 0),
        found.resample_percentile(50, BlockBootstrap(1), 0),
    )
    assert means is not None
    assert medians is not None
    assert means.std() == pytest.approx(levels.std() / np.sqrt(200), rel=0.15)
    assert medians.std() == pytest.approx(drawn(levels, 50).std(), rel=0.3)


def test_clusters_are_too_few_values() -> None:
    """A thousand requests in lumps of 20 are fifty, of which nothing is said."""
    levels = np.random.default_rng(1).normal(10.0, 1.0, 50)
    lumps, apart = (
        each(*np.repeat(levels, 20)),
        each(*np.random.default_rng(1).normal(10.0, 1.0, 1000)),
    )
    assert lumps.resample_mean(BlockBootstrap(20), 0) is None
    assert lumps.resample_percentile(50, BlockBootstrap(20), 0) is None
    assert apart.resample_mean(BlockBootstrap(20), 0) is not None
    assert apart.resample_percentile(50, BlockBootstrap(20), 0) is not None
