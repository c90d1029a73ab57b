"""How far something is: nothing of what is over soon, a line that is redrawn on a terminal, few lines elsewhere."""

import io

import pytest

from loadgen.cli.live.long_task import Gauge, left


class Screen(io.StringIO):
    def isatty(self):
        return True


class Steps:
    """A clock that is set by hand, and a gauge on it."""

    def __init__(self, stream, **options):
        self.now_s = 100.0
        self.stream = stream
        self.gauge = Gauge(
            lambda done, s: f"{done} in {s:.1f} s\x1b", stream=stream, clock=lambda: self.now_s, **options
        )

    def at(self, seconds, done):
        self.now_s = 100.0 + seconds
        self.gauge(done)
        return self.stream.getvalue()


def test_the_first_second_is_passed_over_in_silence():
    steps = Steps(Screen())
    assert steps.at(0.99, 5) == ""
    with steps.gauge:
        pass
    assert steps.stream.getvalue() == ""


def test_a_terminal_sees_one_line_drawn_again_four_times_a_second_and_none_at_the_end():
    steps = Steps(Screen())
    with steps.gauge:
        assert steps.at(1.0, 5) == "\r\x1b[K5 in 1.0 s\\x1b"
        assert steps.at(1.2, 6).count("\r") == 1
        assert steps.at(1.3, 7).endswith("\r\x1b[K7 in 1.3 s\\x1b")
    assert steps.stream.getvalue().endswith("\r\x1b[K")


def test_elsewhere_a_line_comes_every_two_seconds():
    steps = Steps(io.StringIO())
    with steps.gauge:
        for tenth in range(60):
            steps.at(tenth / 10, tenth)
    assert (
        steps.stream.getvalue() == "loadgen: 10 in 1.0 s\\x1b\nloadgen: 30 in 3.0 s\\x1b\nloadgen: 50 in 5.0 s\\x1b\n"
    )


def test_a_quiet_one_says_nothing():
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
def test_what_is_left_is_told_by_the_pace_so_far(done, total, elapsed_s, said):
    assert left(done, total, elapsed_s) == said
