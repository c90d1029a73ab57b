"""Words: one way to name a percentile and to write milliseconds and shares; n/a for what was not measured."""

import pytest

from loadgen.words import ms, percent, percentile, to_ms


@pytest.mark.parametrize(
    ("p", "name"),
    [(99.0, "p99"), (50, "p50"), (99.9, "p99.9"), (0.0, "p0"), (100.0, "p100"), (99.999999, "p99.999999")],
)
def test_a_percentile_is_named_without_a_needless_fraction(p, name):
    assert percentile(p) == name


def test_milliseconds_are_written_to_the_microsecond():
    assert (to_ms(1_500_400), ms(1_500_400), ms(0)) == (1.5004, "1.500 ms", "0.000 ms")


def test_shares_are_written_as_percentages():
    assert (percent(0.127), percent(0.127, 1), percent(0.0, 2), percent(1.0)) == ("13%", "12.7%", "0.00%", "100%")


def test_what_was_not_measured_is_no_number():
    assert (to_ms(None), ms(None), percent(None), percent(None, 2)) == (None, "n/a", "n/a", "n/a")
