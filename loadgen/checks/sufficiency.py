"""Group D: is it enough, and was the load steady?

The load is steady unless requests, or sessions, pile up in front of the server (`Backlog`).
"""

import math
from collections.abc import Iterable
from typing import Self

import numpy as np
from msgspec import Struct

from loadgen.checks.check import NONE, Bound, Check, inapplicable
from loadgen.checks.targets import alike
from loadgen.config import slo
from loadgen.metrics import throughput
from loadgen.metrics.run_data import RunData
from loadgen.metrics.snapshot import UNFINISHED
from loadgen.stats.percentile_confidence_interval import least_samples
from loadgen.util.arrays import Int64s
from loadgen.util.clock import NS_PER_S
from loadgen.util.number_format import in_ms, percentile, three_digits

MIN_BEGUN = 200  # requests, or sessions
# The first of them show how long one takes before any queue has grown: so many, or so large a share
# if that is more.
FIRST, FIRST_SHARE = 20, 0.02
MIN_SOJOURNS = 5  # length of the window
POINTS = 200
# A rise counts when it stands out of the noise (one run in a thousand does by chance), when it is a
# straight one rather than an excursion of a busy queue, and when it matters.
SIGMAS, MIN_FIT, MIN_GROWTH = 3.1, 0.5, 0.2
PILE_UP = "requests pile up"
TOO_FEW_FOR_SLO = "too few for the SLO"
_PER_REQUEST = ("ttft_due", "tpot", "e2el_due")


class Backlog(Struct, frozen=True):
    """Requests due and not ended, or sessions, along a straight line fitted to the steady part of a
    run.

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
        """Make it of a straight line through the number at moments that are evenly spread over a
        window.

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


def sufficiency(run: RunData) -> list[Check]:
    """Check whether the run can bear the statistics that are made of it."""
    # The percentiles that have a limit, and how many values each is taken from, at the least.
    limited: dict[float, int] = {}
    settings = run.settings
    judged = [(settings.slo, run.snapshot)]
    for request_class, part in zip(settings.request_classes, run.snapshot.classes, strict=False):
        judged.append((request_class.slo, part))
    for limits, snapshot in judged:
        for limit in slo.parse(limits) if limits else ():
            if (p := limit.percentile) is not None:
                count = snapshot.requests_of(slo.distribution(limit.metric, settings.latency_from))
                limited[p] = min(count, limited.get(p, count))
    enough = (
        _floor(TOO_FEW_FOR_SLO, limited, counts_too=not settings.allow_few)
        if limited
        else inapplicable(TOO_FEW_FOR_SLO, "no percentile has a limit")
    )
    return [_printed(run, limited), enough, _steady(run), _given_up(run), *alike(run)]


def unfinished_p99_ns(run: RunData) -> float | None:
    """The p99 E2EL from due with requests that were given up counted as if they had ended then;
    a lower bound.
    """
    histograms = run.snapshot.histograms
    return (
        float(p99)
        if (p99 := (histograms["e2el_due"] + histograms[UNFINISHED]).percentile(99)) is not None
        else None
    )


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
    """Fit the number of requests that are due and not ended; None where the run is too short to
    say.

    The window begins when the first requests have had time to end and ends with the last due one.
    That time is the p99 sojourn of the first requests, since under overload those of the whole run
    grow with it. Where the server keeps up, the number at two moments further apart than a sojourn
    is independent and has a Poisson variance, from which follows the noise of the fitted rise:
    sqrt(12 * mean number * sojourn / window), more where arrivals are burstier. What arrives is a
    session, which has ended when the last of its turns has.
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
    number = np.searchsorted(np.sort(due), at, side="right") - np.searchsorted(
        np.sort(ends), at, side="right"
    )
    slope, _ = np.polyfit(at - begin, number, 1)
    return Backlog.fitted(
        float(slope) * 1e9,
        float(number.mean()),
        float(number.var()),
        window_s=(end - begin) / 1e9,
        sojourn_s=sojourn / 1e9,
        burstiness=run.settings.burstiness,
    )


def _printed(run: RunData, limited: Iterable[float]) -> Check:
    """The percentiles of the report that no SLO is on."""
    name, histograms = "too few for percentiles", run.snapshot.histograms
    counts = [count for metric in _PER_REQUEST if (count := histograms[metric].count)]
    printed = [p for p in run.percentiles if p not in limited]
    if not counts or not printed:
        return inapplicable(name, "no percentile was measured, but for those of the SLO")
    return _floor(name, dict.fromkeys(printed, min(counts)), counts_too=run.settings.strict)


def _floor(name: str, seen: dict[float, int], *, counts_too: bool) -> Check:
    """Judge how many values there are for each percentile."""
    few = [
        f"{percentile(p)} needs {least_samples(p)}"
        for p, count in sorted(seen.items())
        if count < least_samples(p)
    ]
    scarcest = min(seen, key=lambda p: seen[p] - least_samples(p))
    about = "value" if seen[scarcest] == 1 else "values"
    about += f", and {', '.join(few)}" if few else ""
    least = Bound(least_samples(scarcest), comparison=">=")
    advice = f"send {least.allowed:g} requests or more"
    return least.check(name, seen[scarcest], about, advice, counts_too)


def _steady(run: RunData) -> Check:
    if why := why_unknown(run):
        return inapplicable(PILE_UP, why)
    seen = backlog(run)
    if seen is None:
        return inapplicable(PILE_UP, "the run is too short for its latencies")
    what = "sessions" if run.schedule.has_sessions else "requests"
    change = f"from {max(seen.start, 0):.0f} to {max(seen.end, 0):.0f}"
    value = f"unfinished {what} grew {change} in {seen.window_s:.0f} s"
    limit = f"a growth by {SIGMAS * seen.noise:.0f}"
    mean = run.snapshot.ok / (throughput.wall_ns(run.snapshot) / NS_PER_S)
    answered = throughput.answer_rate(run.snapshot) or mean
    less = f"use a rate below {three_digits(answered)} req/s, the most that the server completed"
    advice = f"{less}: under overload latencies depend on how long the run lasts"
    return Check(PILE_UP, not seen.rising, value, limit, advice, run.relied_on)


def _given_up(run: RunData) -> Check:
    name, histograms = "requests given up", run.snapshot.histograms
    given_up, bound = histograms[UNFINISHED].count, unfinished_p99_ns(run)
    if bound is None:
        return inapplicable(name, "nothing ended")
    about, without = "given up", histograms["e2el_due"].percentile(99)
    if given_up and (
        without is None or bound > without
    ):  # a bound below what was measured tells nothing
        about += f", p99 E2EL from scheduled send at least {in_ms(bound)} with them"
        about += "" if without is None else f", {in_ms(without)} without"
    advice = "latencies are of the answers that ended"
    advice += "" if run.snapshot.partial else ": raise the timeouts"
    return NONE.check(name, given_up, about, advice, run.relied_on)
