"""What can be derived from a Prometheus histogram with certainty."""

import math

import pytest

from loadgen.metrics.server.series import PromHistogram

INF = math.inf
# 10 values: 4 to 1 s, 5 more to 2 s, one beyond 4 s.
SEEN = PromHistogram(10, 18.0, {1.0: 4, 2.0: 9, 4.0: 9, INF: 10})


def test_the_mean_is_exact():
    assert SEEN.mean == 1.8
    assert PromHistogram(1, 0.5, {}).mean == 0.5
    assert PromHistogram(0, 0.0, {}).mean is None


@pytest.mark.parametrize(
    ("p", "between"),
    [
        (0, (0.0, 1.0)),
        (33, (0.0, 1.0)),
        (34, (0.0, 2.0)),
        (50, (1.0, 2.0)),
        (88, (1.0, 2.0)),
        (99, (1.0, None)),
    ],
)
def test_percentile_lies_between_the_bounds_of_its_two_ranks(p, between):
    assert SEEN.interval(p) == between


def test_a_rank_beyond_the_last_finite_bound_lies_above_it():
    assert SEEN.interval(100) == (4.0, None)


def test_without_values_or_bounds_a_percentile_lies_nowhere():
    assert PromHistogram(0, 0.0, {1.0: 0}).interval(50) is None
    assert PromHistogram(5, 1.0, {}).interval(50) is None


def test_parts_add_up_and_what_was_before_is_taken_away_bound_by_bound():
    late = PromHistogram(3, 2.0, {0.5: 1, INF: 3})
    whole = SEEN + late
    assert (whole.count, whole.sum) == (13, 20.0)
    assert whole.upto == {0.5: 1, 1.0: 4, 2.0: 9, 4.0: 9, INF: 13}
    assert whole - late == PromHistogram(10, 18.0, {0.5: 0, 1.0: 4, 2.0: 9, 4.0: 9, INF: 10})


def test_prom_histogram_is_read_back_from_json_without_infinity():
    told = SEEN.to_dict()
    assert told["upto"][-1] == [None, 10]
    assert PromHistogram.from_dict(told) == SEEN
