"""Warnings on the times of a trace, before anything is sent."""

import pytest

from loadgen.util.clock import NS_PER_S
from loadgen.workload.datasets.trace_times import time_warnings


@pytest.mark.parametrize(
    ("times_s", "scale", "word"),
    [
        ([0.0002 * i for i in range(20)], 1, "requests/s"),
        ([0.2 * i for i in range(20)], 1000, "requests/s"),
        ([i // 4 for i in range(20)], 1, "up to 4 requests"),
    ],
)
def test_times_that_are_not_meant_are_named(times_s: list[float], scale: int, word: str) -> None:
    (warning,) = time_warnings([round(at_s * NS_PER_S) for at_s in times_s], scale)
    assert word in warning


@pytest.mark.parametrize("times_s", [[0.2 * i for i in range(20)], list(range(20)), [0, 0, 0], []])
def test_plain_times_have_no_warning(times_s: list[float]) -> None:
    assert list(time_warnings([round(at_s * NS_PER_S) for at_s in times_s], 1)) == []
