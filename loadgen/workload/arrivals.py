"""Schedule: when each request of a run is due, drawn before the clock starts.

Arrivals are a renewal process with gamma gaps (burstiness 1: Poisson; infinite: evenly spaced) on a unit-rate clock,
which the rate then stretches over the run: a point at u is due when u requests were to be expected. So a ramp is the
same process as a flat rate, seen through the inverse of its integrated rate (Gerhardt and Nelson, 2009, "Transforming
renewal processes for simulation of nonstationary arrival processes").

A count of requests is met as in `vllm bench serve`: all gaps are scaled so that the last one ends at count / mean rate;
Poisson arrivals are then those of a Poisson process conditioned on having its last arrival there, and the achieved
rate is the one asked for. With burstiness below 1 such a run begins, and ends, with a burst, as vLLM's does. Where a
duration ends the run, the process is stationary, cut there and not scaled: its count varies as a true Poisson count
does. Given both, the one that is expected to end first decides, and the other still bounds. vLLM
makes the rate of a ramp a function of the request's number, which ends it late; here it is a function of time.

In sessions the arrival process says when each begins; its further turns have no due time before the turn ahead of them
has been answered. The due times of a trace take the place of the arrival process.
"""

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from loadgen.config.settings import RunSettings, is_closed_loop
from loadgen.config.validate import MAX_REQUESTS
from loadgen.errors import BadInput
from loadgen.util.arrays import Floats, Int64s
from loadgen.util.clock import NS_PER_S

LONGEST_S = 2**62 / NS_PER_S  # leaves room for a clock's own value in int64 ns
LEAST_BURSTINESS = 1e-3  # below it most gaps are 0 to a double's last bit
DEFAULT_COUNT = 1000
CLOSED_LOOP_RPS = 10_000  # requests held ready per second of a burst that only a duration ends
# In the place of a due time: the request follows the one before it; the arrival process says.
FOLLOWS, DRAWN = -1, -2


class Rate(Protocol):
    """Requests per second as a function of time over a window, known by its integral."""

    @property
    def mean_rps(self) -> float:
        """The mean over the window."""

    def when(self, expected: Floats, window_s: float) -> Floats:
        """The seconds from the start of a window by which so many requests are expected."""


@dataclass(frozen=True)
class Flat:
    """The same rate all the time."""

    mean_rps: float

    def when(self, expected: Floats, window_s: float) -> Floats:
        """See `Rate`."""
        return expected / self.mean_rps


@dataclass(frozen=True)
class LinearRamp:
    """A rate that grows by the same amount every second, 0 <= `start_rps` < `end_rps`."""

    start_rps: float
    end_rps: float

    @property
    def mean_rps(self) -> float:
        """See `Rate`."""
        return (self.start_rps + self.end_rps) / 2

    def when(self, expected: Floats, window_s: float) -> Floats:
        """See `Rate`."""
        slope = (self.end_rps - self.start_rps) / window_s
        # The root of start * t + slope * t**2 / 2 = expected, in the form that cancels no digits.
        divisor = self.start_rps + np.sqrt(self.start_rps**2 + 2 * slope * expected)
        return np.divide(2 * expected, divisor, out=np.zeros_like(expected), where=divisor > 0)


@dataclass(frozen=True)
class ExponentialRamp:
    """A rate that grows by the same factor every second, 0 < `start_rps` < `end_rps`."""

    start_rps: float
    end_rps: float

    @property
    def mean_rps(self) -> float:
        """See `Rate`."""
        return (self.end_rps - self.start_rps) / math.log(self.end_rps / self.start_rps)

    def when(self, expected: Floats, window_s: float) -> Floats:
        """See `Rate`."""
        growth = math.log(self.end_rps / self.start_rps) / window_s
        return np.log1p(expected * (growth / self.start_rps)) / growth


