"""A sample of numbers: bounded, spread evenly, and the same as by a plain rule."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.core.number_sample import NumberSample
from loadgen.core.record import Record


def kept(sample: NumberSample, numbers: range) -> list[int]:
    """Those of the numbers whose records the sample keeps."""
    for number in numbers:
        sample.keep(Record(number))
    return [record.index for record in sample.records]


@given(st.integers(1, 5), st.integers(1, 20), st.integers(0, 500))
def test_every_other_number_leaves_a_sample_that_is_full(of: int, most: int, count: int) -> None:
    sample = NumberSample(of, most)
    taken: list[int] = []
    step = 1
    for place in range(count):
        index = place * of
        is_in = place % step == 0
        if is_in:
            taken.append(index)
        if len(taken) > most:
            step *= 2
            taken = [number for number in taken if number // of % step == 0]
            is_in = index in taken
        assert sample.take(index) is is_in
    assert kept(sample, range(0, count * of, of)) == taken
    assert len(taken) <= most


def test_numbers_may_come_in_any_order() -> None:
    sample = NumberSample(1, 2)
    taken = [index for index in (8, 3, 4, 0, 2, 6, 12) if sample.take(index)]
    assert taken == [8, 3, 4, 0]
    assert kept(sample, range(13)) == [0, 8]


def test_records_leave_with_their_numbers() -> None:
    sample = NumberSample(1, 2)
    records = sample.records
    for number in range(3):
        sample.take(number)
        sample.keep(Record(number))
        assert [record.index for record in records] == [[0], [0, 1], [0, 2]][number]


def test_a_run_of_no_workers_is_refused() -> None:
    with pytest.raises(ValueError, match="0"):
        NumberSample(0, 1)
