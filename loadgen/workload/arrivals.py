"""`Schedule`: the due times of the requests of a run, drawn from an arrival process before the
clock starts.

Arrivals are a renewal process with gamma gaps (burstiness 1: Poisson; infinite: evenly spaced) on a
unit-rate clock, stretched by the rate: a point at u is due when u requests are expected. A ramp is
the same process as a flat rate, transformed by the inverse of its integrated rate (Gerhardt and
Nelson, 2009, "Transforming renewal processes for simulation of nonstationary arrival processes").

With a count of requests, all gaps are scaled so that the last one ends at count / mean rate, as in
`vllm bench serve`. Poisson arrivals are then a Poisson process conditioned on its last arrival, and
the achieved rate is the requested one. With burstiness below 1 such a run begins and ends with a
burst, as in vLLM. With a duration, the process is stationary and cut at the end, without scaling:
the count varies like a Poisson count. With both, the one that is expected to end first decides, and
the other is an upper bound. In vLLM the rate of a ramp depends on the number of the request, so the
ramp ends late; here it depends on time.

Of a session, the arrival process gives the start; a further turn has no due time before the turn
before it is answered. The due times of a trace replace the arrival process.
"""

import math
from array import array
from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol, Self

import numpy as np
from msgspec import Struct

from loadgen.config.load import MAX_REQUESTS
from loadgen.config.load_profile import LoadProfile
from loadgen.config.request_class import rate_place
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput, setting, written_as
from loadgen.util.arrays import Floats, Int64s
from loadgen.util.clock import NS_PER_S
from loadgen.workload.due_times import FOLLOWS, DueTimes

MAX_WINDOW_S = 2**62 / NS_PER_S  # leaves room for a clock value in int64 ns
MIN_BURSTINESS = 1e-3  # below it most gaps are 0 to a double's last bit
DEFAULT_COUNT = 1000
CLOSED_LOOP_RPS = 10_000  # requests prepared per second of a closed loop that only a duration ends
HALVINGS = 60  # of the bracket around a time in a wave: to the last bit of a double


class Rate(Protocol):
    """A rate over a window of time, defined by its integral."""

    @property
    def mean_rps(self) -> float:
        """The mean rate over the window, requests/s."""

    def when(self, expected: Floats, window_s: float) -> Floats:
        """Return the times by which these numbers of requests are expected.

        Args:
            expected: Numbers of requests, float64, shape (n,).
            window_s: The length of the window, s.

        Returns:
            Seconds from the start of the window, shape (n,).
        """


class Flat(Struct, frozen=True):
    """A constant rate, requests/s."""

    mean_rps: float

    def when(self, expected: Floats, window_s: float) -> Floats:
        """Invert the integral of the rate."""
        return expected / self.mean_rps


class LinearRamp(Struct, frozen=True):
    """A rate that changes linearly from `start_rps` to `end_rps`, of which at least one is above
    0.
    """

    start_rps: float
    end_rps: float

    @property
    def mean_rps(self) -> float:
        """As `Rate.mean_rps`."""
        return (self.start_rps + self.end_rps) / 2

    def when(self, expected: Floats, window_s: float) -> Floats:
        """Invert the integral of the rate."""
        slope = (self.end_rps - self.start_rps) / window_s
        # The root of start * t + slope * t**2 / 2 = expected, in the form that cancels no digits.
        divisor = self.start_rps + np.sqrt(np.maximum(self.start_rps**2 + 2 * slope * expected, 0))
        at_s: Floats = np.divide(
            2 * expected, divisor, out=np.zeros_like(expected), where=divisor > 0
        )
        return at_s