@dataclass(frozen=True, eq=False)
class Schedule:
    """The due times of all requests of a run.

    Args:
        due_ns: Nanoseconds from the start, int64, shape (count,), sorted, or FOLLOWS for a further turn of the session
            of the request before it; made read-only.
        duration_ns: The window over which they were drawn; 0 when all are due at once.

    Raises:
        BadInput: There is no request in it.
    """

    due_ns: Int64s
    duration_ns: int

    def __post_init__(self) -> None:
        if len(self.due_ns) == 0:
            problem = f"no request is due within {self.duration_ns / NS_PER_S:g} s"
            raise BadInput("--duration", problem, "make it longer, or ask for a higher rate")
        self.due_ns.flags.writeable = False

    @classmethod
    def from_settings(cls, settings: RunSettings, seed: int, asked: Int64s | None = None) -> "Schedule":
        """Draw the schedule that checked `settings` ask for; the same for the same `seed`.

        A burst that only a duration ends has more requests than can become due in it: `CLOSED_LOOP_RPS` a second.

        Args:
            settings: Count, duration, rate and burstiness.
            seed: Of the arrival process.
            asked: What the prompts say of their due times (`requests.asked`); None: nothing, or it is not known yet.

        Raises:
            BadInput: As `draw`; or the prompts say what does not go with the settings.
        """
        if asked is None:
            return cls._drawn(settings, seed, settings.num_prompts)
        told = asked >= 0
        if told.any():
            return cls._told(settings, asked)
        if settings.num_prompts is None and settings.duration is not None:
            drawn = cls._drawn(settings, seed, None)
            if drawn.duration_ns == 0:  # a closed loop: it goes over the requests again and again
                asked = np.resize(asked, drawn.count)
        else:
            drawn = cls._drawn(settings, seed, int((asked != FOLLOWS).sum()))
        starts = np.flatnonzero(asked != FOLLOWS)
        if drawn.duration_ns and drawn.count > len(starts):
            problem = f"the data set gives {len(starts)} sessions where {drawn.count} begin"
            raise BadInput("--duration", problem, "say how many requests to send, with --num-prompts")
        starts, end = starts[: drawn.count], np.append(starts, len(asked))[min(drawn.count, len(starts))]
        due_ns = np.full(end, FOLLOWS, dtype=np.int64)
        due_ns[starts] = drawn.due_ns[: len(starts)]
        return cls(due_ns, drawn.duration_ns)

    @classmethod
    def _drawn(cls, settings: RunSettings, seed: int, count: int | None) -> "Schedule":
        """So many arrivals, or those of the duration, each of them one request."""
        duration_s, rate = settings.duration, _rate(settings)
        if rate is None:
            held = DEFAULT_COUNT if duration_s is None else min(math.ceil(duration_s * CLOSED_LOOP_RPS), MAX_REQUESTS)
            return cls.burst(count or held)
        if count is None and duration_s is None:
            count = DEFAULT_COUNT
        return cls.draw(rate, count=count, duration_s=duration_s, burstiness=settings.burstiness, seed=seed)

    @classmethod
    def _told(cls, settings: RunSettings, asked: Int64s) -> "Schedule":
        """The due times that the prompts bring along, as far as the duration reaches."""
        if _rate(settings) is not None:
            flag = "--request-rate" if settings.ramp_up_strategy is None else "--ramp-up-strategy"
            raise BadInput(flag, "the data set says when each request is due", "leave it out, or use --time-scale")
        starts = asked[asked != FOLLOWS]
        if (starts < 0).any() or (np.diff(starts) < 0).any():
            problem = "the data set's due times are not in order, or only some prompts have one"
            raise BadInput("--dataset-name", problem, "give all session starts one, and sort them")
        if settings.duration is not None:
            late = np.flatnonzero(asked >= settings.duration * NS_PER_S)
            asked = asked[: late[0]] if len(late) else asked
        return cls(asked.copy(), int(asked.max(initial=0)))

    @classmethod
    def burst(cls, count: int) -> "Schedule":
        """Make a schedule in which all requests are due at the start."""
        return cls(np.zeros(_some(count), dtype=np.int64), 0)

    @classmethod
    def constant(cls, rate_rps: float, count: int) -> "Schedule":
        """Make a schedule of evenly spaced requests, the first at the start."""
        return cls.draw(Flat(rate_rps), count=count, burstiness=math.inf, seed=0)

    @classmethod
    def poisson(cls, rate_rps: float, count: int, seed: int) -> "Schedule":
        """Draw a schedule with exponential gaps, scaled to end at `count` / `rate_rps` seconds."""
        return cls.draw(Flat(rate_rps), count=count, burstiness=1, seed=seed)

    @classmethod
    def draw(
        cls, rate: Rate, *, count: int | None = None, duration_s: float | None = None, burstiness: float, seed: int
    ) -> "Schedule":
        """Draw a schedule; the module says how `count` and `duration_s`, of which one must be given, bound it.

        Args:
            rate: How many requests per second, when.
            count: Most requests.
            duration_s: All requests are due before it.
            burstiness: The gamma shape of the gaps: their squared coefficient of variation is 1 / burstiness.
            seed: Of the gaps.

        Raises:
            BadInput: The bounds leave no request, or no time that int64 ns can hold; or the gaps vanish.
        """
        if not burstiness >= LEAST_BURSTINESS:
            problem = f"{burstiness:g} puts nearly all gaps at 0"
            raise BadInput("--burstiness", problem, f"use {LEAST_BURSTINESS:g} or more")
        if not 0 < rate.mean_rps < math.inf:
            problem = f"{rate.mean_rps:g} requests/s cannot be scheduled"
            raise BadInput("--request-rate", problem, "use a number above 0")
        rng = np.random.default_rng([seed, *b"arrivals"])
        limit_s = math.inf if duration_s is None else duration_s
        if count is not None and _some(count) / rate.mean_rps <= limit_s + 1 / NS_PER_S:
            window_s = count / rate.mean_rps
            window_ns = _window_ns(window_s)
            return cls(_nanoseconds(rate.when(_arrivals(rng, burstiness, count), window_s)), window_ns)
        window_ns = _window_ns(limit_s)
        arrivals = _arrivals_until(rng, burstiness, rate.mean_rps * limit_s)[:count]
        due_ns = _nanoseconds(rate.when(arrivals, limit_s))
        return cls(due_ns[: np.searchsorted(due_ns, window_ns)], window_ns)

    @property
    def count(self) -> int:
        """How many requests there are."""
        return len(self.due_ns)

    @property
    def rate(self) -> float:
        """The mean rate over the window, requests per second; inf when all are due at once."""
        return self.count / self.duration_ns * NS_PER_S if self.duration_ns else math.inf

    @property
    def begins(self) -> NDArray[np.bool_]:
        """Of each request, whether it has a due time of its own: all but the further turns of sessions."""
        begins: NDArray[np.bool_] = self.due_ns != FOLLOWS
        return begins

    @property
    def session(self) -> Int64s:
        """Of each request, the number of the session that it is part of, or is alone; int64, shape (count,)."""
        session: Int64s = np.cumsum(self.begins) - 1
        return session

    def about(self) -> dict[str, Any]:
        """What provenance says of it, as JSON."""
        return {
            "sha256": self.sha256,
            "requests": self.count,
            "sessions": int(self.begins.sum()),
            "duration_s": self.duration_ns / NS_PER_S,
        }

    @cached_property
    def sha256(self) -> str:
        """The SHA-256 of `due_ns`, in hexadecimal: the same for all shards of one run."""
        return hashlib.sha256(self.due_ns.astype("<i8", copy=False).data).hexdigest()

    def stripe(self, i: int, n: int) -> tuple[Int64s, Int64s]:
        """Every `n`-th session (or single request) from the `i`-th on, 0 <= i < n, as (numbers in the run, due_ns).

        The stripes of all i are the whole. One is empty where n is above the number of sessions.
        """
        if not 0 <= i < n:
            raise ValueError(f"there is no stripe {i} of {n}")
        index = np.flatnonzero(self.session % n == i)
        return index, self.due_ns[index]


