"""Group C: did the client distort what it measured?"""

from collections.abc import Iterator

from loadgen.checks.check import UNKNOWN, Check, explanation, inapplicable
from loadgen.checks.client_error import client_error
from loadgen.checks.sending import because, is_local, relief
from loadgen.metrics.run_data import RunData
from loadgen.metrics.snapshot import Snapshot
from loadgen.util.machine import MAX_STOLEN_SHARE
from loadgen.util.number_format import ms, percent, plural

BUSY = "loop busy"
READ_TOGETHER, GAPS_BELOW_50_US = "events read together", "gaps below 50 us"
MAX_BUSY = 0.7  # beyond it events wait in line before they are stamped
# A stall of the loop stands in every latency that ends in it, the shortest of which are the gaps between events: so it
# is held against their median. Half a millisecond is what stamps are good to; and stalls of 5 ms are not good whatever
# the gaps are.
STALL_SHARE, STALL_FLOOR_NS, STALL_CEILING_NS = 0.1, 4e5, 4e6
MIN_BEATS = 1000
# A client takes CPU from a server on the same machine only where there is none left, and it uses enough to matter.
MIN_IDLE, MAX_OF_SERVER = 0.05, 0.05
# What takes a hundredth of the time can move a p99.
MAX_TIME_LOST = 0.01
MAX_BY_READER = 0.01
# Events that came together shift the median of the gaps by half of their share.
MAX_TOGETHER, SHORT_GAP_NS = 0.05, 50_000


def distortion(run: RunData) -> list[Check]:
    """Check what the measuring side may have added to the numbers, and what explains it."""
    symptoms = [
        _stalls(run),
        _busy(run),
        *_time_lost(run),
        _by_reader(run.snapshot),
        _reads(run),
        _short_gaps(run.snapshot),
    ]
    return [client_error(run), _window(run.snapshot), _shared_cpu(run), *map(explanation, symptoms)]


def _window(snapshot: Snapshot) -> Check:
    """A server that has filled the receive window has to wait until the client reads."""
    held = snapshot.counters["window_filled"]
    value = f"{plural(held, 'answer')} had 48 KiB or more to read at once"
    advice = "the client read so late that the server had to wait: lower the load, or give the client a faster core"
    return Check("receive window filled", held == 0, value, "0", advice)


def _shared_cpu(run: RunData) -> Check:
    """A client on the server's machine may take CPU from it."""
    name, client = "CPU taken from the server", run.client
    if client.engine_cpu_s is None and not is_local(run):
        return inapplicable(name, "the server is on another machine")
    if client.idle_share is None or client.machine_cpu_s is None or client.cpu_s is None:
        return inapplicable(name, UNKNOWN)
    theirs = client.machine_cpu_s - client.cpu_s if client.engine_cpu_s is None else client.engine_cpu_s
    ours = client.cpu_s / theirs if theirs > 0 else 0.0
    value = f"{percent(client.idle_share, 1)} idle, the client used {percent(ours, 1)} of the server's CPU time"
    limit = f"{percent(MIN_IDLE)} idle, or {percent(MAX_OF_SERVER)} of the server's CPU"
    advice = "client and server compete for the cores of this machine: run the client on another one, or lower the load"
    return Check(name, client.idle_share >= MIN_IDLE or ours <= MAX_OF_SERVER, value, limit, advice)


def _stalls(run: RunData) -> Check:
    name, stalls = "loop stalls", run.snapshot.histograms["loop_stall"]
    p99 = stalls.percentile(99)
    if not stalls.count and not run.client.known:
        return inapplicable(name, UNKNOWN)
    if p99 is None or stalls.count < MIN_BEATS:
        return inapplicable(name, "the run is too short to tell")
    limit = most_stall_ns(run.snapshot.histograms["icl"].percentile(50))
    value = f"p99 {ms(p99)} (max {ms(stalls.max)})"
    return Check(name, p99 <= limit, value, ms(limit), because(f"tokens waited for the client: {relief(run)}", run))