class ExponentialRamp(Struct, frozen=True):
    """A rate that grows exponentially, 0 < `start_rps` < `end_rps`."""

    start_rps: float
    end_rps: float

    @property
    def mean_rps(self) -> float:
        """As `Rate.mean_rps`."""
        return (self.end_rps - self.start_rps) / math.log(self.end_rps / self.start_rps)

    def when(self, expected: Floats, window_s: float) -> Floats:
        """Invert the integral of the rate."""
        growth = math.log(self.end_rps / self.start_rps) / window_s
        return np.log1p(expected * (growth / self.start_rps)) / growth


class Wave(Struct, frozen=True):
    """A rate that is a sine wave, from `start_rps` to `turn_rps` after half a period, and back."""

    start_rps: float
    turn_rps: float
    period_s: float

    def when(self, expected: Floats, window_s: float) -> Floats:
        """Invert the integral of the rate, by halving brackets."""
        mean_rps = (self.start_rps + self.turn_rps) / 2
        swing_rps = (self.start_rps - self.turn_rps) / 2
        angular = 2 * math.pi / self.period_s
        low = np.zeros_like(expected)
        high = np.full_like(expected, window_s)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            below = mean_rps * middle + swing_rps / angular * np.sin(angular * middle) < expected
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return high


class ProfileRate(Struct, frozen=True):
    """The rate of a `LoadProfile`; its window is as long as the profile."""

    profile: LoadProfile

    @property
    def mean_rps(self) -> float:
        """The mean rate over the profile, requests/s."""
        return self.profile.mean

    def when(self, expected: Floats, window_s: float) -> Floats:
        """Invert the integral of the rate in the phase in which each number is reached."""
        edges = np.cumsum([0.0, *(phase.integral(phase.length_s) for phase in self.profile.phases)])
        at_s = np.full_like(expected, self.profile.length_s)
        parts = zip(self.profile.phases, self.profile.windows_s(), pairwise(edges), strict=True)
        for phase, (start_s, _), (first, last) in parts:
            here = (expected >= first) & (expected < last)
            rate: LinearRamp | Wave = LinearRamp(phase.first, phase.last)
            if phase.period_s is not None:
                rate = Wave(phase.first, phase.last, phase.period_s)
            at_s[here] = start_s + rate.when(expected[here] - first, phase.length_s)
        return at_s


