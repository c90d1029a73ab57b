"""Group C: did the client distort what it measured? How far it may have moved each printed
latency, and why.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

from loadgen.checks.causes import cause_of
from loadgen.checks.check import NONE, UNKNOWN, Bound, Check, explanation, inapplicable
from loadgen.checks.sending import because, is_local, relief
from loadgen.config import slo
from loadgen.config.target import AIOHTTP
from loadgen.metrics.run_data import RunData
from loadgen.metrics.snapshot import Snapshot
from loadgen.metrics.statistic import client_error_ms, statistic_ms
from loadgen.util.machine import MAX_STOLEN_SHARE, max_others_cores, taken_text
from loadgen.util.number_format import (
    SHARE,
    four_digits,
    in_ms,
    in_percent,
    percentile,
    plural,
)

CLIENT_ERROR, OTHER_ERROR = "timing error too large", "other figures off"
# What a user reads of a run; a run is SUSPECT for these figures, and for those of its SLO.
HEADLINE_METRICS, HEADLINE_STATISTICS = ("ttft", "tpot", "e2el"), ("p50", "p99")
MAX_SHARE, MAX_MS = 0.01, 0.1  # of a figure; the greater of the two is allowed
ALLOWED = f"{in_percent(MAX_SHARE)} of each, or {MAX_MS:g} ms"
NAMED = 3  # figures that are named
# Latencies that are the same as another one where each event bore one token, or there was no
# reasoning.
TWINS = {"icl": "itl", "ttfo": "ttft"}
BUSY, TAKEN, UNSEEN = "loop busy", "other programs used the CPU", "client unseen"
SHARED_CPU = "loadgen took CPU time from the server"
READ_TOGETHER, GAPS_BELOW_50_US = "events read together", "gaps below 50 us"
MAX_BUSY = Bound(0.7, SHARE)  # beyond it events wait in line before they are stamped
# A stall of the loop stands in every latency that ends in it, the shortest of which are the gaps
# between events: so it is held against their median. Half a millisecond is what stamps are good to;
# and stalls of 5 ms are not good whatever the gaps are.
STALL_SHARE, STALL_FLOOR_NS, STALL_CEILING_NS = 0.1, 4e5, 4e6
MIN_BEATS = 1000
# A client takes CPU from a server on the same machine only where there is none left, and it uses
# enough to matter.
MIN_IDLE, MAX_OF_SERVER = 0.05, 0.05
MAX_SHOWN = 10  # times the CPU time of the server
# Other programs slow a server on the same machine, unless so much of it is idle that each finds a
# core.
ENOUGH_IDLE = 0.75
# What takes a hundredth of the time can move a p99.
MAX_TIME_LOST = Bound(0.01, SHARE)
# Events that came together shift the median of the gaps by half of their share.
MAX_TOGETHER, SHORT_GAP_NS = Bound(0.05, SHARE), 50_000


class Figure(NamedTuple):
    """A printed number of a latency.

    Attributes:
        metric: ttft, ttfo, tpot, itl, icl or e2el.
        statistic: mean, median, max or a percentile such as p99.
        value_ms: Its value.
        error_ms: How far it can be from the truth because of the client.
        decides: Whether the verdict rests on it: it is of the headline, or the SLO limits it.
        failed: How many failed requests count as slower than all others.
    """

    metric: str
    statistic: str
    value_ms: float
    error_ms: float
    decides: bool = True
    failed: int = 0

    @property
    def excess(self) -> float:
        """The error as a multiple of what is allowed."""
        return self.error_ms / allowed_ms(self.value_ms)

    def __str__(self) -> str:
        return f"{self.statistic} {self.metric.upper()} of {four_digits(self.value_ms, 'ms')}"


def allowed_ms(value_ms: float) -> float:
    """Return how far the client may move a latency of a VALID run, ms."""
    return max(MAX_SHARE * value_ms, MAX_MS)


def distortion(run: RunData) -> list[Check]:
    """Check what the measuring side may have added to the numbers, and what explains it."""
    symptoms = [
        _stalls(run),
        _busy(run),
        *_time_lost(run),
        _reads(run),
        _short_gaps(run.snapshot),
    ]
    return [
        *client_error(run),
        *_unseen(run),
        _window(run),
        _shared_cpu(run),
        _taken(run),
        *_starved(run),
        *map(explanation, symptoms),
    ]


def _unseen(run: RunData) -> Iterator[Check]:
    """Whether the client's machine was seen; nothing where it was, or no process died and no line
    is missing.
    """
    if run.snapshot.partial is not None and not run.client.known:
        why = f"{UNKNOWN}, by which CPU time, stalls and pauses are judged"
        advice = "name the whole file that `loadgen run` wrote, or run again"
        yield Check(UNSEEN, False, why, "0", advice)


def _of_server(share: float) -> str:
    """Write the CPU time of the client as a share of the server's, which may be next to none."""
    return in_percent(share) if share < MAX_SHOWN else f"more than {in_percent(MAX_SHOWN)}"


