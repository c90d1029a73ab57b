"""The live backlog: overload is said while a run goes on, and not of a server that keeps up."""

import heapq
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from loadgen.cli.live.history import MIN_HELD_S, LiveBacklog
from loadgen.config.settings import RunSettings
from loadgen.core.histogram import Histogram
from loadgen.core.sketch import Sketch
from loadgen.metrics.progress import Progress
from loadgen.workload.arrivals import Schedule

RATE = RunSettings(request_rate=20.0)


def moments(
    schedule: Schedule, service_s: Sequence[float], servers: int, **differs: object
) -> Iterator[Progress]:
    """The progress of a run, each quarter of a second until the last request is due, in virtual
    time.
    """
    due, free = schedule.due_ns / 1e9, [0.0] * servers
    ends = np.empty(len(due))
    for index, at_s in enumerate(due):
        ends[index] = max(at_s, heapq.heappop(free)) + service_s[index]
        heapq.heappush(free, ends[index])
    took, histogram, counted = ends - due, Histogram(), 0
    order = np.argsort(ends)
    for quarter in range(1, int(due[-1] * 4)):
        at_s = quarter / 4
        begun, ended = int(np.searchsorted(due, at_s)), int(np.searchsorted(ends[order], at_s))
        histogram.record_many((took[order[counted:ended]] * 1e9).astype(np.int64))
        counted = ended
        waiting = np.flatnonzero(ends[:begun] > at_s)
        usual = {
            "in_flight": len(waiting),
            "ended": ended,
            "sending_s": float(due[-1]),
            "oldest_s": at_s - due[waiting[0]] if len(waiting) else 0.0,
            "e2el": Sketch.of(histogram),
        }
        yield Progress("running", at_s, **usual | differs)  # type: ignore[arg-type]


def said_at_s(progress: Iterator[Progress], settings: RunSettings = RATE) -> list[float]:
    """The moments at which overload is said."""
    backlog, said = LiveBacklog(settings), []
    for one in progress:
        backlog.add(one)
        if backlog.overloaded:
            said.append(one.elapsed_s)
    return said


def lognormal(count: int, mean_s: float, seed: int) -> np.ndarray:
    return mean_s * np.random.default_rng(seed).lognormal(-0.5, 1, count)


@pytest.mark.parametrize("overload", [1.2, 1.5, 2, 5])
def test_overload_is_said_while_the_run_goes_on(overload: float) -> None:
    schedule = Schedule.poisson(20, 2000, seed=1)
    said = said_at_s(moments(schedule, lognormal(2000, 0.5 * overload, 1), servers=10))
    assert said[0] < 60
    assert said[-1] > 95  # and to the end


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("service_s", [0.35, 2.0])
def test_a_server_that_keeps_up_is_not_called_overloaded(service_s: float, seed: int) -> None:
    servers = 10 if service_s < 1 else 1200
    schedule = Schedule.poisson(20, 1200, seed=seed)
    assert not said_at_s(moments(schedule, lognormal(1200, service_s, seed), servers))


def test_the_ramp_at_the_start_is_left_out() -> None:
    assert not said_at_s(moments(Schedule.constant(20, 1200), [5.0] * 1200, servers=1200))


def test_a_rise_that_does_not_hold_is_not_said() -> None:
    backlog = LiveBacklog(RATE)
    for one in moments(Schedule.poisson(20, 2000, seed=1), [2.5] * 2000, servers=10):
        backlog.add(one)
        if backlog._rising_since_s is not None:
            break
    assert not backlog.overloaded
    backlog.add(Progress("running", one.elapsed_s + MIN_HELD_S / 2, **_same(one)))  # type: ignore[arg-type]
    assert not backlog.overloaded


def _same(one: Progress) -> dict[str, object]:
    return {name: getattr(one, name) for name in ("in_flight", "ended", "sending_s", "e2el")}


@pytest.mark.parametrize(
    "differs",
    [
        {"closed_loop": True},
        {"sending_s": 0.0},  # all at once
        {"sending_s": None},  # sessions
    ],
)
def test_a_load_without_a_steady_rate_is_not_judged(differs: dict[str, object]) -> None:
    assert not said_at_s(
        moments(Schedule.poisson(20, 2000, seed=1), [5.0] * 2000, servers=10, **differs)
    )


def test_a_rate_that_rises_by_design_is_not_judged() -> None:
    ramp = RATE.replace(ramp_up_strategy="linear", ramp_up_start_rps=1, ramp_up_end_rps=40)
    assert not said_at_s(
        moments(Schedule.poisson(20, 2000, seed=1), [5.0] * 2000, servers=10), ramp
    )
