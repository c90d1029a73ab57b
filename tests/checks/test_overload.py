"""The backlog rises where requests come faster than they are served, and is steady otherwise."""

import heapq
import math

import numpy as np
import pytest

from loadgen.checks.sufficiency import MIN_BEGUN, Backlog, backlog, why_unknown
from loadgen.config.settings import RunSettings
from loadgen.metrics.recorder import Recorder
from loadgen.workload.arrivals import Flat, LinearRamp, Schedule
from tests.helpers.run_facts import MS, START, measured, run_data, steady, unsent
from tests.helpers.thinning import thinned

RATE = RunSettings(request_rate=20.0)


def served(schedule, service_ms, servers):
    """The data of a run on a schedule whose requests wait for one of so many servers, in virtual
    time.
    """
    free = [0.0] * servers
    recorder = Recorder(START, schedule.count)
    for index, due in enumerate((schedule.due_ns / MS).tolist()):
        ends = max(due, heapq.heappop(free)) + service_ms[index]
        heapq.heappush(free, ends)
        recorder.add(steady(index, due=due, ttft=ends - due, n=1))
    return run_data(recorder.snapshot(), RATE, schedule)


def lognormal(count, mean_ms, seed):
    return mean_ms * np.random.default_rng(seed).lognormal(-0.5, 1, count)


# -- what is no overload


@pytest.mark.integration
@pytest.mark.parametrize("seed", thinned(range(8), 4))
def test_a_server_that_takes_all_at_once_is_steady_whatever_its_latencies(seed):
    schedule = Schedule.poisson(20, 1200, seed=seed)
    for service in (np.full(1200, 1000.0), lognormal(1200, 2000, seed)):
        assert backlog(served(schedule, service, servers=1200)).rising is False


@pytest.mark.integration
@pytest.mark.parametrize("seed", thinned(range(4), 2))
def test_a_queue_that_keeps_up_is_steady(seed):
    schedule = Schedule.poisson(20, 2000, seed=seed)
    assert backlog(served(schedule, lognormal(2000, 350, seed), servers=10)).rising is False


def test_the_ramp_at_the_start_of_a_run_is_left_out():
    found = backlog(served(Schedule.constant(20, 1200), np.full(1200, 5000.0), servers=1200))
    assert found.start == pytest.approx(100, rel=0.02)
    assert found.end == pytest.approx(100, rel=0.02)
    assert found.window_s == pytest.approx(55, rel=0.02)


# -- what is one


@pytest.mark.integration
@pytest.mark.parametrize("overload", [1.2, 1.5, 2, 5])
@pytest.mark.parametrize("seconds", [30, 100])
def test_growing_queue_is_rising_even_with_run_long_latencies(overload, seconds):
    count = 20 * seconds
    found = backlog(
        served(Schedule.poisson(20, count, seed=1), np.full(count, 500 * overload), servers=10)
    )
    assert found.rising
    assert found.end - found.start == pytest.approx(count * (1 - 1 / overload), rel=0.3)


@pytest.mark.parametrize(
    ("start", "end", "noise", "fit", "rising"),
    [
        (10, 20, 3.0, 0.9, True),
        (10, 20, 3.5, 0.9, False),  # chance does that
        (10, 20, 3.0, 0.4, False),  # a queue that came and went
        (1000, 1100, 3.0, 0.9, False),  # certain, and of no consequence
        (20, 10, 1.0, 0.9, False),
    ],
)
def test_a_rise_counts_when_it_is_certain_straight_and_large(start, end, noise, fit, rising):
    assert Backlog(start, end, noise, fit, window_s=10).rising is rising


def test_bursty_arrivals_make_more_noise():
    settings = RATE.replace(burstiness=0.25)
    made = served(Schedule.constant(20, 600), np.full(600, 1000.0), servers=600)
    burstier = run_data(made.snapshot, settings, made.schedule)
    assert backlog(burstier).noise == pytest.approx(2 * backlog(made).noise)


@pytest.mark.slow
def test_the_noise_is_that_of_a_line_through_poisson_counts():
    rises, said = [], []
    for seed in range(150):
        found = backlog(
            served(Schedule.poisson(20, 800, seed=seed), np.full(800, 1000.0), servers=800)
        )
        rises.append(found.end - found.start)
        said.append(found.noise)
    assert np.std(rises) == pytest.approx(np.mean(said), rel=0.25)


# -- what cannot be told


def test_backlog_is_unknown_for_a_run_as_short_as_latencies():
    short = served(Schedule.constant(20, 400), np.full(400, 4000.0), servers=400)
    enough = served(Schedule.constant(20, 400), np.full(400, 3000.0), servers=400)
    assert backlog(short) is None
    assert backlog(enough) is not None


def test_backlog_is_unknown_for_few_requests():
    for count, expected in ((MIN_BEGUN - 1, False), (MIN_BEGUN, True)):
        made = served(Schedule.constant(20, count), np.full(count, 100.0), servers=count)
        assert (backlog(made) is not None) is expected


def test_requests_that_were_never_sent_are_left_out():
    schedule = Schedule.constant(20, 400)
    records = [steady(i, due=i * 50, n=1) if i % 2 else unsent(i, due=i * 50) for i in range(400)]
    found = backlog(run_data(measured(records), RATE, schedule))
    assert not found.rising


@pytest.mark.parametrize(
    ("settings", "schedule", "partial", "why"),
    [
        (RATE, Schedule.constant(20, 300), None, None),
        (RunSettings(), Schedule.burst(300), None, "at once"),
        (RunSettings(max_concurrency=4), Schedule.burst(300), None, "at once"),
        (
            RunSettings(ramp_up_strategy="linear", ramp_up_start_rps=1.0, ramp_up_end_rps=9.0),
            Schedule.draw(LinearRamp(1, 9), count=300, burstiness=math.inf, seed=0),
            None,
            "by design",
        ),
        (
            RATE,
            Schedule.draw(Flat(20), count=300, burstiness=1, seed=0),
            "interrupted",
            "ended early",
        ),
    ],
)
def test_a_burst_a_ramp_and_a_run_cut_short_are_no_overload(settings, schedule, partial, why):
    said = why_unknown(run_data(measured([steady(0)], partial=partial), settings, schedule))
    assert said is None if why is None else why in said
