"""Sufficiency notes: too few values, an unsteady load, requests given up."""

import numpy as np
import pytest

from loadgen.checks import PILE_UP, sufficiency, verdict
from loadgen.config.settings import RunSettings
from loadgen.core.outcome import Outcome
from loadgen.workload.arrivals import Schedule
from tests.helpers.run_facts import failed, measured, result, run_data, steady, unsent

OPEN = RunSettings(request_rate=20.0)


def of(records, settings=OPEN, schedule=None):
    """The checks by name."""
    checks = sufficiency(run_data(records, settings, schedule))
    return {check.name: check for check in checks}


def run(count, **options):
    return measured(steady(i, due=i * 50, **options) for i in range(count))


# -- percentiles


@pytest.mark.parametrize(
    ("count", "percentiles", "few"),
    [
        (662, "99", None),
        (661, "99", "p99 needs 662"),
        (63, "99", "p90 needs 64, p99 needs 662"),
        (662, "99.9", "p99.9 needs 6636"),
        (662, "5,95", None),
        (5, "100", "p50 needs 11, p90 needs 64, p99 needs 662"),
    ],
)
def test_every_printed_percentile_needs_its_values(count, percentiles, few):
    check = of(run(count), RunSettings(metric_percentiles=percentiles))["too few for percentiles"]
    assert check.ok is (few is None)
    assert check.value == (f"{count} values" if few is None else f"{count} values, and {few}")


def test_the_metric_of_the_fewest_values_decides():
    one_token = [steady(i, n=1) for i in range(600)]
    several = [steady(600 + i, n=2) for i in range(100)]
    assert of(measured([*one_token, *several]))["too few for percentiles"].value.startswith(
        "100 values, and p99 needs"
    )


def test_a_metric_that_was_not_measured_needs_none():
    assert of(run(700, n=1))["too few for percentiles"].ok


def test_without_a_success_there_is_no_percentile():
    assert of(measured([failed()]))["too few for percentiles"].ok is None


def test_the_percentiles_of_an_slo_are_judged_apart_and_count():
    checks = of(run(130), RunSettings(slo="ttft_p95<1s"))
    assert checks["too few for the SLO"].ok is True
    check = of(run(129), RunSettings(slo="ttft_p95<1s,tpot_mean<1s"))["too few for the SLO"]
    assert (check.ok, check.counts) == (False, True)
    assert check.value == "129 values, and p95 needs 130"


def test_too_few_for_the_slo_can_be_allowed():
    check = of(run(10), RunSettings(slo="ttft_p99<1s", allow_few=True))["too few for the SLO"]
    assert (check.ok, check.counts) == (False, False)


def test_a_median_is_a_percentile_and_means_maxima_and_rates_are_none():
    assert of(run(10), RunSettings(slo="ttft_median<1s"))["too few for the SLO"].ok is False
    for slo in (None, "ttft_mean<1s", "e2el_max<1s", "error_rate<1%"):
        assert of(run(10), RunSettings(slo=slo))["too few for the SLO"].ok is None


@pytest.mark.parametrize("metric", ["icl", "itl"])
def test_gaps_of_a_request_are_one_value(metric):
    """Those of all streams share the engine's steps."""
    check = of(run(10, n=100), RunSettings(slo=f"{metric}_p99<1s"))["too few for the SLO"]
    assert (check.ok, check.value) == (False, "10 values, and p99 needs 662")
    assert of(run(662, n=3), RunSettings(slo=f"{metric}_p99<1s"))["too few for the SLO"].ok is True


# -- steadiness


def piling_up(count=600):
    """Requests come at 20/s and take longer and longer, as in front of a server that ends 10/s."""
    return measured(steady(i, due=i * 50, ttft=100 + i * 50, n=1) for i in range(count))


def test_requests_that_pile_up_are_red_and_called_overload():
    schedule = Schedule.constant(20, 600)
    check = of(piling_up(), OPEN, schedule)[PILE_UP]
    assert check.ok is False
    assert check.value == "unfinished requests grew from 11 to 301 in 29 s"
    own = result(piling_up(), OPEN, schedule=schedule, checks=[check])["loadgen"]
    assert own["overloaded"] is True


def test_a_steady_load_is_green_and_no_overload():
    schedule = Schedule.constant(20, 600)
    check = of(run(600), OPEN, schedule)[PILE_UP]
    assert check.ok is True
    assert (
        result(run(600), OPEN, schedule=schedule, checks=[check])["loadgen"]["overloaded"] is False
    )


@pytest.mark.parametrize("settings", [RunSettings(), RunSettings(max_concurrency=4)])
def test_a_burst_and_a_closed_loop_are_no_overload(settings):
    check = of(piling_up(), settings, Schedule.burst(600))[PILE_UP]
    assert check.ok is None
    assert result(piling_up(), settings, checks=[check])["loadgen"]["overloaded"] is None


