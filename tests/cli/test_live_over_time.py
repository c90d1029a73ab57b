"""A run over time in the live view: its columns, and how they are drawn."""

import pytest

from loadgen.cli.live.history import ASCII_LEVELS, COLUMN_S, LEVELS, MAX_COLUMNS, OverTime, bars
from loadgen.core.sketch import Sketch
from loadgen.metrics.progress import Progress
from tests.helpers.live_text import sketch


def over_time(*moments: tuple[float, int, Sketch]) -> OverTime:
    found = OverTime()
    for elapsed_s, in_flight, ttft in moments:
        found.add(Progress("running", elapsed_s, in_flight=in_flight, ttft=ttft))
    return found


def test_each_column_has_the_median_of_its_own_requests() -> None:
    found = over_time(
        (0.1, 3, sketch(10)), (0.3, 5, sketch(10, 80, 80)), (0.6, 4, sketch(10, 80, 80))
    )
    assert found.in_flight == [3, 5, 4]
    first, second, third = found.ttft_p50_ms
    assert (first, second) == (pytest.approx(10, rel=0.04), pytest.approx(80, rel=0.04))
    assert third is None


def test_a_column_without_progress_repeats_the_number_in_flight() -> None:
    found = over_time((0.1, 3, Sketch()), (1.1, 9, sketch(10)))
    assert found.in_flight == [3, 9, 9, 9, 9]
    assert found.ttft_p50_ms[:4] == [None] * 4


def test_columns_become_longer_and_not_more() -> None:
    count = 3 * MAX_COLUMNS + 1
    values = [10.0 + number for number in range(count)]
    found = OverTime()
    for number in range(count):
        found.add(
            Progress(
                "running", number * COLUMN_S, in_flight=number, ttft=sketch(*values[: number + 1])
            )
        )
    assert MAX_COLUMNS / 2 < len(found.in_flight) <= MAX_COLUMNS
    assert found.in_flight[-1] == count - 1
    assert found.in_flight == sorted(found.in_flight)
    assert None not in found.ttft_p50_ms
    assert found.ttft_p50_ms[-1] == pytest.approx(values[-1], rel=0.05)


@pytest.mark.parametrize(("ascii_only", "levels"), [(False, LEVELS), (True, ASCII_LEVELS)])
def test_bars_fill_the_height_in_eighths(ascii_only: bool, levels: str) -> None:
    assert bars([0, 1, 4, 8, None], 1, ascii_only=ascii_only) == [
        levels[0] + levels[1] + levels[4] + levels[8] + levels[0]
    ]
    assert bars([4, 8], 2, ascii_only=ascii_only) == [levels[0] + levels[8], levels[8] * 2]


def test_a_small_value_is_seen_and_nothing_is_empty() -> None:
    assert bars([1, 1000], 1) == ["▁█"]
    assert bars([0, 0], 2) == ["  ", "  "]
    assert bars([], 1) == [""]
