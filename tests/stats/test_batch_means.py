"""Batch means: replicates of a ratio, whose standard deviation is its standard error."""

import numpy as np
import pytest

from loadgen.stats.batch_means import BATCHES, BatchMeans

EVEN = np.arange(100.0)


def test_replicates_vary_by_the_standard_error_of_the_mean_of_parts() -> None:
    replicates = BatchMeans(1).ratios(EVEN, np.ones(100), 0)
    error, df = BatchMeans(1).standard_error(replicates, 100)
    of_parts = EVEN.reshape(BATCHES, -1).mean(axis=1)
    assert replicates.mean() == pytest.approx(EVEN.mean())
    assert error == pytest.approx(of_parts.std(ddof=1) / np.sqrt(BATCHES))
    assert df == BATCHES - 1


def test_series_of_any_length_is_cut_into_parts_of_nearly_one_length() -> None:
    places = np.arange(103.0)
    parts = BatchMeans(1).ratios(places, np.ones(103), 0)
    steps = np.diff(parts) * np.sqrt(BATCHES)
    assert len(parts) == BATCHES
    assert steps == pytest.approx(103 / BATCHES, abs=0.6)


def test_ratio_weighs_observations_by_their_denominators() -> None:
    counts = np.tile([1.0, 9.0], 50)
    parts = BatchMeans(1).ratios(counts * np.tile([10.0, 20.0], 50), counts, 0)
    assert parts == pytest.approx(np.full(BATCHES, 19.0))


def test_part_without_observations_has_no_ratio() -> None:
    counts = np.r_[np.zeros(20), np.ones(80)]
    assert np.isnan(BatchMeans(1).ratios(counts, counts, 0)).sum() == 1
    assert np.isnan(BatchMeans(1).ratios(np.zeros(10), np.zeros(10), 0)).all()
