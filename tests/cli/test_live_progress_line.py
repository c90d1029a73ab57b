"""The progress line of long tasks: one redrawn line on a terminal, few lines elsewhere."""

import io

import pytest

from loadgen.cli.live.progress_line import Cadence, ProgressLine, left_s, time_left


class Screen(io.StringIO):
    def isatty(self):
        return True


class Steps:
    """A clock that is set by hand, and a progress line on it."""

    def __init__(self, stream, **options):
        self.now_s = 100.0
        self.stream = stream
        self.line = ProgressLine(
            lambda done, s: f"{done} in {s:.1f} s\x1b",
            stream=stream,
            clock=lambda: self.now_s,
            **options,
        )

    def at(self, seconds, done):
        self.now_s = 100.0 + seconds
        self.line(done)
        return self.stream.getvalue()


def test_line_is_not_shown_in_the_first_second():
    steps = Steps(Screen())
    assert steps.at(0.99, 5) == ""
    with steps.line:
        pass
    assert steps.stream.getvalue() == ""


def test_a_terminal_gets_one_redrawn_line_that_is_erased():
    steps = Steps(Screen())
    with steps.line:
        assert steps.at(1.0, 5) == "\r\x1b[K5 in 1.0 s\\x1b"
        assert steps.at(1.2, 6).count("\r") == 1
        assert steps.at(1.3, 7).endswith("\r\x1b[K7 in 1.3 s\\x1b")
    assert steps.stream.getvalue().endswith("\r\x1b[K")


def test_a_log_gets_a_line_every_two_seconds():
    steps = Steps(io.StringIO())
    with steps.line:
        for tenth in range(60):
            steps.at(tenth / 10, tenth)
    assert (
        steps.stream.getvalue()
        == "loadgen: 10 in 1.0 s\\x1b\nloadgen: 30 in 3.0 s\\x1b\nloadgen: 50 in 5.0 s\\x1b\n"
    )


def test_quiet_hides_the_line():
    assert Steps(Screen(), quiet=True).at(10, 5) == ""


@pytest.mark.parametrize(
    ("done", "total", "elapsed_s", "said"),
    [
        (50, 100, 10.0, ", 0:10 left"),
        (1, 100, 1.0, ", 1:39 left"),
        (0, 100, 5.0, ""),
        (100, 100, 5.0, ""),
        (5, 100, 0.0, ""),
    ],
)
def test_time_left_goes_by_the_pace_so_far(done, total, elapsed_s, said):
    assert time_left(done, total, elapsed_s) == said


# -- cadence


class Clock:
    """Set by hand."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def updates(cadence: Cadence, clock: Clock, *quarters: int, begins: int = -1) -> list[float]:
    """The times of updates, in seconds, tried at these quarters of a second; in one of them a
    phase begins.
    """
    found = []
    for quarter in quarters:
        clock.now_s = 100.0 + quarter / 4
        if cadence.due(begins=quarter == begins):
            found.append(quarter / 4)
    return found


def test_updates_come_at_once_and_at_the_interval() -> None:
    clock = Clock()
    assert updates(Cadence(1.0, clock=clock), clock, *range(10)) == [0.0, 1.0, 2.0]


def test_the_first_update_waits() -> None:
    clock = Clock()
    assert updates(Cadence(1.0, 0.75, clock), clock, *range(9)) == [0.75, 1.75]


def test_a_new_phase_is_updated_at_once() -> None:
    clock = Clock()
    assert updates(Cadence(1.0, clock=clock), clock, *range(8), begins=2) == [0.0, 0.5, 1.5]


@pytest.mark.parametrize(
    ("done", "total", "elapsed_s", "rest"),
    [
        (25, 100, 5.0, 15.0),
        (0, 100, 5.0, None),
        (100, 100, 5.0, None),
        (5, 0, 5.0, None),
        (5, 100, 0.0, None),
    ],
)
def test_left_s_goes_by_the_pace_so_far(
    done: int, total: int, elapsed_s: float, rest: float | None
) -> None:
    assert left_s(done, total, elapsed_s) == rest
