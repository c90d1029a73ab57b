"""Cadence: something that goes on is told of as it begins and when the last telling is old."""

import pytest

from loadgen.cli.live.cadence import Cadence, rest_s


class Clock:
    """Set by hand."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def told(cadence: Cadence, clock: Clock, *quarters: int, begins: int = -1) -> list[float]:
    """When it was told, in seconds, of these quarters of a second; in one of them something begins."""
    found = []
    for quarter in quarters:
        clock.now_s = 100.0 + quarter / 4
        if cadence.due(begins=quarter == begins):
            found.append(quarter / 4)
    return found


def test_it_is_told_at_once_and_whenever_the_last_telling_is_old() -> None:
    clock = Clock()
    assert told(Cadence(1.0, clock=clock), clock, *range(10)) == [0.0, 1.0, 2.0]


def test_nothing_is_told_of_what_is_over_soon() -> None:
    clock = Clock()
    assert told(Cadence(1.0, 0.75, clock), clock, *range(9)) == [0.75, 1.75]


def test_what_begins_is_told_and_the_next_waits_for_that() -> None:
    clock = Clock()
    assert told(Cadence(1.0, clock=clock), clock, *range(8), begins=2) == [0.0, 0.5, 1.5]


@pytest.mark.parametrize(
    ("done", "total", "elapsed_s", "rest"),
    [(25, 100, 5.0, 15.0), (0, 100, 5.0, None), (100, 100, 5.0, None), (5, 0, 5.0, None), (5, 100, 0.0, None)],
)
def test_the_rest_takes_as_long_as_what_was_done(done: int, total: int, elapsed_s: float, rest: float | None) -> None:
    assert rest_s(done, total, elapsed_s) == rest