def is_bounded_by_time(settings: RunSettings) -> bool:
    """Whether nobody knows beforehand how many requests there will be: a closed loop that only a duration ends."""
    return is_closed_loop(settings) and settings.duration is not None and settings.num_prompts is None


def _rate(settings: RunSettings) -> Rate | None:
    """The rate asked for; None for all at once."""
    if settings.ramp_up_strategy is not None:
        assert settings.ramp_up_start_rps is not None
        assert settings.ramp_up_end_rps is not None
        ramp = LinearRamp if settings.ramp_up_strategy == "linear" else ExponentialRamp
        return ramp(settings.ramp_up_start_rps, settings.ramp_up_end_rps)
    return None if math.isinf(settings.request_rate) else Flat(settings.request_rate)


def _some(count: int) -> int:
    if count < 1:
        raise BadInput("--num-prompts", f"{count} requests are no run", "ask for 1 or more")
    return count


def _window_ns(window_s: float) -> int:
    if not 0 < window_s <= LONGEST_S:
        problem = f"a run of {window_s:.3g} s cannot be scheduled"
        raise BadInput("--request-rate", problem, "give a higher rate, or fewer requests or seconds")
    return int(window_s * NS_PER_S)


def _arrivals(rng: np.random.Generator, burstiness: float, count: int) -> Floats:
    """The first `count` points of a unit-rate process, scaled so that the last of their gaps ends at `count`.

    Evenly spaced points begin at 0, so that a window of u holds u of them; others begin with a gap.
    """
    if math.isinf(burstiness):
        return np.arange(count, dtype=np.float64)
    points = np.cumsum(rng.standard_gamma(burstiness, count))
    return points / points[-1] * count if points[-1] > 0 else points


def _arrivals_until(rng: np.random.Generator, burstiness: float, end: float) -> Floats:
    """The points of a unit-rate process up to `end`, and some beyond.

    It has been going on for long: the first gap is what is left of one that an instant falls into, and so are gaps in
    proportion to their length (Cox, Renewal Theory, 1962, section 5.2). Evenly spaced points begin at 0.
    """
    if math.isinf(burstiness):
        return np.arange(math.ceil(end), dtype=np.float64)
    # Six standard deviations more than the mean: nearly always enough at once.
    chunk = math.ceil(end + 6 * math.sqrt(end / burstiness)) + 16
    gaps = rng.standard_gamma(burstiness, chunk) / burstiness
    if burstiness != 1:  # a Poisson process forgets when its last arrival was
        gaps[0] = rng.random() * rng.standard_gamma(burstiness + 1) / burstiness
    points = np.cumsum(gaps)
    while points[-1] < end:
        more = np.cumsum(rng.standard_gamma(burstiness, chunk) / burstiness)
        points = np.concatenate((points, points[-1] + more))
    return points[: np.searchsorted(points, end)]


def _nanoseconds(seconds: Floats) -> Int64s:
    due_ns = (seconds * NS_PER_S).astype(np.int64)
    # A root or logarithm may put two nearly equal points in the wrong order by its last bit.
    return np.maximum.accumulate(due_ns, out=due_ns)
