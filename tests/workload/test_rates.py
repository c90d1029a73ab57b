"""A rate is inverted exactly: rescaled by its integral, arrivals of a profile are those of a
constant rate.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.config.load_profile import LoadProfile, Phase
from loadgen.config.settings import RunSettings
from loadgen.util.arrays import Floats
from loadgen.workload.arrivals import ProfileRate, Schedule

STEPS = 4_000  # of the integral that the tests compute themselves
PHASES = st.one_of(
    st.builds(Phase, st.floats(0.1, 500), st.floats(0.1, 500), st.floats(0.5, 100)),
    st.builds(
        Phase, st.floats(0.1, 500), st.floats(0.1, 500), st.floats(0.5, 100), st.floats(0.5, 50)
    ),
)


def integral(profile: LoadProfile, at_s: Floats) -> Floats:
    """The requests that are expected up to these times, by the trapezoids of the rate."""
    times: list[float] = []
    rates: list[float] = []
    for phase, (start_s, _) in zip(profile.phases, profile.windows_s(), strict=True):
        offsets = np.linspace(0, phase.length_s, STEPS)
        times += [start_s + offset for offset in offsets]
        rates += [phase.value_at(float(offset)) for offset in offsets]
    sums = np.concatenate(
        ([0.0], np.cumsum(np.diff(times) * (np.array(rates[1:]) + rates[:-1]) / 2))
    )
    return np.interp(at_s, times, sums)


@given(st.lists(PHASES, min_size=1, max_size=4))
def test_a_time_is_where_the_integral_of_the_rate_is_the_number(phases: list[Phase]) -> None:
    profile = LoadProfile(tuple(phases))
    rate = ProfileRate(profile)
    total = rate.mean_rps * profile.length_s
    expected = np.linspace(0, total, 50, endpoint=False)
    at_s = rate.when(expected, profile.length_s)
    assert integral(profile, at_s) == pytest.approx(expected, abs=2e-3 * total)
    assert np.all(np.diff(at_s) >= 0)
    assert at_s[0] == pytest.approx(0, abs=1e-12)
    assert at_s[-1] <= profile.length_s


def test_nothing_is_due_where_the_rate_is_zero() -> None:
    schedule = Schedule.from_settings(RunSettings(rate_profile="50@2s,0@10s,50@2s").implied(), 1)
    seconds = schedule.due_ns / 1e9
    assert not np.any((seconds > 2) & (seconds < 12))
    assert np.any(seconds > 12)


def test_evenly_spaced_arrivals_follow_the_phases_exactly() -> None:
    schedule = Schedule.from_settings(
        RunSettings(rate_profile="10@2s,100@1s,5@2s", burstiness=math.inf).implied(), 0
    )
    seconds = schedule.due_ns / 1e9
    counts = [
        int(((seconds >= begin) & (seconds < end)).sum()) for begin, end in ((0, 2), (2, 3), (3, 5))
    ]
    assert counts == [20, 100, 10]


@pytest.mark.parametrize("profile", ["20@50s,20-200@100s,200@20s", "5~100/30s@180s"])
@pytest.mark.slow
def test_rescaled_arrivals_are_a_poisson_process(profile: str) -> None:
    """By a Kolmogorov-Smirnov test of the gaps on the scale of expected requests: at 1 %, over
    20 seeds.
    """
    parsed = LoadProfile.parse(profile)
    beyond = 0
    for seed in range(20):
        due_s = (
            Schedule.from_settings(RunSettings(rate_profile=profile).implied(), seed).due_ns / 1e9
        )
        gaps = np.sort(np.diff(integral(parsed, due_s)))
        below = 1 - np.exp(-gaps)
        steps = np.arange(len(gaps) + 1) / len(gaps)
        distance = max(np.max(steps[1:] - below), np.max(below - steps[:-1]))
        beyond += distance > 1.63 / math.sqrt(len(gaps))
    assert beyond <= 3


@pytest.mark.slow
def test_the_number_of_arrivals_is_that_of_the_integral() -> None:
    counts = [
        Schedule.from_settings(
            RunSettings(rate_profile="10-90@20s,90~10/4s@20s").implied(), seed
        ).count
        for seed in range(200)
    ]
    assert np.mean(counts) == pytest.approx(2_000, abs=5 * math.sqrt(2_000 / 200))