def test_a_run_too_short_for_its_latencies_is_not_judged():
    schedule = Schedule.constant(20, 600)
    slow = measured(steady(i, due=i * 50, ttft=10_000, n=1) for i in range(600))
    check = of(slow, OPEN, schedule)[PILE_UP]
    assert (check.ok, check.limit) == (None, "the run is too short for its latencies")


# -- requests given up


def given_up(index, outcome=Outcome.TIMEOUT, after_ms=30):
    record = failed(index, outcome)
    record.closed = record.due + round(after_ms * 1e6)
    return record


def test_requests_given_up_are_counted_at_their_bound():
    records = [
        *(steady(i) for i in range(98)),
        given_up(98, after_ms=5000),
        given_up(99, after_ms=5000),
    ]
    check = of(measured(records))["requests given up"]
    assert check.ok is False
    assert check.value.startswith(
        "2 given up, p99 E2EL from scheduled send at least 5000 ms with them, 40 ms without"
    )
    unfinished = result(measured(records))["loadgen"]["unfinished"]
    assert unfinished == {"count": 2, "p99_e2el_due_at_least_ms": pytest.approx(5000, rel=1e-3)}


def test_bound_below_the_measured_value_is_not_printed():
    records = [
        *(steady(i, ttft=3000) for i in range(98)),
        given_up(98, after_ms=30),
        given_up(99, after_ms=30),
    ]
    assert of(measured(records))["requests given up"].value == "2 given up"


@pytest.mark.parametrize(
    "outcome", [Outcome.TIMEOUT, Outcome.TIMEOUT_FIRST_TOKEN, Outcome.STALLED, Outcome.CANCELLED]
)
def test_every_way_to_give_up_is_one(outcome):
    assert of(measured([steady(0), given_up(1, outcome)]))["requests given up"].ok is False


def test_requests_failed_at_once_or_unsent_are_not_given_up():
    records = [steady(0), failed(1), failed(2, Outcome.STATUS), unsent(3)]
    check = of(measured(records))["requests given up"]
    assert (check.ok, check.value) == (True, "0 given up")


def test_where_all_were_given_up_the_bound_stands_alone():
    check = of(measured([given_up(0)]))["requests given up"]
    assert check.value == "1 given up, p99 E2EL from scheduled send at least 30 ms with them"
    assert of(measured([unsent()]))["requests given up"].ok is None


# -- notes


def poor(settings):
    """The checks of a run that fails each of them."""
    records = [steady(i, due=i * 50, ttft=100 + i * 50, n=1) for i in range(599)]
    return list(
        of(measured([*records, given_up(599)]), settings, Schedule.constant(20, 600)).values()
    )


def red(settings, *, counts):
    return {check.name for check in poor(settings) if check.ok is False and check.counts is counts}


ALL = {"too few for percentiles", PILE_UP, "requests given up"}


def test_by_themselves_they_are_notes_and_leave_the_run_valid():
    assert red(OPEN, counts=False) == ALL
    assert red(OPEN, counts=True) == set()
    assert verdict(poor(OPEN)) == "VALID"


def test_strict_makes_them_count():
    assert red(OPEN.replace(strict=True), counts=True) == ALL
    assert verdict(poor(OPEN.replace(strict=True))) == "SUSPECT"


def test_an_slo_makes_them_count_but_for_percentiles_it_does_not_limit():
    settings = OPEN.replace(slo="ttft_mean<1s")
    assert red(settings, counts=True) == {PILE_UP, "requests given up"}
    assert red(settings, counts=False) == {"too few for percentiles"}


def test_a_percentile_that_an_slo_limits_is_judged_once():
    settings = OPEN.replace(slo="ttft_p99<1s")
    assert red(settings, counts=True) == {PILE_UP, "requests given up", "too few for the SLO"}
    assert red(settings, counts=False) == set()


# -- intervals


def test_percentiles_of_gaps_have_no_interval():
    assert not {"icl", "itl"} & set(result(run(100), OPEN)["loadgen"]["intervals_ms"])


def test_intervals_stand_beside_the_numbers_which_stay_numbers():
    ttfts_ms = np.random.default_rng(0).exponential(100, 400)
    records = [steady(i, due=i * 50, ttft=ttft) for i, ttft in enumerate(ttfts_ms)]
    own = result(measured(records), OPEN)["loadgen"]
    low, high = own["intervals_ms"]["ttft_due"]["p50"]
    assert low < own["latency_ms"]["ttft_due"]["p50"] < high
    assert own["intervals_ms"]["ttfo_due"] == own["intervals_ms"]["ttft_due"]
    # of few requests, and of the other clock
    assert own["intervals_ms"]["ttft_due"]["p99"] == [None, None]
    assert own["intervals_ms"]["ttft_sent"]["p50"] == [None, None]


def test_every_check_has_one_line_value_limit_and_advice():
    for check in [*poor(OPEN), *of(measured([])).values()]:
        for text in (check.value, check.limit, check.advice):
            assert text
            assert "\n" not in text