def _starved(run: RunData) -> Iterator[Check]:
    """Whether idle connections held threads of the server; nothing where none seems to have."""
    starved = run.client.starved_requests
    if starved:
        about = (
            f"of {plural(run.snapshot.ended, 'request')} waited for a thread of the server that an "
            "idle connection of this client held"
        )
        advice = (
            "this server gives each connection a thread, and the client closed its idle ones for "
            "these requests: give the server more threads than there are requests in flight"
        )
        yield NONE.check("threads held by idle connections", starved, about, advice)


def client_error(run: RunData) -> list[Check]:
    """Compare the error of each printed latency with what is allowed: of those that decide, and
    of the others, which is a note.
    """
    printed = sorted(figures(run), key=lambda figure: figure.excess, reverse=True)
    if not printed:
        why = "no request was ok"
        if run.snapshot.counters["unbounded_events"]:
            why = "the records do not say how late tokens were read"
        return [inapplicable(CLIENT_ERROR, why), inapplicable(OTHER_ERROR, why)]
    deciding = [figure for figure in printed if figure.decides]
    others = [figure for figure in printed if not figure.decides]
    return [_within(CLIENT_ERROR, deciding, run), _within(OTHER_ERROR, others, run, counts=False)]


def _within(name: str, ranked: list[Figure], run: RunData, *, counts: bool = True) -> Check:
    """Check that figures, the worst first, are within what is allowed."""
    if not ranked:
        return inapplicable(name, "the run has none")
    worst, *others = ranked
    beyond = [figure for figure in others if figure.excess > 1]
    shown = [f"{four_digits(figure.error_ms, 'ms')} on {figure}" for figure in beyond[: NAMED - 1]]
    about = ", ".join([f"at most on {worst}", *shown])
    more = len(beyond) - len(shown)
    about += f", and {more} more" if more else ""
    advice = cause_of(worst.metric, worst.statistic, worst.error_ms, run, worst.failed)
    bound = Bound(allowed_ms(worst.value_ms), "ms", why=f"({ALLOWED})")
    return bound.check(name, worst.error_ms, about, advice, counts)


def figures(run: RunData) -> Iterator[Figure]:
    """Yield the latencies that a run prints, and those that its SLO limits, with their errors."""
    settings, snapshot = run.settings, run.snapshot
    printed = ["mean", *map(percentile, run.percentiles)]
    failures = {(metric, statistic): 0 for metric in slo.LATENCY_METRICS for statistic in printed}
    deciding = {
        (metric, statistic) for metric in HEADLINE_METRICS for statistic in HEADLINE_STATISTICS
    }
    failures.update(dict.fromkeys(deciding, 0))
    for limit in slo.required_limits(settings.slo) if settings.slo else ():
        if limit.metric in slo.LATENCY_METRICS:
            deciding.add((limit.metric, limit.statistic))
            failures[limit.metric, limit.statistic] = (
                0 if limit.of_survivors else snapshot.failures.failed
            )
    for (metric, statistic), failed in failures.items():
        name = slo.distribution(metric, settings.latency_from)
        value = statistic_ms(snapshot.histograms[name], statistic, failed)
        error = client_error_ms(snapshot, name, statistic, failed)
        if value is None or error is None or not math.isfinite(value):
            continue
        twin = TWINS.get(metric)
        if (
            twin
            and snapshot.histograms[name]
            == snapshot.histograms[slo.distribution(twin, settings.latency_from)]
        ):
            continue
        yield Figure(metric, statistic, value, error, (metric, statistic) in deciding, failed)


def most_stall_ns(gap: float | None) -> float:
    """How long tokens may wait for the loop at p99, where the median gap between events is
    known, or not; ns.
    """
    return (
        STALL_CEILING_NS
        if gap is None
        else max(STALL_FLOOR_NS, min(STALL_CEILING_NS, STALL_SHARE * gap))
    )


def _window(run: RunData) -> Check:
    """A server that has filled the receive window has to wait until the client reads."""
    name, held = "receive window filled", run.snapshot.counters["window_filled"]
    if run.settings.transport == AIOHTTP:
        return inapplicable(name, "aiohttp has read the answers")
    about = f"of {plural(run.snapshot.ended, 'answer')} filled it before they were read"
    advice = (
        "the client read so late that the server had to wait: lower the load, or give the "
        "client a faster core"
    )
    return NONE.check(name, held, about, advice)


def _shared_cpu(run: RunData) -> Check:
    """A client on the server's machine may take CPU from it."""
    name, client = SHARED_CPU, run.client
    if client.engine_cpu_s is None and not is_local(run):
        return inapplicable(name, "the server is on another machine")
    if client.idle_share is None or client.machine_cpu_s is None or client.cpu_s is None:
        return inapplicable(name, UNKNOWN)
    others_s = (client.others_cores or 0.0) * (client.wall_s or 0.0)
    theirs = (
        client.machine_cpu_s - client.cpu_s - others_s
        if client.engine_cpu_s is None
        else client.engine_cpu_s
    )
    ours = client.cpu_s / theirs if theirs > 0 else 0.0
    value = (
        f"cores {in_percent(client.idle_share)} idle, loadgen used {_of_server(ours)} as much CPU "
        "time as the server"
    )
    limit = f"{in_percent(MIN_IDLE)} idle, or {in_percent(MAX_OF_SERVER)} as much CPU time"
    advice = (
        "client and server compete for the cores of this machine: run the client on another "
        "one, or lower the load"
    )
    return Check(name, client.idle_share >= MIN_IDLE or ours <= MAX_OF_SERVER, value, limit, advice)


