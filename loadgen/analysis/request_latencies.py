"""The latencies of one request, read from its record, with what the client may have added to
them or taken.
"""

from typing import NamedTuple

import numpy as np

from loadgen.config.settings import RunSettings
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.metrics.statistic import CLOCK_MS, FLOOR_MS
from loadgen.util.arrays import Floats
from loadgen.util.number_format import to_ms

STAMP_ERROR_MS = FLOOR_MS + CLOCK_MS


class Latency(NamedTuple):
    """A latency of a request, ms.

    Attributes:
        ms: Its value.
        least_ms, greatest_ms: What it may truly be.
    """

    ms: float
    least_ms: float
    greatest_ms: float


class Gaps(NamedTuple):
    """The gaps of a request, ms; arrays of one entry for each group of equal gaps.

    Attributes:
        ms: The gaps.
        least_ms, greatest_ms: What each may truly be.
        repeats: How often each occurs.
    """

    ms: Floats
    least_ms: Floats
    greatest_ms: Floats
    repeats: Floats


def latency(record: Record, metric: str, settings: RunSettings) -> Latency | None:
    """Return a latency of a request; None if it has none.

    Args:
        record: The request.
        metric: ttft, ttfo, tpot or e2el.
        settings: The settings of the run; `latency_from` says whether latencies start when a
            request is due or sent.
    """
    if metric == "tpot":
        value, bounds = record.tpot_ns, record.tpot_bounds_ns
        return None if value is None or bounds is None else _bounded(value, *bounds)
    from_due = settings.latency_from == "due"
    if from_due:
        start = record.due
        latest_start = record.due + (record.lag_ns or 0)
    else:
        start = record.sent
        latest_start = max(record.sent, record.written)
    ended, earliest = {
        "ttft": (record.first_token, record.earliest_at(0) if record.events else 0),
        "ttfo": (record.first_answer, record.first_answer_earliest),
        "e2el": (record.last_token, record.earliest_at(record.events - 1) if record.events else 0),
    }[metric]
    return _bounded(ended - start, earliest - latest_start, ended - start) if ended else None


def gaps(record: Record, metric: str) -> Gaps:
    """Return the gaps of a request; empty if it failed.

    For icl these are the gaps between events with tokens. For itl they are the gaps between tokens:
    the gap before an event of k tokens counts as k gaps of a k-th of it.
    """
    stamps = np.frombuffer(record.marks, dtype=np.int64)
    earliest = np.frombuffer(record.earliest_marks, dtype=np.int64)
    if record.outcome is not Outcome.OK or len(stamps) < 2:
        return Gaps(*(np.empty(0) for _ in Gaps._fields))
    count = np.ones(len(stamps) - 1, dtype=np.int64)
    if metric != "icl" and record.token_counts is not None:
        tokens = np.array(record.token_counts)
        bearing = np.append([0], 1 + np.flatnonzero(tokens[1:]))
        stamps, earliest, count = stamps[bearing], earliest[bearing], tokens[bearing[1:]]
    ends = (stamps[1:] - stamps[:-1], earliest[1:] - stamps[:-1], stamps[1:] - earliest[:-1])
    values, least, greatest = (end // count / 1e6 for end in ends)
    return Gaps(
        values,
        np.maximum(0.0, least - STAMP_ERROR_MS),
        greatest + STAMP_ERROR_MS,
        count.astype(float),
    )


def _bounded(value_ns: int, least_ns: int, greatest_ns: int) -> Latency:
    value, least, greatest = (float(to_ms(ns) or 0.0) for ns in (value_ns, least_ns, greatest_ns))
    return Latency(value, max(0.0, least - STAMP_ERROR_MS), greatest + STAMP_ERROR_MS)
