"""Numbers are as exact as they were printed; arithmetic keeps their bounds."""

import pytest

from loadgen.lab.audit.number import UNKNOWN, Number, change, plain


def test_a_printed_number_lies_within_half_a_unit_of_its_last_digit() -> None:
    found = Number.printed("7.80")
    assert (found.low, found.value, found.high) == pytest.approx((7.795, 7.8, 7.805))
    assert Number.printed("1,234.5").value == 1234.5
    assert (Number.printed("-13.8").low, Number.printed("−13.8").high) == pytest.approx(
        (-13.85, -13.75)
    )


def test_a_quotient_is_as_wide_as_its_parts_allow() -> None:
    rate = Number.exact(131_698) / Number.printed("7.80")
    assert (rate.low, rate.high) == pytest.approx((131_698 / 7.805, 131_698 / 7.795))
    assert rate.agrees(Number.printed("16884.75"))
    assert not rate.agrees(Number.printed("16900.00"))


def test_a_difference_and_a_product_bound_what_they_are_made_of() -> None:
    a, b = Number.printed("3.0"), Number.printed("1.0")
    assert ((a - b).low, (a - b).high) == pytest.approx((1.9, 2.1))
    assert ((a * -2).low, (a * -2).high) == pytest.approx((-6.1, -5.9))
    assert (a + b).value == 4.0


def test_a_quotient_of_a_possible_zero_is_unknown() -> None:
    assert Number.exact(1) / Number.printed("1.00")
    assert not Number.exact(1) / Number.printed("0.00")


def test_what_follows_from_an_unknown_number_is_unknown() -> None:
    found = (UNKNOWN + 1) * 0 / Number.exact(2)
    assert not found
    assert str(found) == "n/a"


def test_an_unknown_number_neither_agrees_with_another_nor_differs() -> None:
    known = Number.exact(2)
    assert known.agrees(known)
    assert known.differs(Number.exact(3))
    assert not any(
        (
            UNKNOWN.agrees(known),
            known.agrees(UNKNOWN),
            UNKNOWN.differs(known),
            known.differs(UNKNOWN),
        )
    )
    assert not any((UNKNOWN.above(known), known.above(UNKNOWN), UNKNOWN.agrees(UNKNOWN)))


def test_above_is_certain_or_not_at_all() -> None:
    assert Number.exact(1.0).above(0.99)
    assert not Number.printed("1.0").above(0.99)


def test_numbers_are_printed_without_needless_digits() -> None:
    assert [plain(512.0), plain(27021.6743), plain(0.02759)] == ["512", "27021.67", "0.0276"]
    assert [change(1.5), change(0.99991)] == ["+50.00%", "-0.01%"]