def _taken(run: RunData) -> Check:
    """What other programs, and the hypervisor, take from a server on this machine."""
    others, stolen = run.client.others_cores, run.client.stolen_share
    cores, idle = run.client.cores, run.client.idle_share
    if others is None or stolen is None or cores is None or idle is None:
        return inapplicable(TAKEN, "no server was seen on this machine, or not its CPU time")
    most = max_others_cores(cores)
    is_free = others <= most or idle >= ENOUGH_IDLE
    value = taken_text(others, stolen, cores) or f"{others:.1f} of {cores} cores"
    limit = f"{most:g} cores while less than {in_percent(ENOUGH_IDLE)} are idle"
    limit += f", or {in_percent(MAX_STOLEN_SHARE)} of the time"
    advice = (
        "the server would be faster without them: stop what else runs on this machine, or serve "
        "on another; servers behind a local proxy also count as others"
    )
    return Check(TAKEN, is_free and stolen <= MAX_STOLEN_SHARE, value, limit, advice)


def _stalls(run: RunData) -> Check:
    name, stalls = "loop stalls", run.snapshot.histograms["loop_stall"]
    p99 = stalls.percentile(99)
    if not stalls.count and not run.client.known:
        return inapplicable(name, UNKNOWN)
    if p99 is None or stalls.count < MIN_BEATS:
        return inapplicable(name, "the run is too short to tell")
    limit = most_stall_ns(run.snapshot.histograms["icl"].percentile(50))
    about = f"at p99, {in_ms(stalls.max)} at most"
    advice = because(f"tokens waited for the client: {relief(run)}", run)
    return Bound(limit / 1e6, "ms").check(name, p99 / 1e6, about, advice)


def _busy(run: RunData) -> Check:
    name, busy = BUSY, run.client.busy_share
    if busy is None:
        return inapplicable(name, UNKNOWN)
    advice = because("lower the rate or the concurrency, or give the client a faster core", run)
    return MAX_BUSY.check(name, busy, "of the time", advice)


def _time_lost(run: RunData) -> Iterator[Check]:
    """Shares of the run's time for which the client could not have run."""
    client, pauses = run.client, run.snapshot.histograms["gc_pause"]
    is_measured = (
        client.wall_s and client.throttled_s is not None and client.stolen_share is not None
    )
    wall_s = client.wall_s or 1.0
    longest = f", the longest {in_ms(pauses.max)}" if pauses.count else ""
    unlimited = "raise or remove the CPU limit of the container the client runs in"
    larger = (
        "the host gives this virtual machine too little: measure from another, or from one "
        "with cores of its own"
    )
    frozen = "keep fewer objects in this process, or call gc.freeze() before the run"
    paused = pauses.total / 1e9 / wall_s / len(run.workers)
    for name, share, bound, advice, seen in (
        ("CPU throttled", (client.throttled_s or 0.0) / wall_s, MAX_TIME_LOST, unlimited, ""),
        ("CPU stolen", client.stolen_share or 0.0, Bound(MAX_STOLEN_SHARE, SHARE), larger, ""),
        ("GC pauses", paused, MAX_TIME_LOST, frozen, longest),
    ):
        yield (
            bound.check(name, share, f"of the time{seen}", advice)
            if is_measured
            else inapplicable(name, UNKNOWN)
        )


def _reads(run: RunData) -> Check:
    """Events that one read brought came together, or came while the client did not look."""
    name, counters = READ_TOGETHER, run.snapshot.counters
    events, reads = counters["token_events"], counters["token_reads"]
    if not reads:
        return inapplicable(name, "no token came")
    stalled = _stalls(run).ok is False or _busy(run).ok is False
    advice = (
        because(
            f"the client looked late, so gaps between tokens are not the server's: {relief(run)}",
            run,
        )
        if stalled
        else "the server or a proxy sends several events in one piece: this causes gaps of 0; "
        "read TPOT"
    )
    about = f"of events came with another ({four_digits(events / reads)} per read)"
    return MAX_TOGETHER.check(name, 1 - reads / events, about, advice)


def _short_gaps(snapshot: Snapshot) -> Check:
    """Gaps too short for a model between events that were read one by one."""
    name, counters = GAPS_BELOW_50_US, snapshot.counters
    together = counters["token_events"] - counters["token_reads"]
    gaps = snapshot.histograms["icl"].count - together
    if gaps <= 0:
        return inapplicable(name, "no answer came in two reads or more")
    share = (snapshot.histograms["icl"].count_at_or_below(SHORT_GAP_NS) - together) / gaps
    advice = (
        "the server or a proxy holds events back and sends them in bursts: turn off its "
        "buffering, or read TPOT"
    )
    return MAX_TOGETHER.check(name, share, "of gaps are shorter", advice)
