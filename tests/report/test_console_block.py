"""The block of `vllm bench serve` in the console report, row for row."""

import re

import pytest

from loadgen.config.settings import RunSettings
from tests.helpers.console_reports import (
    AS_RECORDED,
    RECORDED,
    RUN,
    block,
    labels,
    value,
)
from tests.helpers.run_facts import result, steady
from tests.helpers.saved_json import render


def test_the_block_has_the_recorded_rows_in_their_order():
    assert labels(block(AS_RECORDED)) == labels(RECORDED)


def test_each_row_has_the_form_of_the_recorded_one():
    for own, recorded in zip(block(AS_RECORDED), RECORDED, strict=True):
        assert len(own) == (50 if own[0] in "=-" else 51)
        form = re.sub(r"\d+", "1", recorded)
        assert re.sub(r"\d+", "1", own).rstrip() == form


def test_the_block_follows_the_state_and_an_empty_line_the_block():
    lines = render(result(RUN)).splitlines()
    begin = lines.index(RECORDED[0])
    state, following, *below = lines[begin - 2 :]
    assert state.startswith("OK")
    assert following.startswith("next: ")
    assert below[below.index("=" * 50) + 1] == ""


def test_the_rows_show_what_was_measured():
    rows = block(AS_RECORDED)
    assert value(rows, "Successful requests:") == "24"
    assert value(rows, "Total generated tokens:") == "768"
    assert value(rows, "Benchmark duration (s):") == "2.68"
    assert value(rows, "Mean TTFT (ms):") == "31.50"
    assert value(rows, "Mean TPOT (ms):") == "11.00"
    assert value(rows, "P99 ITL (ms):") == "11.00"


def test_by_default_ttft_tpot_and_itl_are_shown_with_their_p99():
    rows = labels(block())
    assert [row for row in rows if row.startswith("P")] == [
        "Peak output token throughput (tok/s):",
        "Peak concurrent requests:",
        "P99 TTFT (ms):",
        "P99 TPOT (ms):",
        "P99 ITL (ms):",
    ]
    assert not [row for row in rows if "E2EL" in row]


@pytest.mark.parametrize(
    ("settings", "after", "row"),
    [
        (
            {"max_concurrency": 7},
            "Failed requests:",
            "Maximum request concurrency:             7         ",
        ),
        (
            {"request_rate": 12.5},
            "Failed requests:",
            "Request rate configured (RPS):           12.50     ",
        ),
        (
            {"goodput": ("ttft:1000",)},
            "Request throughput (req/s):",
            "Request goodput (req/s):                 8.94      ",
        ),
    ],
)
def test_option_rows_stand_as_in_vllm_if_the_option_is_given(settings, after, row):
    records, limits = RUN, {"ttft": 10**9} if "goodput" in settings else None
    with_it, without = block(RunSettings(**settings), records, limits=limits), block()
    assert row in with_it
    assert labels(with_it)[with_it.index(row) - 1] == after
    assert [r for r in labels(with_it) if r not in labels(without)] == labels([row])


def test_concurrency_stands_before_the_rate():
    rows = labels(block(RunSettings(max_concurrency=7, request_rate=5.0)))
    assert rows.index("Maximum request concurrency:") + 1 == rows.index(
        "Request rate configured (RPS):"
    )


def test_a_fractional_percentile_keeps_its_fraction_and_a_whole_one_has_none():
    rows = labels(block(RunSettings(metric_percentiles="50.0,99.9")))
    assert "P50 TTFT (ms):" in rows
    assert "P99.9 TTFT (ms):" in rows


def test_unmeasured_values_are_n_a_not_zero():
    rows = block(records=[steady(i, n=1) for i in range(3)])
    for label in ("Mean TPOT", "Median TPOT", "P99 TPOT", "Mean ITL", "P99 ITL"):
        assert value(rows, f"{label} (ms):") == "n/a"
    rows = block(records=[])
    assert value(rows, "Request throughput (req/s):") == value(rows, "Mean TTFT (ms):") == "n/a"
    assert value(rows, "Successful requests:") == "0"
