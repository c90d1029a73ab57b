"""Reads what a Snapshot says in milliseconds, so that a test can state it in its head."""

import pytest

from tests.helpers.run_facts import MS


def values(snapshot, name):
    """The values of a histogram, ms: exact while no two share a bucket, as minimum and maximum
    always are.
    """
    histogram = snapshot.histograms[name]
    return [(low + high) / 2 / MS for low, high, count in histogram for _ in range(count)]


def only(snapshot, name):
    """The one value of a histogram, ms."""
    histogram = snapshot.histograms[name]
    assert (histogram.count, histogram.min) == (1, histogram.max)
    return histogram.min / MS


def about(*ms):
    return pytest.approx(ms, rel=1e-3)
