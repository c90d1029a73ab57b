"""A million values of several kinds: percentiles against sorting them, shards against the whole,
here and in `hdrh`.
"""

from functools import reduce
from operator import add

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram

from loadgen.core.histogram import DAY_NS, Histogram

COUNT = 1_000_000
PERCENTILES = (50, 90, 99, 99.9, 99.99, 99.999)
WIDTH = 1e-3
RNG = np.random.default_rng([1, *b"histograms"])
DRAWS = {
    "constant": np.full(COUNT, 20e6),
    "exponential": RNG.exponential(2e6, COUNT),
    "lognormal": RNG.lognormal(np.log(30e6), 1.5, COUNT),
    "bimodal": np.where(
        RNG.random(COUNT) < 0.99, RNG.normal(10e6, 1e6, COUNT), RNG.normal(900e6, 5e6, COUNT)
    ),
    "heavy tail": 1e6 * (1 + RNG.pareto(0.9, COUNT)),
    "microseconds": RNG.uniform(0, 5_000, COUNT),
}


@pytest.fixture(scope="module", params=DRAWS)
def values(request: pytest.FixtureRequest) -> np.ndarray:
    """A million sorted latencies, ns."""
    return np.sort(np.clip(DRAWS[request.param], 0, DAY_NS).astype(np.int64))


def folded(values: np.ndarray) -> Histogram:
    histogram = Histogram()
    histogram.record_many(values)
    return histogram


def test_percentiles_are_those_of_the_sorted_values(values: np.ndarray) -> None:
    histogram = folded(values)
    for p in PERCENTILES:
        assert histogram.percentile(p) == pytest.approx(np.percentile(values, p), rel=WIDTH)
    assert (histogram.min, histogram.max, histogram.total) == (values[0], values[-1], values.sum())


@pytest.mark.parametrize("shards", [1, 2, 7])
def test_shards_merge_into_the_whole(values: np.ndarray, shards: int) -> None:
    assert reduce(add, [folded(values[i::shards]) for i in range(shards)]) == folded(values)


def test_hdrhistogram_reads_the_same_percentiles_back(values: np.ndarray) -> None:
    """It takes the nearest rank, where numpy interpolates, and the upper end of a bucket."""
    read = HdrHistogram.decode(folded(values).encode())
    assert read.get_total_count() == COUNT
    for p in PERCENTILES:
        truth = values[round(p * COUNT / 100) - 1]
        assert read.get_value_at_percentile(p) == pytest.approx(truth, rel=WIDTH)
