"""Group B: did we send what the schedule asked, when it asked?"""

import math
from collections.abc import Iterator
from urllib.parse import urlsplit

import numpy as np

from loadgen.checks.check import NONE, Bound, Check, inapplicable
from loadgen.errors import ENDED_BY_SEARCH, INTERRUPTED
from loadgen.metrics import throughput
from loadgen.metrics.failures import lost_text
from loadgen.metrics.run_data import RunData
from loadgen.util.arrays import Int64s
from loadgen.util.clock import NS_PER_S
from loadgen.util.number_format import SHARE, four_digits, in_ms, plural

LATE_SENDS, OFF_SCHEDULE, CUT_SHORT = "requests sent late", "rate off schedule", "run cut short"
LATE_FLOOR_NS, LATE_SHARE_OF_GAP, MAX_LATE = 5e6, 0.1, Bound(0.01, SHARE)
RATE_TOLERANCE = Bound(0.005, SHARE)
GAP_DISTANCE, GAP_GRAIN_NS = Bound(0.05), 100_000
MIN_FOR_RATE = 100
LACKED = (
    "the examples below name the limit that the client reached; `loadgen doctor` says how to "
    "raise it"
)
SMALL_RATE, SMALL_CAP = 10.0, 10  # requests/s, or in flight: so few keep no machine busy
_BUG = "this is a bug in loadgen: please report it"
_LOCAL = ("localhost", "127.0.0.1", "::1")
_BURST = (
    "all requests are due at once, and sending each takes time: set --max-concurrency, or "
    "give a rate"
)


def sending(run: RunData) -> list[Check]:
    """Check the sending side of a run."""
    advice = because(f"the client could not keep up: {relief(run)}", run)
    burst = run.schedule.duration_ns == 0 and run.settings.max_concurrency is None
    early, unsent = run.snapshot.counters["early"], run.snapshot.failures.client
    requests = f"of {plural(run.snapshot.ended, 'request')}"
    return [
        _on_time(run, _BURST if burst else advice),
        NONE.check("early sends", early, f"{requests} more than 50 us early", _BUG),
        _rate(run, advice),
        _gaps(run, advice),
        NONE.check("requests unsent", unsent, f"{requests} failed by the client", LACKED),
        _cut_short(run),
        *_session_tokens(run),
    ]


def _session_tokens(run: RunData) -> Iterator[Check]:
    """Whether the later turns of sessions had a token to send back; nothing where none was asked
    for.
    """
    header = run.settings.session_token
    if header is None or run.schedule.begins.all():
        return
    later = plural(int((~run.schedule.begins).sum()), "later turn")
    advice = (
        "the router did not return it, so it may have scattered these turns over its servers: give "
        "--session-token the name of the header that it returns"
    )
    missing = run.snapshot.counters["turns_without_token"]
    about = f"of {later} of sessions had no {header} to send back"
    yield NONE.check("session token missing", missing, about, advice)


def because(advice: str, run: RunData) -> str:
    """The advice, with what else was busy on the machine, if anything was."""
    disturbance = run.client.disturbance
    if disturbance and run.client.others_cores is None and is_local(run):
        disturbance += "; the server is one of them"
    return f"{advice} ({disturbance})" if disturbance else advice


def relief(run: RunData) -> str:
    """What helps a client that was late in this run: less load only where there was much of it."""
    capped = run.closed_loop
    small = run.settings.max_concurrency or math.inf if capped else run.schedule.rate
    if small <= (SMALL_CAP if capped else SMALL_RATE):
        return (
            "this machine's timers are late even under a small load; free a core, or stop what "
            "else runs on it"
        )
    lower = "--max-concurrency" if capped else "the rate"
    return f"free a core, lower {lower}, or stop what else runs on this machine"


def is_local(run: RunData) -> bool:
    """Whether a server of the run is on this machine, by its name."""
    local = [urlsplit(url).hostname in _LOCAL for url in run.settings.urls]
    return any(local) or run.settings.unix_socket is not None


def late_limit_ns(mean_gap_ns: float) -> float:
    """Return how long after it could be sent a request counts as late, ns.

    A later one changes the load: it arrives nearer to the next one, and not after the one before.

    Args:
        mean_gap_ns: The mean time from one request to the next.
    """
    return max(LATE_FLOOR_NS, LATE_SHARE_OF_GAP * mean_gap_ns)


