"""Rates over time: a second may begin anywhere."""

import math
from array import array

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from loadgen.core.outcome import Outcome
from loadgen.metrics.throughput import (
    answer_rate,
    most_in_each,
    peak_concurrency,
    peak_output_rate,
    peak_output_tokens,
    steady_output_rate,
    wall_ns,
)
from tests.helpers.run_facts import MS, S, answered, failed, measured, planned, steady, unsent


def with_bins(tokens_per_ms):
    return structs.replace(measured([]), token_counts=array("q", tokens_per_ms))


def spans(*pairs):
    """A snapshot of requests sent and closed at these moments."""
    return measured(
        [steady(i, due=sent, ttft=closed - sent, n=1) for i, (sent, closed) in enumerate(pairs)]
    )


# -- the wall time


def test_the_wall_time_is_from_the_first_send_to_the_end_of_the_last_request():
    records = [steady(0, due=10, ttft=20, n=1), answered(1, due=5, sent=7, tokens=[20], closed=95)]
    assert wall_ns(measured(records)) == 88 * MS


def test_a_failure_that_was_sent_takes_its_time_too():
    assert wall_ns(measured([steady(0, ttft=10, n=1), failed(1, Outcome.TRUNCATED)])) == 30 * MS


def test_so_does_one_that_found_no_server():
    assert wall_ns(measured([steady(0, due=50, ttft=10, n=1), unsent(1, due=900)])) == 855 * MS


def test_wall_time_is_zero_without_a_sent_request():
    assert wall_ns(measured([unsent(0), unsent(1)])) == 0


# -- the rate of answers


@pytest.mark.parametrize(("answers", "rate"), [(9, None), (10, 20.0), (100, 20.0)])
def test_answers_at_an_even_pace_have_that_rate_however_long_each_takes(answers, rate):
    sent = [steady(i, due=50 * i, ttft=3000, n=1) for i in range(answers)]
    assert answer_rate(measured(sent)) == rate


def test_only_ok_answers_have_a_rate_of_answers():
    ok = [steady(i, due=50 * i, ttft=20, n=1) for i in range(10)]
    others = [
        failed(10, Outcome.TRUNCATED, due=9000),
        unsent(11, due=9000),
        failed(12, Outcome.CANCELLED, due=9000),
    ]
    assert answer_rate(measured([*ok, *others])) == 20.0


def test_rate_of_answers_is_the_same_for_one_worker_and_for_several():
    parts = [
        measured([steady(i, due=50 * i, ttft=20, n=1) for i in range(n, 20, 2)]) for n in range(2)
    ]
    assert answer_rate(parts[0].merge(parts[1])) == 20.0


def test_answers_that_end_together_have_no_rate():
    assert answer_rate(measured([steady(i, ttft=20, n=1) for i in range(20)])) is None


# -- the peak second


def test_the_peak_is_the_fullest_second_wherever_it_begins():
    bins = np.zeros(300, dtype=np.int64)
    bins[[10, 95, 105, 190]] = [1, 10, 10, 5]
    # No second of the clock holds both tens; the one from 950 ms on holds all but the first token.
    assert peak_output_tokens(with_bins(bins)) == 25


def test_a_second_holds_a_hundred_hundredths_and_no_more():
    bins = np.zeros(101, dtype=np.int64)
    bins[[0, 99, 100]] = [4, 2, 1]
    assert peak_output_tokens(with_bins(bins)) == 6


def test_peak_rate_of_a_run_under_a_second_is_its_mean():
    run = measured([answered(tokens=[20, 30, 40])])
    assert peak_output_rate(run) == pytest.approx(3e9 / wall_ns(run))
    assert peak_output_rate(run) > 3  # tokens, in less than a second


def test_peak_rate_of_a_longer_run_is_that_of_its_best_second():
    run = measured([steady(0, ttft=20, gap=100, n=21)])
    assert peak_output_rate(run) == peak_output_tokens(run) == 10


