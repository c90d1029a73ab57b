"""Group A: is every request and token accounted for?"""

from collections.abc import Iterator

from loadgen.checks.check import Check
from loadgen.snapshot import Snapshot

_BUG = "this is a bug in loadgen: please report it with the result file"


def accounting(snapshot: Snapshot, *, same_schedule: bool, engine_same: bool | None) -> list[Check]:
    """Check the books of a run.

    Args:
        snapshot: The whole run.
        same_schedule: Whether the measuring process carried out the schedule that is reported.
        engine_same: Whether the engine's process at the end is the one of the start; None: not ours to know.
    """
    return [
        *_requests(snapshot),
        *_histograms(snapshot),
        Check(
            "A",
            "stamps in order",
            snapshot.counters["disordered"] == 0,
            f"{snapshot.counters['disordered']} records out of order",
            "0",
            _BUG,
        ),
        Check(
            "A",
            "one schedule",
            same_schedule,
            "the same" if same_schedule else "another",
            "the schedule of the report",
            _BUG,
        ),
        Check(
            "A",
            "same engine",
            engine_same,
            {True: "same process", False: "another process, or none", None: "not launched here"}[engine_same],
            "the process of the start",
            "the engine died or was restarted under load: read its log",
        ),
    ]


def _requests(snapshot: Snapshot) -> Iterator[Check]:
    partial = snapshot.partial is not None
    yield Check(
        "A",
        "every request ended once",
        snapshot.ended == snapshot.scheduled,
        f"{snapshot.ended} outcomes of {snapshot.scheduled} scheduled",
        "equal",
        "the run ended early: its numbers describe only the requests that ended" if partial else _BUG,
    )


def _histograms(snapshot: Snapshot) -> Iterator[Check]:
    counters, histograms = snapshot.counters, snapshot.histograms
    gaps = counters["token_events"] - snapshot.ok
    expected = {"ttft_due": snapshot.ok, "ttft_sent": snapshot.ok, "e2el_due": snapshot.ok, "icl": gaps}
    expected["lag"] = int((snapshot.sent >= 0).sum())
    wrong = [
        f"{name} {histograms[name].count} for {wanted}"
        for name, wanted in expected.items()
        if histograms[name].count + histograms[name].rejects != wanted
    ]
    yield Check("A", "histograms complete", not wrong, ", ".join(wrong) or "all counts agree", "counts agree", _BUG)
    rejects = sum(histogram.rejects for histogram in histograms.values())
    yield Check(
        "A",
        "values in range",
        rejects == 0,
        f"{rejects} values out of range",
        "0",
        "a latency below 0 or above 24 h was seen: the clock or the server is broken",
    )
