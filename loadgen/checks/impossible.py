"""Group F: results that cannot be, whatever the server did."""

import numpy as np

from loadgen.checks.check import NONE, Bound, Check, inapplicable
from loadgen.checks.token_counts import token_counts
from loadgen.metrics import throughput
from loadgen.metrics.run_data import RunData
from loadgen.metrics.snapshot import BIN_NS, Snapshot
from loadgen.util.number_format import plural

LITTLE_TOLERANCE = Bound(1e-6)
_BUG = "the numbers contradict each other: please report it with the result file"


def impossible(run: RunData) -> list[Check]:
    """Check the results of a run against each other."""
    snapshot, counters = run.snapshot, run.snapshot.counters
    name, ok = "latencies disagree", snapshot.ok
    answers = f"of {plural(ok, 'answer')} where TTFT + decoding is not E2EL"
    # Throughput is tokens over wall time, and its course over time bears the same tokens.
    over_time, tokens = int(snapshot.bins.sum()), counters["output_tokens"]
    about = f"of {plural(tokens, 'token')}: {over_time} over time"
    return [
        NONE.check(name, counters["unequal"], answers, _BUG)
        if ok
        else inapplicable(name, "no request was ok"),
        _sums(snapshot),
        _peak(snapshot),
        _median_gap(snapshot),
        _little(snapshot),
        NONE.check("timeline tokens differ", abs(over_time - tokens), about, _BUG),
        *token_counts(run),
    ]


def _sums(snapshot: Snapshot) -> Check:
    """The time from first to last token, summed over requests in three ways, each an exact
    integer.
    """
    name, histograms = "sums disagree", snapshot.histograms
    e2el, ttft, icl = (histograms[metric] for metric in ("e2el_sent", "ttft_sent", "icl"))
    if e2el.rejects or ttft.rejects or icl.rejects:
        return inapplicable(name, "values out of range were left out")
    sums = {e2el.total - ttft.total, icl.total, snapshot.counters["stream_ns"]}
    texts = " / ".join(f"{ns / 1e9:.9f} s" for ns in sorted(sums))
    about = f"apart: E2EL - TTFT, gaps and streams are {texts}"
    return Bound(unit="ns").check(name, max(sums) - min(sums), about, _BUG)


def _peak(snapshot: Snapshot) -> Check:
    """One of the seconds that cover the run must bear its share of the tokens."""
    name, tokens = "peak below the mean", snapshot.counters["output_tokens"]
    if not tokens:
        return inapplicable(name, "no tokens")
    # The grid of the bins may cut off a part of one at both ends of the run.
    seconds = -(-(throughput.wall_ns(snapshot) + 2 * BIN_NS) // 10**9)  # rounded up
    least = Bound(tokens / seconds, "tok/s", ">=")
    return least.check(name, throughput.peak_output_tokens(snapshot), "in the peak second", _BUG)


def _median_gap(snapshot: Snapshot) -> Check:
    name, median = "median gap 0", snapshot.histograms["icl"].percentile(50)
    if median is None:
        return inapplicable(name, "no answer came in two events or more")
    advice = (
        "events come in bundles: turn off buffering in the server or a proxy before it, or "
        "read E2EL alone (the tokens of the first bundle make TPOT too small)"
    )
    return Bound(0, "ms", ">").check(name, median / 1e6, "median ICL", advice)


def _little(snapshot: Snapshot) -> Check:
    """Little's identity: requests in flight, integrated over the run, are the sojourns of all
    requests.
    """
    name, was_sent = "Little's identity", snapshot.sent >= 0
    if not was_sent.any():
        return inapplicable(name, "nothing was sent")
    times = np.concatenate((snapshot.sent[was_sent], snapshot.closed[was_sent]))
    steps = np.repeat(np.array([1, -1]), was_sent.sum())
    order = np.argsort(times, kind="stable")
    integral = float(
        np.dot(np.cumsum(steps[order])[:-1].astype(float), np.diff(times[order]).astype(float))
    )
    sojourn = snapshot.counters["sojourn_ns"]
    off = abs(integral - sojourn) / max(sojourn, 1)
    return LITTLE_TOLERANCE.check(name, off, "of the sum of all times in flight", _BUG)
