"""Group F: results that cannot be, whatever the server did."""

import numpy as np

from loadgen.checks.check import Check, inapplicable
from loadgen.checks.token_counts import token_counts
from loadgen.metrics import throughput
from loadgen.metrics.run_data import RunData
from loadgen.metrics.snapshot import BIN_NS, Snapshot
from loadgen.util.number_format import ms

LITTLE_TOLERANCE = 1e-6
_BUG = "the numbers contradict each other: please report it with the result file"


def impossible(run: RunData) -> list[Check]:
    """Check the results of a run against each other."""
    snapshot = run.snapshot
    unequal, ok = snapshot.counters["unequal"], snapshot.ok
    # Throughput is tokens over wall time, and its course over time bears the same tokens.
    over_time, tokens = int(snapshot.bins.sum()), snapshot.counters["output_tokens"]
    value = f"{over_time} tokens over time, {tokens} in all"
    return [
        Check(
            "latencies disagree",
            unequal == 0,
            f"TTFT + decoding is not E2EL in {unequal} of {ok}",
            "0",
            _BUG,
        )
        if ok
        else inapplicable("latencies disagree", "no request was ok"),
        _sums(snapshot),
        _peak(snapshot),
        _median_gap(snapshot),
        _little(snapshot),
        Check("timeline tokens differ", over_time == tokens, value, "equal", _BUG),
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
    value = "E2EL - TTFT, gaps and streams: " + " / ".join(
        f"{ns / 1e9:.9f} s" for ns in sorted(sums)
    )
    return Check(name, len(sums) == 1, value, "equal", _BUG)


def _peak(snapshot: Snapshot) -> Check:
    """One of the seconds that cover the run must bear its share of the tokens."""
    name, tokens = "peak below the mean", snapshot.counters["output_tokens"]
    if not tokens:
        return inapplicable(name, "no tokens")
    # The grid of the bins may cut off a part of one at both ends of the run.
    seconds = -(-(throughput.wall_ns(snapshot) + 2 * BIN_NS) // 10**9)  # rounded up
    peak, least = throughput.peak_output_tokens(snapshot), tokens / seconds
    return Check(name, peak >= least, f"peak {peak} tok/s", f"at least {least:.2f} tok/s", _BUG)


def _median_gap(snapshot: Snapshot) -> Check:
    name, median = "median gap 0", snapshot.histograms["icl"].percentile(50)
    if median is None:
        return inapplicable(name, "no answer came in two events or more")
    advice = (
        "events come in bundles: turn off buffering in the server or a proxy before it, or "
        "read E2EL alone (the tokens of the first bundle make TPOT too small)"
    )
    return Check(name, median > 0, f"median ICL {ms(median)}", "above 0", advice)


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
    return Check(
        name, off <= LITTLE_TOLERANCE, f"off by {off:.1e}", f"{LITTLE_TOLERANCE:.0e}", _BUG
    )
