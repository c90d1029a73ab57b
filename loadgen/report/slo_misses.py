"""Misses: the limits of an SLO that a run does not meet, in words: the value, and how far it may be believed."""

from collections.abc import Iterator

from loadgen.config import slo
from loadgen.config.slo import Limit
from loadgen.metrics.snapshot import Snapshot
from loadgen.report.result.outcomes import judge_limits
from loadgen.stats.percentile_confidence_interval import interval, least_samples
from loadgen.util.number_format import UNKNOWN, bounds, four_digits, ms, percent, percentile, plural


def describe_misses(limits: str, snapshot: Snapshot, clock: str) -> Iterator[str]:
    """Describe each limit that is not met, in a line.

    Args:
        limits: The SLO.
        snapshot: What was measured.
        clock: "due" or "sent", from which latencies start.

    Raises:
        BadInput: A limit is not understood.
    """
    for limit, row in zip(slo.required_limits(limits), judge_limits(limits, snapshot, clock), strict=True):
        if not row.met:
            value = row.value
            if row.beyond:
                yield f"{limit.text} is missed: {_failed(snapshot)}"
                continue
            shown = _rate(value, snapshot) if limit.metric == "error" else _latency(limit, value, snapshot, clock)
            client = f", with a client error of at most {four_digits(row.client_error_ms)} ms"
            how = "is missed" if row.met is False else "cannot be told"
            yield f"{limit.text} {how}: {limit.name} is {shown}{client if row.met is None else ''}"


def _failed(snapshot: Snapshot) -> str:
    failures = snapshot.failures
    return f"{percent(failures.failed / failures.of, 2)} of {failures.of} requests failed ({_ended(snapshot)})"


def _rate(value: float | None, snapshot: Snapshot) -> str:
    return f"{percent(value, 2)} of {snapshot.failures.of} requests ({_ended(snapshot)})"


def _ended(snapshot: Snapshot) -> str:
    return ", ".join(f"{name} {count}" for name, count in snapshot.outcomes.items()) or "none ended"


def _latency(limit: Limit, value: float | None, snapshot: Snapshot, clock: str) -> str:
    if value is None:
        return f"{UNKNOWN}: nothing was measured"
    histogram, p = snapshot.histograms[slo.distribution(limit.metric, clock)], limit.percentile
    shown = f"{ms(value * 1e6)} of {histogram.count} values"
    if limit.metric not in slo.GAPS and (failed := snapshot.failures.failed) and limit.statistic != "mean":
        return f"{shown} and {plural(failed, 'failed request')}"
    if p is None:
        return shown
    needed, requests = least_samples(p), snapshot.requests_of(slo.distribution(limit.metric, clock))
    few = f" ({percentile(p)} needs {needed})" if requests < needed else ""
    if limit.metric in slo.GAPS:
        return f"{shown} of {plural(requests, 'request')}{few}"
    return f"{shown}{few}, at 99 % confidence {bounds(*interval(histogram, p), ms)} if requests were independent"