def _on_time(run: RunData, advice: str) -> Check:
    """Requests that the client itself sent late.

    From-due latencies contain that, from-sent ones do not.
    """
    histograms = run.snapshot.histograms
    lag, connect = histograms["lag"], histograms["connect"]
    if not lag.count:
        return inapplicable(LATE_SENDS, "nothing was sent")
    sent = run.snapshot.sent[run.snapshot.sent >= 0]
    limit = late_limit_ns(float(np.ptp(sent)) / max(1, len(sent) - 1))
    late = lag.count - lag.count_at_or_below(limit)
    unconnected = connect.count - connect.count_at_or_below(limit)
    if (
        run.client.connections_reused is False
    ):  # opening a connection is then a part of each request
        unconnected = 0
    share = min(1.0, (late + unconnected) / lag.count)
    about = f"of the requests sent more than {in_ms(limit)} late"
    if unconnected > late:
        peak = throughput.peak_concurrency(run.snapshot)
        warm = run.snapshot.counters["warm_connections"]
        about += f": {unconnected} waited for a connection"
        about += f", {late} for the client" if late else ""
        connections = peak if warm < peak else 2 * peak if warm < 2 * peak else 2 * warm
        advice = f"open connections before the clock starts: --warm-connections {connections}"
    else:
        about += f" (lag p99 {in_ms(lag.percentile(99))}, max {in_ms(lag.max)})"
    return MAX_LATE.check(LATE_SENDS, share, about, advice)


def _times(run: RunData) -> tuple[Int64s, Int64s, str | None]:
    """Due and sent times, ns, of what was sent of the arrival process, which begins sessions, in
    its order.

    Returns:
        Also why they cannot be held against each other, if they cannot.
    """
    snapshot, schedule = run.snapshot, run.schedule
    was_sent = (snapshot.sent >= 0) & schedule.begins[snapshot.index]
    order = np.argsort(snapshot.index[was_sent], kind="stable")
    index = snapshot.index[was_sent][order]
    why = f"fewer than {MIN_FOR_RATE} requests" if len(index) < MIN_FOR_RATE else None
    if schedule.duration_ns == 0:
        why = "all requests are due at once"
    if run.held_back:
        why = "the cap held requests back"
    return schedule.due_ns[index], snapshot.sent[was_sent][order], why


def _rate(run: RunData, advice: str) -> Check:
    due, sent, why = _times(run)
    if why:
        return inapplicable(OFF_SCHEDULE, why)
    spans = float(due[-1] - due[0]), float(sent[-1] - sent[0])
    off = abs(spans[0] / spans[1] - 1) if spans[1] > 0 else math.inf
    planned, achieved = (
        four_digits((len(due) - 1) / span * NS_PER_S if span > 0 else math.inf, "req/s")
        for span in spans
    )
    about = f"off the schedule's {planned}: {achieved}"
    return RATE_TOLERANCE.check(OFF_SCHEDULE, off, about, advice)


def _gaps(run: RunData, advice: str) -> Check:
    name = "gaps off schedule"
    due, sent, why = _times(run)
    if why:
        return inapplicable(name, why)
    planned: Int64s = np.sort(np.diff(due))
    seen: Int64s = np.sort(np.diff(np.sort(sent)))
    distance = _distance(planned, seen, max(GAP_GRAIN_NS, float(np.mean(planned)) / 10))
    return GAP_DISTANCE.check(name, distance, "between the distributions of gaps", advice)


def _distance(a: Int64s, b: Int64s, tolerance: float) -> float:
    """Largest difference between two distributions, given sorted; values within `tolerance` count
    as equal.

    The Kolmogorov-Smirnov distance, made deaf to jitter: without that a constant schedule, whose
    gaps are all one value, could never be met.
    """

    def excess(low: Int64s, high: Int64s) -> float:
        at = low[:: max(1, len(low) // 10_000)]
        below_low = np.searchsorted(low, at, side="right") / len(low)
        below_high = np.searchsorted(high, at + tolerance, side="right") / len(high)
        return float(np.max(below_low - below_high))

    return max(excess(a, b), excess(b, a), 0.0)


def _cut_short(run: RunData) -> Check:
    """Requests that the end of the run cut off in flight, or kept from being sent.

    In a closed loop that its duration ends, it is not known how many would have been sent.
    """
    if (run.snapshot.partial or "").startswith(ENDED_BY_SEARCH):
        return inapplicable(CUT_SHORT, ENDED_BY_SEARCH)
    if run.trailer.stopped is not None:
        return inapplicable(CUT_SHORT, "--stop-when asked for it")
    snapshot, lost = run.snapshot, lost_text(run.snapshot.cut_off, run.snapshot.never_sent)
    duration_s = run.settings.duration
    is_short = bool(lost)
    if run.closed_loop and duration_s is not None and snapshot.partial:  # it ended before its time
        is_short = is_short or bool(snapshot.closed.max(initial=0) < duration_s * NS_PER_S)
    why = f"the run was ended early: {snapshot.partial}" if is_short and snapshot.partial else ""
    value = ", as ".join(
        filter(None, (f"requests: {lost or '0 cut off'}" if lost or not why else "", why))
    )
    advice = "let the run end by itself"
    if why:
        advice = "the numbers describe only the time before"
        advice += (
            ""
            if snapshot.partial == INTERRUPTED
            else "; if the server is gone, read its log and measure again"
        )
    return Check(CUT_SHORT, not is_short, value, "0", advice)