class Schedule(DueTimes, frozen=True):
    """Due times that are drawn, in the process that prepares a run."""

    @classmethod
    def of(cls, due_ns: Int64s, duration_ns: int) -> Self:
        """Create a schedule of due times, int64, shape (count,)."""
        return cls(array("q", due_ns.astype(np.int64, copy=False).tobytes()), duration_ns)

    @classmethod
    def from_settings(
        cls, settings: RunSettings, seed: int, due_ns: Sequence[int] | None = None
    ) -> "Schedule":
        """Draw the schedule of checked settings; the same for the same `seed`.

        A closed loop that only a duration ends gets CLOSED_LOOP_RPS requests per second, more than
        can become due.

        Args:
            settings: The settings, with count, duration, rate and burstiness.
            seed: The seed of the arrival process.
            due_ns: Due times of the prompts (`request_store.requested_due_ns`): ns, DRAWN or
                FOLLOWS. None: they have none, or are not known yet.

        Raises:
            BadInput: As `draw`, or the due times of the prompts conflict with the settings.
        """
        with written_as(rate_place(settings.classes, settings.request_rate)):
            if due_ns is None:
                return cls._drawn(settings, seed, settings.requests)
            times = np.asarray(due_ns, dtype=np.int64)
            if (times >= 0).any():
                return cls._from_due_times(settings, times)
            if settings.num_prompts is None and settings.duration is not None:
                drawn = cls._drawn(settings, seed, None)
                if drawn.duration_ns == 0:  # a closed loop: it repeats the requests
                    times = np.resize(times, drawn.count)
            else:
                drawn = cls._drawn(settings, seed, int((times != FOLLOWS).sum()))
            starts = np.flatnonzero(times != FOLLOWS)
            if drawn.duration_ns and drawn.count > len(starts):
                problem = f"the data set has {len(starts)} sessions, and {drawn.count} are due"
                remedy = f"give the number of requests with {setting.num_prompts}"
                raise BadInput(setting.duration, problem, remedy)
            end = np.append(starts, len(times))[min(drawn.count, len(starts))]
            starts = starts[: drawn.count]
            times = np.full(end, FOLLOWS, dtype=np.int64)
            times[starts] = drawn.due_ns[: len(starts)]
            return cls.of(times, drawn.duration_ns)

    @classmethod
    def _drawn(cls, settings: RunSettings, seed: int, count: int | None) -> "Schedule":
        duration_s, rate, usual = (
            settings.duration,
            _rate(settings),
            settings.requests_of(DEFAULT_COUNT),
        )
        if rate is None:
            within = (
                usual
                if duration_s is None
                else min(math.ceil(duration_s * CLOSED_LOOP_RPS), MAX_REQUESTS)
            )
            return cls.burst(count or max(within, settings.users or 0))
        if count is None and duration_s is None:
            count = usual
        return cls.draw(
            rate, count=count, duration_s=duration_s, burstiness=settings.burstiness, seed=seed
        )

    @classmethod
    def _from_due_times(cls, settings: RunSettings, due_ns: Int64s) -> "Schedule":
        if _rate(settings) is not None:
            named = ("rate_profile", "ramp_up_strategy")
            flags = [setting(name) for name in named if getattr(settings, name) is not None] or [
                setting.request_rate
            ]
            raise BadInput(
                flags[0],
                "given together with a data set that has due times",
                f"leave it out, or use {setting.time_scale}",
            )
        starts = due_ns[due_ns != FOLLOWS]
        if (starts < 0).any() or (np.diff(starts) < 0).any():
            problem = (
                "the due times of the data set are not sorted, or are missing for some prompts"
            )
            raise BadInput(
                setting.dataset_name, problem, "give every session start a due time, and sort them"
            )
        if settings.duration is not None:
            late = np.flatnonzero(due_ns >= settings.duration * NS_PER_S)
            due_ns = due_ns[: late[0]] if len(late) else due_ns
        return cls.of(due_ns, int(due_ns.max(initial=0)))

    @classmethod
    def burst(cls, count: int) -> "Schedule":
        """Create a schedule in which all requests are due at the start."""
        return cls(array("q", bytes(8 * _require_count(count))), 0)

    @classmethod
    def constant(cls, rate_rps: float, count: int) -> "Schedule":
        """Create a schedule of evenly spaced requests, the first at the start."""
        return cls.draw(Flat(rate_rps), count=count, burstiness=math.inf, seed=0)

    @classmethod
    def poisson(cls, rate_rps: float, count: int, seed: int) -> "Schedule":
        """Draw a schedule with exponential gaps, scaled to end at `count` / `rate_rps` seconds."""
        return cls.draw(Flat(rate_rps), count=count, burstiness=1, seed=seed)

    @classmethod
    def draw(
        cls,
        rate: Rate,
        *,
        count: int | None = None,
        duration_s: float | None = None,
        burstiness: float,
        seed: int,
    ) -> "Schedule":
        """Draw a schedule. At least one of `count` and `duration_s` is needed; the module docstring
        describes both.

        Args:
            rate: The rate over time.
            count: Maximum number of requests.
            duration_s: All requests are due before this time, s.
            burstiness: The gamma shape of the gaps: their squared coefficient of variation is 1 /
                burstiness.
            seed: The seed of the gaps.

        Raises:
            BadInput: There is no request, the time exceeds int64 ns, or the burstiness is too
                small.
        """
        if not burstiness >= MIN_BURSTINESS:
            problem = f"{burstiness:g} makes nearly all gaps 0"
            raise BadInput(setting.burstiness, problem, f"use {MIN_BURSTINESS:g} or more")
        if not 0 < rate.mean_rps < math.inf:
            problem = f"{rate.mean_rps:g} requests/s cannot be scheduled"
            raise BadInput(setting.request_rate, problem, "use a number above 0")
        rng = np.random.default_rng([seed, *b"arrivals"])
        limit_s = math.inf if duration_s is None else duration_s
        if count is not None and _require_count(count) / rate.mean_rps <= limit_s + 1 / NS_PER_S:
            window_s = count / rate.mean_rps
            window_ns = _window_ns(window_s)
            return cls.of(
                _nanoseconds(rate.when(_unit_arrivals(rng, burstiness, count), window_s)), window_ns
            )
        window_ns = _window_ns(limit_s)
        arrivals = _unit_arrivals_until(rng, burstiness, rate.mean_rps * limit_s)[:count]
        due_ns = _nanoseconds(rate.when(arrivals, limit_s))
        return cls.of(due_ns[: np.searchsorted(due_ns, window_ns)], window_ns)


