"""Number format: percentile names, milliseconds and shares, and n/a for unmeasured values."""

import pytest

from loadgen.util.number_format import (
    SHARE,
    duration,
    duration_range,
    first_of,
    fixed,
    four_digits,
    in_ms,
    in_one_unit,
    in_table,
    latency,
    ms,
    parse_range,
    parse_whole_number,
    percent,
    percentile,
    plural,
    quantity,
    rounded_up,
    to_ms,
    value_range,
)


@pytest.mark.parametrize(
    ("p", "name"),
    [
        (99.0, "p99"),
        (50, "p50"),
        (99.9, "p99.9"),
        (0.0, "p0"),
        (100.0, "p100"),
        (99.999999, "p99.999999"),
    ],
)
def test_a_percentile_is_named_without_a_needless_fraction(p, name):
    assert percentile(p) == name


def test_milliseconds_are_written_to_the_microsecond():
    assert (to_ms(1_500_400), ms(1_500_400), ms(0)) == (1.5004, "1.500 ms", "0.000 ms")


def test_shares_are_written_as_percentages():
    assert (percent(0.127), percent(0.127, 1), percent(0.0, 2), percent(1.0)) == (
        "13%",
        "12.7%",
        "0.00%",
        "100%",
    )


def test_unmeasured_values_are_n_a():
    assert (to_ms(None), ms(None), percent(None), percent(None, 2)) == (None, "n/a", "n/a", "n/a")


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.3, "0.3 s"),
        (9, "9 s"),
        (89, "89 s"),
        (90, "1.5 min"),
        (600, "10 min"),
        (5400, "1.5 h"),
        (36001, "10 h"),
    ],
)
def test_times_are_said_for_people(seconds, said):
    assert duration(seconds) == said


@pytest.mark.parametrize(
    ("least", "most", "said"),
    [(180, 300, "3 to 5 min"), (50, 120, "50 s to 2 min"), (600, 610, "10 min"), (60, 60, "60 s")],
)
def test_duration_range_shares_its_unit(least, most, said):
    assert duration_range(least, most) == said


def test_two_numbers_that_are_the_same_are_said_once():
    assert (value_range(2, 3), value_range(2, 2)) == ("2 to 3", "2")


def test_fixed_decimals_and_four_digits():
    assert (fixed(1.5), fixed(2, 0), fixed(1.25, 1, "s")) == ("1.500", "2", "1.2 s")
    assert (four_digits(37.0213), four_digits(12345.6, "ms"), four_digits(0.5, "/s")) == (
        "37.02",
        "12346 ms",
        "0.5 /s",
    )
    assert (fixed(None), fixed(None, 1, "s"), four_digits(None, "ms")) == ("n/a", "n/a", "n/a")


def test_plural_is_not_used_for_a_count_of_1():
    assert [plural(number, "request") for number in (0, 1, 2)] == [
        "0 requests",
        "1 request",
        "2 requests",
    ]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.01, SHARE, "1%"),
        (0.123456, SHARE, "12.35%"),
        (1 / 300, SHARE, "0.3333%"),
        (3e-8, SHARE, "0%"),
        (12345, "", "12345"),
        (1.5, "ms", "1.5 ms"),
    ],
)
def test_a_quantity_has_four_digits_and_a_share_is_a_percentage(value, unit, text):
    assert quantity(value, unit) == text


def test_nanoseconds_are_shown_in_ms():
    assert (in_ms(1_500_000), in_ms(None)) == ("1.5 ms", "n/a")


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0611, "0.062"), (0.24, "0.24"), (0.2401, "0.25"), (19.2, "20"), (120.3, "130"), (0.0, "0")],
)
def test_a_bound_is_never_rounded_down(value, text):
    assert rounded_up(value) == text


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0.5, "0.5 ms"), (9999.0, "9999 ms"), (10_000.0, "10 s"), (38_437.0, "38.4 s"), (None, "n/a")],
)
def test_a_long_latency_is_in_seconds(ms, text):
    assert latency(ms) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((8.01, "8.010"), (0.08368, "0.08368"), (215.0, "215.0"), (999.96, "1000")),
        *((38_437.1, "38437"), (0.0, "0.000"), (None, "n/a")),
    ],
)
def test_a_number_in_a_table_has_four_digits(value, text):
    assert in_table(value) == text


def test_latencies_beside_each_other_have_one_unit():
    assert in_one_unit(300.0, 12_000.0) == ["0.3 s", "12 s"]
    assert in_one_unit(300.0, None, float("inf")) == ["300 ms", "n/a", "inf ms"]


def test_long_lists_say_how_much_they_leave_out():
    assert (first_of(["a"], 2), first_of(["a", "b"], 2), first_of(["a", "b", "c"], 2)) == (
        "a",
        "a, b",
        "a, b and 1 more",
    )


@pytest.mark.parametrize(("text", "ends"), [("3", (3, 3)), ("2:8", (2, 8)), ("4:4", (4, 4))])
def test_a_range_is_one_number_or_two(text, ends):
    assert parse_range(text, parse_whole_number) == ends


@pytest.mark.parametrize(
    "text", ["", ":", "2:", ":8", "8:2", "1:2:3", "-1", "+1", "1.5", "1_0", " 1", "٣"]
)
def test_what_is_no_range_of_whole_numbers_is_none(text):
    assert parse_range(text, parse_whole_number) is None
