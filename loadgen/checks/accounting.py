"""Group A: is every request and token accounted for?"""

from collections.abc import Iterator

import numpy as np

from loadgen.checks.check import NONE, UNKNOWN, Bound, Check, inapplicable
from loadgen.checks.sending import LACKED
from loadgen.checks.targets import shared
from loadgen.core.outcome import Cause, ended_by
from loadgen.core.request_rows import LEFT
from loadgen.features import liveness
from loadgen.metrics.run_data import RunData
from loadgen.metrics.snapshot import Snapshot
from loadgen.util.number_format import SHARE, plural
from loadgen.workload.draws import EarlyEndDraws

SERVER_HUNG = "server hung"
MAX_UNSENT = Bound(0.01, SHARE)  # so few can move no percentile below the p99
_BUG = "this is a bug in loadgen: please report it with the result file"


def accounting(run: RunData) -> list[Check]:
    """Check the books of a run."""
    snapshot, histograms = run.snapshot, run.snapshot.histograms.values()
    ended, scheduled = plural(snapshot.ended, "record"), snapshot.scheduled
    # The load is that which was asked for, unless the client failed to send requests.
    unsent = snapshot.failures.client
    load = f"of the requests ({unsent} of {scheduled}) never sent by a fault of the client"
    rejects = sum(histogram.rejects for histogram in histograms)
    values = rejects + sum(histogram.count for histogram in histograms)
    out_of_range = "a latency below 0 or above 24 h was seen: the clock or the server is broken"
    # Of all workers that were there at the end, whether they had drawn the schedule of the report.
    there = [worker for worker in run.workers if not worker.lost]
    others = sum(worker.schedule_sha256 != run.schedule.sha256 for worker in there)
    schedules = f"of {plural(len(there), 'worker')} executed another than that of the report"
    return [
        _requests(snapshot),
        MAX_UNSENT.check("load not sent", unsent / max(1, scheduled), load, LACKED),
        _answers(snapshot),
        _histograms(run),
        NONE.check("values out of range", rejects, f"of {plural(values, 'value')}", out_of_range),
        *shared(run),
        NONE.check("stamps out of order", snapshot.counters["disordered"], f"of {ended}", _BUG),
        *_users_who_left(run),
        *_workers(run),
        NONE.check("another schedule", others, schedules, _BUG),
        _engine(run),
        *_silences(run),
    ]


def _workers(run: RunData) -> Iterator[Check]:
    """Whether every worker came to its end; nothing where there is one, whose end is that of the
    run.
    """
    count = len(run.workers)
    if count == 1:
        return
    name = "workers missing"
    lost = [(worker.number, worker.lost) for worker in run.workers if worker.lost]
    if not lost and not all(worker.client.known for worker in run.workers):
        yield inapplicable(name, UNKNOWN)
        return
    about = f"of {count} workers"
    if lost:
        about += ": " + "; ".join(f"worker {number + 1} {how}" for number, how in lost)
    advice = "what it had not written is missing: find out what ended it, and run again"
    yield NONE.check(name, len(lost), about, advice)


def _users_who_left(run: RunData) -> Iterator[Check]:
    """Whether only users left who were drawn to leave; nothing where none left."""
    snapshot, draws = run.snapshot, EarlyEndDraws.each(run.settings)
    if not draws and not ended_by(snapshot.outcomes, Cause.USER):
        return
    left = snapshot.index[(snapshot.ttft == LEFT) & (snapshot.sent >= 0)].tolist()
    undrawn = sum(not any(draw.drawn(index) for draw in draws) for index in left)
    about = f"of {plural(len(left), 'user')} who left"
    yield NONE.check("users left who were not drawn", undrawn, about, _BUG)


def _engine(run: RunData) -> Check:
    """Whether an engine that was started for the run is the same process still, and well."""
    about, runs = run.header.provenance["engine"], run.client.engine_runs
    trouble, untold = about.get("trouble"), UNKNOWN if "commands" in about else "not launched here"
    return Check(
        "engine lost",
        runs and trouble is None,
        trouble or {True: "same process", False: "another process, or none", None: untold}[runs],
        "the process that was started, healthy",
        "the engine died, hangs or was restarted under load: read its log",
    )


def _silences(run: RunData) -> Iterator[Check]:
    """Whether the server was found to hang; nothing without a silence of all streams."""
    silences = liveness.silences(run)
    if not silences:
        return
    longest_s = max(silence.for_s for silence in silences)
    hung = sum(silence.hung for silence in silences)
    about = f"of {plural(len(silences), 'silence')} of all streams, up to {longest_s:.1f} s"
    advice = "the server hung, which ended the run: read its log"
    yield NONE.check(SERVER_HUNG, hung, about, advice)


def _requests(snapshot: Snapshot) -> Check:
    # np.unique would import numpy.ma
    twice = int(np.count_nonzero(np.diff(np.sort(snapshot.index)) == 0))
    ended, scheduled = snapshot.ended, snapshot.scheduled
    about = f"of {plural(scheduled, 'request')}: {plural(ended, 'outcome')}"
    about += f", {twice} of them repeated" if twice else ""
    early = "the run ended early: its numbers describe only the requests that ended"
    advice = early if snapshot.partial else _BUG
    return NONE.check("requests not ended once", abs(scheduled - ended) + twice, about, advice)


def _answers(snapshot: Snapshot) -> Check:
    """Each ok request has one finish reason, and its output tokens were counted in one way."""
    ok, finished = snapshot.ok, sum(snapshot.finishes.values())
    sources = ("usage", "id", "tokenizer", "event")
    counted = sum(snapshot.counters[f"{source}_requests"] for source in sources)
    about = f"of {plural(ok, 'answer')}: {finished} finish reasons and {counted} token counts"
    wrong = max(abs(finished - ok), abs(counted - ok))
    return NONE.check("answers miscounted", wrong, about, _BUG)


def _histograms(run: RunData) -> Check:
    snapshot = run.snapshot
    counters, histograms = snapshot.counters, snapshot.histograms
    latencies = ("ttft", "e2el") if run.settings.streams else ("e2el",)
    expected = {
        f"{latency}_{clock}": snapshot.ok for latency in latencies for clock in ("due", "sent")
    }
    expected |= dict.fromkeys(("lag", "pool_wait", "connect"), int((snapshot.sent >= 0).sum()))
    expected["icl"] = counters["token_events"] - snapshot.ok
    if not any(
        counters[name] for name in ("unseen_tokens", "surplus_events", "tokenizer_requests")
    ):
        # The events showed all tokens.
        expected["itl"] = counters["decode_tokens"]
    wrong = [
        f"{name} {histograms[name].count} for {count}"
        for name, count in expected.items()
        if histograms[name].count + histograms[name].rejects != count
    ]
    about = f"of {len(expected)} histograms" + (f": {', '.join(wrong)}" if wrong else "")
    return NONE.check("histograms incomplete", len(wrong), about, _BUG)
