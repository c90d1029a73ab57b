"""Backlog: whether requests, or sessions, pile up in front of the server while the load is steady."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from loadgen.metrics.run_data import RunData
from loadgen.util.arrays import Int64s

MIN_BEGUN = 200  # requests, or sessions
# The first of them show how long one takes before any queue has grown: so many, or so large a share if that is more.
FIRST, FIRST_SHARE = 20, 0.02
MIN_SOJOURNS = 5  # length of the window
POINTS = 200
# A rise counts when it stands out of the noise (one run in a thousand does by chance), when it is a straight one rather
# than an excursion of a busy queue, and when it matters.
SIGMAS, MIN_FIT, MIN_GROWTH = 3.1, 0.5, 0.2


@dataclass(frozen=True, slots=True)
class Backlog:
    """Requests due and not ended, or sessions, along a straight line fitted to the steady part of a run.

    Attributes:
        start, end: Their number on the line where the window begins and ends.
        noise: Standard deviation of `end - start` in a system that keeps up.
        fit: Share of the number's variance that the line explains (R squared).
        window_s: Length of the window.
    """

    start: float
    end: float
    noise: float
    fit: float
    window_s: float

    @classmethod
    def fitted(
        cls,
        slope: float,
        mean: float,
        variance: float,
        *,
        window_s: float,
        sojourn_s: float,
        burstiness: float,
    ) -> Self:
        """Make it of a straight line through the number at moments that are evenly spread over a window.

        Args:
            slope: Of the line, per second.
            mean, variance: Of the number.
            window_s: Length of the window.
            sojourn_s: Mean time from due to end.
            burstiness: Of the arrivals, as in `RunSettings`.
        """
        rise = slope * window_s
        noise = math.sqrt(12 * max(mean, 1.0) * sojourn_s / window_s * max(1.0, 1 / burstiness))
        # On evenly spaced points a line's own variance is its rise squared over 12.
        fit = min(rise**2 / 12 / variance, 1.0) if variance else 0.0
        return cls(mean - rise / 2, mean + rise / 2, noise, fit, window_s)

    @property
    def rising(self) -> bool:
        """Whether more come than go."""
        rise, mean = self.end - self.start, (self.start + self.end) / 2
        return rise > SIGMAS * self.noise and rise > MIN_GROWTH * mean and self.fit > MIN_FIT


def why_unknown(run: RunData) -> str | None:
    """Why a run's backlog says nothing of overload, if it does not."""
    settings = run.settings
    if run.schedule.duration_ns == 0:
        return "all requests are due at once"
    if settings.rate_changes:
        return "the rate changes by design"
    if run.snapshot.partial is not None:
        return "the run ended early"
    return None


def backlog(run: RunData) -> Backlog | None:
    """Fit the number of requests that are due and not ended; None where the run is too short to say.

    The window begins when the first requests have had time to end and ends with the last due one. That time is the
    p99 sojourn of the first requests, since under overload those of the whole run grow with it. Where the server keeps
    up, the number at two moments further apart than a sojourn is independent and has a Poisson variance, from which
    follows the noise of the fitted rise: sqrt(12 * mean number * sojourn / window), more where arrivals are burstier.
    What arrives is a session, which has ended when the last of its turns has.
    """
    snapshot, schedule = run.snapshot, run.schedule
    was_sent = snapshot.sent >= 0
    session = (np.cumsum(schedule.begins) - 1)[snapshot.index[was_sent]]
    begun, which = np.unique(session, return_inverse=True)
    if len(begun) < MIN_BEGUN:
        return None
    due: Int64s = schedule.due_ns[schedule.begins][begun]
    ends = np.zeros(len(begun), dtype=np.int64)
    np.maximum.at(ends, which, snapshot.closed[was_sent])
    first = np.argsort(due, kind="stable")[: max(FIRST, int(len(due) * FIRST_SHARE))]
    sojourns = (ends - due)[first]
    begin, end = float(due.min() + np.percentile(sojourns, 99)), float(due.max())
    sojourn = float(np.mean(sojourns))
    if end - begin < MIN_SOJOURNS * sojourn:
        return None
    at = np.linspace(begin, end, POINTS)
    number = np.searchsorted(np.sort(due), at, side="right") - np.searchsorted(np.sort(ends), at, side="right")
    slope, _ = np.polyfit(at - begin, number, 1)
    return Backlog.fitted(
        float(slope) * 1e9,
        float(number.mean()),
        float(number.var()),
        window_s=(end - begin) / 1e9,
        sojourn_s=sojourn / 1e9,
        burstiness=run.settings.burstiness,
    )