def _rate(settings: RunSettings) -> Rate | None:
    if settings.rate_profile is not None:
        return ProfileRate(LoadProfile.parse(settings.rate_profile))
    if settings.ramp_up_strategy is not None:
        assert settings.ramp_up_start_rps is not None
        assert settings.ramp_up_end_rps is not None
        ramp = LinearRamp if settings.ramp_up_strategy == "linear" else ExponentialRamp
        return ramp(settings.ramp_up_start_rps, settings.ramp_up_end_rps)
    return None if math.isinf(settings.request_rate) else Flat(settings.request_rate)


def _require_count(count: int) -> int:
    if count < 1:
        raise BadInput(setting.num_prompts, f"{count} is out of range", "give 1 or more")
    return count


def _window_ns(window_s: float) -> int:
    if not 0 < window_s <= MAX_WINDOW_S:
        problem = f"a run of {window_s:.3g} s cannot be scheduled"
        raise BadInput(
            setting.request_rate, problem, "give a higher rate, or fewer requests or seconds"
        )
    return int(window_s * NS_PER_S)


def _unit_arrivals(rng: np.random.Generator, burstiness: float, count: int) -> Floats:
    """Draw the first `count` points of a unit-rate process, scaled so that the last gap ends at
    `count`.

    Evenly spaced points begin at 0, so that a window of u has u points; other processes begin with
    a gap.
    """
    if math.isinf(burstiness):
        return np.arange(count, dtype=np.float64)
    points = np.cumsum(rng.standard_gamma(burstiness, count))
    return points / points[-1] * count if points[-1] > 0 else points


def _unit_arrivals_until(rng: np.random.Generator, burstiness: float, end: float) -> Floats:
    """Draw the points of a stationary unit-rate process up to `end`.

    The first gap is the forward recurrence time: the rest of a gap that is drawn in proportion to
    its length (Cox, Renewal Theory, 1962, section 5.2). Evenly spaced points begin at 0.
    """
    if math.isinf(burstiness):
        return np.arange(math.ceil(end), dtype=np.float64)
    # Six standard deviations above the mean: nearly always enough.
    chunk = math.ceil(end + 6 * math.sqrt(end / burstiness)) + 16
    gaps = rng.standard_gamma(burstiness, chunk) / burstiness
    if burstiness != 1:  # a Poisson process is memoryless
        gaps[0] = rng.random() * rng.standard_gamma(burstiness + 1) / burstiness
    points = np.cumsum(gaps)
    while points[-1] < end:
        more = np.cumsum(rng.standard_gamma(burstiness, chunk) / burstiness)
        points = np.concatenate((points, points[-1] + more))
    return points[: np.searchsorted(points, end)]


def _nanoseconds(seconds: Floats) -> Int64s:
    due_ns = (seconds * NS_PER_S).astype(np.int64)
    # Rounding of a root or logarithm may swap two nearly equal points.
    return np.maximum.accumulate(due_ns, out=due_ns)