def test_without_tokens_the_peak_is_zero():
    assert peak_output_tokens(measured([failed()])) == 0
    assert peak_output_rate(measured([failed()])) == 0


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(1, 50)), min_size=1, max_size=60))
def test_the_peak_is_never_below_the_mean_of_the_run_nor_above_its_sum(arrivals):
    bins = np.zeros(max(hundredth for hundredth, _ in arrivals) + 1, dtype=np.int64)
    for hundredth, count in arrivals:
        bins[hundredth] += count
    peak = peak_output_tokens(with_bins(bins))
    assert math.ceil(bins.sum() / math.ceil(len(bins) / 100)) <= peak <= bins.sum()


# -- the steady part


def test_steady_window_is_from_p99_after_first_to_last_send():
    # 10 requests/s for 5 s, each answered by one token 500 ms later: 10 tok/s once the first have
    # ended.
    records = [steady(i, due=i * 100, ttft=500, n=1) for i in range(51)]
    assert steady_output_rate(measured(records)) == pytest.approx(10, rel=0.03)
    total = 51 / (wall_ns(measured(records)) / S)
    assert total == pytest.approx(9.27, abs=0.01)  # ramp and tail pull the plain rate down


def test_tokens_count_at_their_time_across_window_edges():
    # A request every 100 ms, its 10 tokens spread over the third of a second that follows: 100
    # tok/s.
    records = [steady(i, due=i * 100, ttft=50, gap=37, n=10) for i in range(60)]
    assert steady_output_rate(measured(records)) == pytest.approx(100, rel=0.01)


def test_a_window_shorter_than_a_second_is_unmeasured():
    assert (
        steady_output_rate(measured([steady(i, due=i * 100, ttft=500, n=1) for i in range(15)]))
        is None
    )


def test_burst_has_no_steady_rate():
    assert steady_output_rate(measured([steady(i, n=300) for i in range(10)])) is None


def test_run_without_success_has_no_steady_rate():
    assert steady_output_rate(measured([failed()])) is None
    assert steady_output_rate(measured([])) is None


# -- concurrency


def test_peak_concurrency_is_exact():
    assert peak_concurrency(spans((0, 100), (10, 50), (40, 60), (70, 90))) == 3


def test_closed_request_makes_room_for_one_sent_at_that_time():
    assert peak_concurrency(spans((0, 50), (50, 90), (90, 100))) == 1


def test_concurrency_lasts_until_the_response_has_closed():
    records = [answered(0, tokens=[20], closed=60), steady(1, due=40, ttft=10, n=1)]
    assert peak_concurrency(measured(records)) == 2


def test_failures_in_flight_count_and_requests_never_sent_do_not():
    assert peak_concurrency(measured([failed(0), failed(1), unsent(2), unsent(3)])) == 2
    assert peak_concurrency(measured([unsent(0)])) == 0
    assert peak_concurrency(measured([])) == 0


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(1, 60)), min_size=1, max_size=40))
def test_peak_concurrency_is_what_a_sweep_over_every_moment_finds(pairs):
    ends = [(sent, sent + length) for sent, length in pairs]
    expected = max(sum(sent <= ms < closed for sent, closed in ends) for ms in range(161))
    assert peak_concurrency(spans(*ends)) == expected


def test_a_cap_that_was_kept_is_never_exceeded():
    records, free = [], [0.0] * 4
    for index in range(40):  # four slots, each taken again the moment it is free
        slot = min(range(4), key=free.__getitem__)
        record = planned(index, due=free[slot])
        free[slot] += 7 + index % 5
        records.append(answered(index, due=free[slot] - 7 - index % 5, tokens=[free[slot]]))
        assert record.sent == records[-1].sent
    assert peak_concurrency(measured(records)) == 4


def test_the_most_in_each_stretch_counts_what_began_before_it():
    begins, ends = np.array([0, 5, 12, 12, 31]), np.array([11, 25, 13, 14, 40])
    assert most_in_each(begins, ends, np.array([0, 10, 20, 30, 40])).tolist() == [2, 3, 1, 1]
    assert most_in_each(begins[:0], ends[:0], np.array([0, 10, 20])).tolist() == [0, 0]
