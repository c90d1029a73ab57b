"""Group A: is every request and token accounted for?"""

from collections.abc import Iterator

import numpy as np

from loadgen.checks.check import UNKNOWN, Check, inapplicable
from loadgen.checks.sending import LACKED
from loadgen.checks.targets import shared
from loadgen.core.outcome import Cause, ended_by
from loadgen.core.request_rows import LEFT
from loadgen.metrics.run_data import RunData
from loadgen.metrics.snapshot import Snapshot
from loadgen.util.number_format import percent, plural
from loadgen.workload.draws import EarlyEndDraws

MAX_UNSENT = 0.01  # so few can move no percentile below the p99
_BUG = "this is a bug in loadgen: please report it with the result file"


def accounting(run: RunData) -> list[Check]:
    """Check the books of a run."""
    snapshot = run.snapshot
    disordered = snapshot.counters["disordered"]
    # The load is that which was asked for, unless the client failed to send requests.
    unsent = snapshot.failures.client
    load = (
        f"{unsent} of {plural(snapshot.scheduled, 'request')} never sent by a fault of the client"
    )
    rejects = sum(histogram.rejects for histogram in snapshot.histograms.values())
    out_of_range = "a latency below 0 or above 24 h was seen: the clock or the server is broken"
    # Of all workers that were there at the end, whether they had drawn the schedule of the report.
    same = {worker.schedule_sha256 for worker in run.workers if not worker.lost} <= {
        run.schedule.sha256
    }
    return [
        _requests(snapshot),
        Check(
            "load not sent",
            unsent <= MAX_UNSENT * snapshot.scheduled,
            load,
            percent(MAX_UNSENT),
            LACKED,
        ),
        _answers(snapshot),
        _histograms(run),
        Check(
            "values out of range",
            rejects == 0,
            f"{plural(rejects, 'value')} out of range",
            "0",
            out_of_range,
        ),
        *shared(run),
        Check(
            "stamps out of order",
            disordered == 0,
            f"{plural(disordered, 'record')} out of order",
            "0",
            _BUG,
        ),
        *_users_who_left(run),
        *_workers(run),
        Check(
            "another schedule",
            same,
            "the same" if same else "another",
            "the schedule of the report",
            _BUG,
        ),
        _engine(run),
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
    value = (
        "; ".join(f"worker {number + 1} of {count} {how}" for number, how in lost)
        or f"{count} of {count}"
    )
    advice = "what it had not written is missing: find out what ended it, and run again"
    yield Check(name, not lost, value, "all of them", advice)


def _users_who_left(run: RunData) -> Iterator[Check]:
    """Whether only users left who were drawn to leave; nothing where none left."""
    snapshot, draws = run.snapshot, EarlyEndDraws.each(run.settings)
    if not draws and not ended_by(snapshot.outcomes, Cause.USER):
        return
    left = snapshot.index[(snapshot.ttft == LEFT) & (snapshot.sent >= 0)].tolist()
    drawn = [index for index in left if any(draw.drawn(index) for draw in draws)]
    value = f"{len(drawn)} of {plural(len(left), 'user')} who left were drawn"
    yield Check(
        "users left who were not drawn", len(drawn) == len(left), value, "all of them", _BUG
    )


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


def _requests(snapshot: Snapshot) -> Check:
    # np.unique would import numpy.ma
    twice = int(np.count_nonzero(np.diff(np.sort(snapshot.index)) == 0))
    return Check(
        "requests not ended once",
        snapshot.ended == snapshot.scheduled and twice == 0,
        f"{snapshot.ended} outcomes of {snapshot.scheduled} scheduled"
        + (f", {twice} of them repeated" if twice else ""),
        "equal",
        "the run ended early: its numbers describe only the requests that ended"
        if snapshot.partial
        else _BUG,
    )


def _answers(snapshot: Snapshot) -> Check:
    """Each ok request has one finish reason, and its output tokens were counted in one way."""
    counters = snapshot.counters
    finished = sum(snapshot.finishes.values())
    counted = sum(
        counters[f"{source}_requests"] for source in ("usage", "id", "tokenizer", "event")
    )
    value = f"{finished} finish reasons and {counted} token counts of {snapshot.ok} answers"
    return Check("answers miscounted", finished == counted == snapshot.ok, value, "equal", _BUG)


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
    return Check(
        "histograms incomplete",
        not wrong,
        ", ".join(wrong) or "all counts agree",
        "counts agree",
        _BUG,
    )
