"""Group B: did we send what the schedule asked, when it asked?"""

import math

import numpy as np

from loadgen.checks.check import Check
from loadgen.outcomes import Outcome
from loadgen.schedule import Schedule
from loadgen.snapshot import Int64s, Snapshot

LAG_FLOOR_NS, LAG_CEILING_NS, LAG_SHARE = 1e6, 10e6, 0.05
RATE_TOLERANCE = 0.005
GAP_DISTANCE, GAP_GRAIN_NS = 0.05, 100_000
FEWEST_FOR_RATE = 100
OUR_FAULTS = (Outcome.CANCELLED, Outcome.DROPPED, Outcome.CLIENT_ERROR)
_SLOW = "the client could not keep up: free a core, lower the rate, or stop what else runs on this machine"


def sending(snapshot: Snapshot, schedule: Schedule, *, closed_loop: bool, disturbance: str) -> list[Check]:
    """Check the sending side of a run.

    Args:
        snapshot: The whole run.
        schedule: What was asked.
        closed_loop: Requests were due when a slot was free, so there is no schedule to be late against.
        disturbance: What else was busy on the machine, for the advice; empty if nothing was.
    """
    slow = f"{_SLOW} ({disturbance})" if disturbance else _SLOW
    held_back = closed_loop or bool(snapshot.histograms["pool_wait"].max)
    return [
        _lag(snapshot, slow),
        _early(snapshot),
        _rate(snapshot, schedule, held_back, slow),
        _gaps(snapshot, schedule, held_back, slow),
        _unsent(snapshot),
    ]


def _lag(snapshot: Snapshot, advice: str) -> Check:
    lag, ttft = snapshot.histograms["lag"], snapshot.histograms["ttft_sent"].percentile(5)
    p99 = lag.percentile(99)
    limit = max(LAG_FLOOR_NS, min(LAG_CEILING_NS, LAG_SHARE * ttft if ttft is not None else LAG_CEILING_NS))
    if p99 is None or lag.max is None:
        return Check("B", "lag p99", None, "n/a", "nothing was sent", advice)
    value = f"{p99 / 1e6:.3f} ms (max {lag.max / 1e6:.3f} ms)"
    return Check("B", "lag p99", p99 <= limit, value, f"{limit / 1e6:.3f} ms", advice)


def _early(snapshot: Snapshot) -> Check:
    early = snapshot.counters["early"]
    return Check(
        "B",
        "never early",
        early == 0,
        f"{early} requests more than 50 us early",
        "0",
        "this is a bug in loadgen: please report it",
    )


def _times(snapshot: Snapshot, schedule: Schedule) -> tuple[Int64s, Int64s]:
    """Due and sent times, ns, of the requests that were sent, in the schedule's order."""
    was_sent = snapshot.sent >= 0
    order = np.argsort(snapshot.index[was_sent], kind="stable")
    index = snapshot.index[was_sent][order]
    return schedule.due_ns[index], snapshot.sent[was_sent][order]


def _rate(snapshot: Snapshot, schedule: Schedule, free: bool, advice: str) -> Check:
    name, limit = "rate as scheduled", f"within {RATE_TOLERANCE:.1%}"
    if free or schedule.duration_ns == 0:
        return Check("B", name, None, "n/a", _why_free(free), advice)
    due, sent = _times(snapshot, schedule)
    if len(due) < FEWEST_FOR_RATE:
        return Check("B", name, None, "n/a", f"fewer than {FEWEST_FOR_RATE} requests", advice)
    planned, achieved = float(due[-1] - due[0]), float(sent[-1] - sent[0])
    share = planned / achieved if achieved > 0 else math.inf
    rate = (len(due) - 1) / achieved * 1e9 if achieved > 0 else math.inf
    value = f"{rate:.2f} req/s, {share:.2%} of the schedule's"
    return Check("B", name, abs(share - 1) <= RATE_TOLERANCE, value, limit, advice)


def _gaps(snapshot: Snapshot, schedule: Schedule, free: bool, advice: str) -> Check:
    name = "gaps as scheduled"
    if free or schedule.duration_ns == 0:
        return Check("B", name, None, "n/a", _why_free(free), advice)
    due, sent = _times(snapshot, schedule)
    if len(due) < FEWEST_FOR_RATE:
        return Check("B", name, None, "n/a", f"fewer than {FEWEST_FOR_RATE} requests", advice)
    asked, seen = np.sort(np.diff(due)), np.sort(np.diff(np.sort(sent)))
    distance = _distance(asked, seen, max(GAP_GRAIN_NS, float(np.mean(asked)) / 10))
    return Check("B", name, distance <= GAP_DISTANCE, f"distance {distance:.3f}", f"{GAP_DISTANCE}", advice)


def _why_free(free: bool) -> str:
    return "the cap held requests back" if free else "all requests are due at once"


def _distance(a: Int64s, b: Int64s, tolerance: float) -> float:
    """Largest difference between two distributions, given sorted; values within `tolerance` count as equal.

    The Kolmogorov-Smirnov distance, made deaf to jitter: without that a constant schedule, whose gaps are all
    one value, could never be met.
    """

    def excess(low: Int64s, high: Int64s) -> float:
        at = low[:: max(1, len(low) // 10_000)]
        below_low = np.searchsorted(low, at, side="right") / len(low)
        below_high = np.searchsorted(high, at + tolerance, side="right") / len(high)
        return float(np.max(below_low - below_high))

    return max(excess(a, b), excess(b, a), 0.0)


def _unsent(snapshot: Snapshot) -> Check:
    """Requests that we, not the server, failed to bring to an end."""
    count = sum(snapshot.outcomes.get(outcome, 0) for outcome in OUR_FAULTS)
    return Check(
        "B",
        "every request sent",
        count == 0,
        f"{count} requests cancelled, dropped or failed by the client",
        "0",
        "let the run end by itself, and look at the examples below for what the client lacked",
    )
