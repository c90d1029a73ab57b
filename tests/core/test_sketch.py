"""A sketch has the distribution of its histogram, a little coarser, and merges without loss."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.core.histogram import DAY_NS, Histogram
from loadgen.core.sketch import MAX_ERROR, Sketch

NANOSECONDS = st.integers(0, 46).flatmap(lambda bits: st.integers(0, min(2 ** (bits + 1), DAY_NS)))
VALUES = st.lists(NANOSECONDS, max_size=200)


def histogram_of(values):
    histogram = Histogram()
    histogram.record_many(np.asarray(values, dtype=np.int64))
    return histogram


def sketch_of(values):
    return Sketch.of(histogram_of(values))


@given(st.lists(NANOSECONDS, min_size=1, max_size=200), st.floats(0, 100))
def test_sketch_percentile_is_within_max_error(values, p):
    truth_ms = np.percentile(values, p) / 1e6
    assert abs(sketch_of(values).percentile_ms(p) - truth_ms) <= MAX_ERROR * truth_ms + 32e-6


@given(VALUES, VALUES)
def test_sketches_of_two_parts_add_up(some, others):
    assert (
        sketch_of(some) + sketch_of(others)
        == sketch_of(others) + sketch_of(some)
        == sketch_of(some + others)
    )
    assert list((sketch_of(some) + sketch_of(others)).counts) == list(
        sketch_of(some + others).counts
    )


@given(VALUES, VALUES)
def test_difference_of_sketches_has_the_later_values(some, others):
    assert sketch_of(some + others) - sketch_of(some) == sketch_of(others)


@given(st.lists(NANOSECONDS, min_size=1, max_size=200))
def test_sketch_values_are_read_by_rank(values):
    sketch = sketch_of(values)
    found = [sketch.value_at_rank(rank) for rank in range(len(values))]
    assert found == sorted(found)
    assert all(
        abs(one - value) <= MAX_ERROR * value + 32
        for one, value in zip(found, sorted(values), strict=True)
    )
    assert sketch.value_at_rank(len(values)) == found[-1]


@given(VALUES)
def test_sketch_count_and_mean_are_exact(values):
    sketch = sketch_of(values)
    assert sketch.count == len(values)
    assert sketch.mean_ms == (pytest.approx(np.mean(values) / 1e6) if values else None)


def test_sketch_names_common_percentiles():
    sketch = sketch_of([10_000_000] * 98 + [20_000_000, 400_000_000])
    assert sketch.p50_ms == sketch.p90_ms == pytest.approx(10, rel=MAX_ERROR)
    assert sketch.p99_ms == pytest.approx(np.percentile([10] * 98 + [20, 400], 99), rel=MAX_ERROR)


def test_empty_sketch_has_no_statistics():
    assert Sketch().p50_ms is Sketch().mean_ms is None
    assert Sketch().count == 0
    assert Sketch() + Sketch() == Sketch() == sketch_of([])


def test_sketch_of_a_run_is_a_few_hundred_bytes():
    # 66 ms, and a factor of ten about it
    spread = np.random.default_rng(7).lognormal(18, 0.5, 10**5).astype(np.int64)
    assert len(pickle.dumps(sketch_of(spread))) < 1000
