"""Impossible results: red when numbers contradict each other, whatever the server did."""

import pytest
from msgspec import structs

from loadgen.checks import impossible
from loadgen.core.histogram import DAY_NS, Histogram
from loadgen.core.outcome import Outcome
from loadgen.metrics.snapshot import BIN_NS, ROW
from tests.helpers.check_states import failed_checks
from tests.helpers.run_facts import MS, answered, at, failed, measured, run_data, steady, unsent

RUN = [
    *(steady(i, due=i * 7, ttft=20 + i, gap=10 + i % 3, n=1 + i % 5) for i in range(40)),
    answered(40, tokens=[20, 20, 40], counts={"completion_tokens": 9}),
    failed(41, Outcome.TRUNCATED),
    failed(42, Outcome.STATUS),
    unsent(43),
]


def of(snapshot):
    """The checks by name."""
    checks = impossible(run_data(snapshot))
    assert all(check.counts for check in checks)
    return {check.name: check for check in checks}


def with_counter(name, more):
    snapshot = measured(RUN)
    return structs.replace(
        snapshot, counters=snapshot.counters | {name: snapshot.counters[name] + more}
    )


def test_a_run_of_all_kinds_of_endings_is_green_in_every_check():
    checks = of(measured(RUN))
    assert failed_checks(checks) == []
    assert all(check.ok for check in checks.values())


def test_merged_stripes_are_green():
    assert failed_checks(of(measured(RUN[:20]).merge(measured(RUN[20:])))) == []


def test_without_a_success_only_what_was_sent_is_judged():
    checks = of(measured([failed(0), unsent(1)]))
    assert failed_checks(checks) == []
    assert [name for name, check in checks.items() if check.ok is None] == [
        "latencies disagree",
        "peak below the mean",
        "median gap 0",
        "token counts disagree",
        "more events than tokens",
        "tokens in no text",
        "tokens of the first event",
    ]
    assert of(measured([unsent()]))["Little's identity"].ok is None


# -- sums


def test_a_request_whose_latencies_do_not_add_up_is_red():
    checks = of(with_counter("unequal", 1))
    assert failed_checks(checks) == ["latencies disagree"]
    assert checks["latencies disagree"].value == (
        "1 of 41 answers where TTFT + decoding is not E2EL"
    )


@pytest.mark.parametrize("name", ["e2el_sent", "ttft_sent", "icl"])
def test_a_nanosecond_missing_from_a_sum_is_red(name):
    snapshot = measured(RUN)
    other = Histogram()
    for low, _, count in snapshot.histograms[name]:
        other.record(low, count)
    assert other.total != snapshot.histograms[name].total
    broken = structs.replace(snapshot, histograms=snapshot.histograms | {name: other})
    assert failed_checks(of(broken)) == ["sums disagree"]
    assert failed_checks(of(with_counter("stream_ns", 1))) == ["sums disagree"]


def test_sums_that_left_values_out_are_not_compared():
    snapshot = measured(RUN)
    snapshot.histograms["icl"].record(DAY_NS + 1)
    assert of(snapshot)["sums disagree"].ok is None


# -- rates


def spread(seconds):
    """The snapshot of a stream that brings two tokens a second, for so long."""
    return measured(
        [answered(tokens=[500 * i for i in range(int(2 * seconds) + 1)], closed=seconds * 1000)]
    )


def test_a_peak_below_the_mean_is_red():
    snapshot = spread(10)
    tokens = snapshot.counters["output_tokens"]
    flattened = structs.replace(
        snapshot, counters=snapshot.counters | {"output_tokens": 2 * tokens}
    )
    assert of(flattened)["peak below the mean"].ok is False


@pytest.mark.parametrize("seconds", [0.5, 1, 1.5, 2, 9.5, 10])
def test_an_even_stream_has_a_peak_as_high_as_its_mean_however_long_it_is(seconds):
    assert of(spread(seconds))["peak below the mean"].ok is True


def test_tokens_missing_from_the_course_over_time_are_red():
    snapshot = measured(RUN)
    token_counts = snapshot.token_counts[:]
    token_counts[-1] -= 1
    checks = of(structs.replace(snapshot, token_counts=token_counts))
    assert "timeline tokens differ" in failed_checks(checks)
    tokens = snapshot.counters["output_tokens"]
    value = f"1 of {tokens} tokens: {tokens - 1} over time"
    assert checks["timeline tokens differ"].value == value


def test_bins_are_of_the_length_that_the_peak_is_reckoned_with():
    assert BIN_NS == 10 * MS


# -- gaps


def test_a_median_gap_of_0_is_red():
    checks = of(measured(answered(i, tokens=[20, 20, 20, 30]) for i in range(5)))
    assert failed_checks(checks) == ["median gap 0"]
    assert checks["median gap 0"].value == "0 ms median ICL"


def test_fewer_than_half_of_the_gaps_may_be_0():
    assert failed_checks(of(measured(answered(i, tokens=[20, 20, 30, 40]) for i in range(5)))) == []


# -- Little's identity


def test_sojourns_that_are_not_the_requests_in_flight_over_time_are_red():
    whole = measured(RUN).counters["sojourn_ns"]
    assert failed_checks(of(with_counter("sojourn_ns", whole // 100_000))) == ["Little's identity"]
    assert failed_checks(of(with_counter("sojourn_ns", whole // 10_000_000))) == []


def test_a_request_lost_from_the_arrays_breaks_the_identity():
    snapshot = measured(RUN)
    assert "Little's identity" in failed_checks(
        of(structs.replace(snapshot, rows=snapshot.rows[ROW.size :]))
    )


def test_a_record_that_closed_before_it_was_sent_still_adds_up():
    record = answered(tokens=[20, 30])
    record.closed = at(-5)
    assert of(measured([steady(1), record]))["Little's identity"].ok
