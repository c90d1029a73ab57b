"""Distributions are guidellm's: weighted values, whose percentiles are values that occurred."""

import numpy as np
import pytest

from loadgen.lab.gpustack.request_stats import concurrency, distribution, rates
from tests.helpers.gpustack_contract import GUIDELLM


def test_each_value_counts_once_without_weights() -> None:
    found = distribution([4.0, 1.0, 2.0, 3.0, 10.0])
    assert (found["mean"], found["median"], found["min"], found["max"]) == (4, 3, 1, 10)
    assert (found["count"], found["total_sum"]) == (5, 20)
    assert (found["variance"], found["std_dev"]) == (10, pytest.approx(10**0.5))
    assert (
        found["percentiles"]["p10"],
        found["percentiles"]["p90"],
        found["percentiles"]["p99"],
    ) == (1, 10, 10)


def test_a_percentile_is_a_value_that_occurred() -> None:
    found = distribution(range(1, 101))["percentiles"]
    assert [found[name] for name in ("p001", "p01", "p50", "p95", "p99", "p999")] == [
        1,
        1,
        50,
        95,
        99,
        100,
    ]


def test_weights_decide_mean_and_percentiles() -> None:
    found = distribution([1.0, 9.0], [3, 1])
    assert (found["mean"], found["median"], found["mode"], found["count"]) == (3, 1, 1, 4)
    assert found["percentiles"]["p75"] == 1
    assert found["percentiles"]["p90"] == 9


def test_value_with_zero_weight_is_left_out() -> None:
    assert distribution([5.0, 7.0], [0, 2])["min"] == 7


def test_empty_distribution_has_guidellms_shape() -> None:
    nothing = GUIDELLM["benchmarks"][0]["metrics"]["request_latency"]["errored"]
    assert distribution(()) == nothing
    assert list(distribution([1.0])) == list(nothing)


def test_rates_are_taken_over_windows_of_at_least_a_second() -> None:
    found = rates([0.1, 0.2, 1.5, 2.9], [1, 1, 1, 5], 0.0, 3.0)
    assert (found["min"], found["median"], found["max"], found["count"]) == (1, 2, 5, 8)
    assert found["mean"] == pytest.approx(8 / 3)


def test_the_mean_rate_is_all_by_the_length_of_the_run_whatever_that_is() -> None:
    times = np.linspace(0, 2.75, 23)
    assert rates(times, np.full(23, 3.0), 0.0, 2.75)["mean"] == pytest.approx(69 / 2.75)
    assert rates([0.01], [5], 0.0, 0.02)["mean"] == pytest.approx(250)


def test_two_tokens_within_a_microsecond_are_no_rate_of_a_million() -> None:
    assert rates([1.0, 1.000001], [1, 1], 0.0, 4.0)["max"] == 2


def test_concurrency_is_weighed_by_how_long_it_lasted() -> None:
    found = concurrency(np.array([0.0, 1.0]), np.array([3.0, 4.0]), 0.0, 4.0)
    assert (found["mean"], found["median"], found["max"], found["count"]) == (1.5, 1, 2, 2)


def test_request_ending_as_another_begins_makes_room() -> None:
    assert concurrency(np.array([0.0, 1.0]), np.array([1.0, 2.0]), 0.0, 2.0)["max"] == 1


def test_concurrency_is_zero_outside_the_requests() -> None:
    found = concurrency(np.array([1.0]), np.array([2.0]), 0.0, 4.0)
    assert (found["min"], found["mean"]) == (0, 0.25)
