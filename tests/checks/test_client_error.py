"""The check of the client error: a printed latency may be off by 1 %, or 0.1 ms."""

import pytest

from loadgen.checks.distortion import client_error, figures
from loadgen.config.settings import RunSettings
from tests.helpers.run_facts import MS, measured, run_data, steady

SETTINGS = RunSettings(request_rate=100.0, latency_from="sent")


def run_of(*widths_ms, slo=None):
    """A run whose requests have a first token that may have come so much earlier than its stamp."""
    records = []
    for index, width_ms in enumerate(widths_ms):
        record = steady(index, due=index * 10, ttft=40, gap=20, n=20)
        stamps = record.stamps
        record.restore([], earliest=[(0, stamps[0] - round(width_ms * MS))])
        records.append(record)
    return run_data(measured(records), SETTINGS.replace(slo=slo))


def test_exact_stamps_leave_the_floor_and_the_resolution():
    (p99,) = [figure for figure in figures(run_of(*[0.0] * 100)) if figure[:2] == ("ttft", "p99")]
    assert p99.value_ms == pytest.approx(40, rel=1e-3)
    assert p99.error_ms == pytest.approx(0.052 + 0.0005 * 40, rel=0.05)
    assert all(check.ok for check in client_error(run_of(*[0.0] * 100)))


@pytest.mark.parametrize(("width_ms", "expected"), [(0.1, True), (0.5, False)])
def test_width_beyond_a_hundredth_of_the_figure_is_red(width_ms, expected):
    check, _ = client_error(run_of(*[width_ms] * 100))
    assert check.ok is expected


def test_finding_names_the_worst_figures():
    check, _ = client_error(run_of(*[8.0] * 100))
    assert check.value.startswith("8.072 ms at most on p50 TTFT of 40 ms, 8.072 ms on p99 TTFT of ")
    assert check.value.endswith("more")
    assert check.limit == "0.4 ms (1% of each, or 0.1 ms)"


def test_figures_beside_the_headline_are_a_note():
    """A gap may be off by far more than the headline: nobody asked for it."""
    records = [steady(index, due=index * 10, ttft=40, gap=20, n=20) for index in range(100)]
    for record in records:
        record.restore([], earliest=[(10, record.stamps[10] - 8 * MS)])
    check, others = client_error(run_data(measured(records), SETTINGS))
    assert (check.ok, check.counts) == (True, True)
    assert (others.ok, others.counts) == (False, False)
    assert others.value.startswith("8.0")
    assert " ms at most on p99 ITL of 20 ms" in others.value


def test_latency_that_equals_another_is_not_named_again():
    assert {figure.metric for figure in figures(run_of(*[8.0] * 100))} == {
        "ttft",
        "tpot",
        "itl",
        "e2el",
    }


def test_percentile_of_the_slo_is_checked_too():
    run = run_of(*[0.0] * 990, *[30.0] * 10, slo="ttft_p0.5<100ms")
    assert [
        figure.statistic for figure in figures(run) if figure.metric == "ttft" and figure.excess > 1
    ] == ["p0.5"]


def test_run_without_a_success_has_no_error():
    assert [check.ok for check in client_error(run_data([], SETTINGS))] == [None, None]