def most_stall_ns(gap: float | None) -> float:
    """How long tokens may wait for the loop at p99, where the median gap between events is known, or not; ns."""
    return STALL_CEILING_NS if gap is None else max(STALL_FLOOR_NS, min(STALL_CEILING_NS, STALL_SHARE * gap))


def _busy(run: RunData) -> Check:
    name, busy = BUSY, run.client.busy_share
    if busy is None:
        return inapplicable(name, UNKNOWN)
    advice = because("lower the rate or the concurrency, or give the client a faster core", run)
    return Check(name, busy <= MAX_BUSY, f"{percent(busy)} of the time", percent(MAX_BUSY), advice)


def _time_lost(run: RunData) -> Iterator[Check]:
    """Shares of the run's time for which the client could not have run."""
    client, pauses = run.client, run.snapshot.histograms["gc_pause"]
    known = client.wall_s and client.throttled_s is not None and client.stolen_share is not None
    wall_s = client.wall_s or 1.0
    longest = f", the longest {ms(pauses.max)}" if pauses.count else ""
    unlimited = "raise or remove the CPU limit of the container the client runs in"
    larger = "the host gives this virtual machine too little: measure from another, or from one with cores of its own"
    frozen = "keep fewer objects in this process, or call gc.freeze() before the run"
    for name, share, limit, advice, seen in (
        ("CPU throttled", (client.throttled_s or 0.0) / wall_s, MAX_TIME_LOST, unlimited, ""),
        ("CPU stolen", client.stolen_share or 0.0, MAX_STOLEN_SHARE, larger, ""),
        ("GC pauses", pauses.total / 1e9 / wall_s / len(run.workers), MAX_TIME_LOST, frozen, longest),
    ):
        value = f"{percent(share, 2)} of the time{seen}"
        yield Check(name, share <= limit, value, percent(limit), advice) if known else inapplicable(name, UNKNOWN)


def _by_reader(snapshot: Snapshot) -> Check:
    count = snapshot.counters["by_reader"]
    value = f"{count} of {snapshot.ended} responses read by the slow reader"
    advice = "the server compresses its streams, so their time stamps are late: turn compression off"
    limit = MAX_BY_READER * snapshot.ended
    return Check("read by the slow reader", count <= limit, value, percent(MAX_BY_READER), advice)


def _reads(run: RunData) -> Check:
    """Events that one read brought came together, or came while the client did not look."""
    name, counters = READ_TOGETHER, run.snapshot.counters
    events, reads = counters["token_events"], counters["token_reads"]
    if not reads:
        return inapplicable(name, "no token came")
    together = 1 - reads / events
    stalled = _stalls(run).ok is False or _busy(run).ok is False
    advice = (
        because(f"the client looked late, so gaps between tokens are not the server's: {relief(run)}", run)
        if stalled
        else "the server or a proxy sends several events in one piece: this causes gaps of 0; read TPOT"
    )
    value = f"{events / reads:.3f} events per read, {percent(together, 1)} came with another"
    return Check(name, together <= MAX_TOGETHER, value, percent(MAX_TOGETHER), advice)


def _short_gaps(snapshot: Snapshot) -> Check:
    """Gaps too short for a model between events that were read one by one."""
    name, counters = GAPS_BELOW_50_US, snapshot.counters
    together = counters["token_events"] - counters["token_reads"]
    gaps = snapshot.histograms["icl"].count - together
    if gaps <= 0:
        return inapplicable(name, "no answer came in two reads or more")
    share = (snapshot.histograms["icl"].count_at_or_below(SHORT_GAP_NS) - together) / gaps
    advice = "the server or a proxy holds events back and sends them in bursts: turn off its buffering, or read TPOT"
    return Check(name, share <= MAX_TOGETHER, f"{percent(share, 1)} of gaps are shorter", percent(MAX_TOGETHER), advice)
