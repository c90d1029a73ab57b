"""The timeline's part of the result: what happened in each stretch of a run, and how long it took."""

from typing import Any

import numpy as np

from loadgen.core import timeline
from loadgen.core.histogram import coarse_lowest
from loadgen.core.sketch import Sketch
from loadgen.metrics.snapshot import BIN_NS, Snapshot
from loadgen.metrics.throughput import most_in_each
from loadgen.util.arrays import Int64s

PERCENTILES = (50, 99)
JOINED = 2  # rows of the timeline that make one of the heat map: 8 a doubling
NS_PER_S = 1_000_000_000


def over_time(snapshot: Snapshot) -> dict[str, Any] | None:
    """As JSON, an entry for each column from the start of the clock; None where no request has ended.

    Args:
        snapshot: Of the run.
    """
    if not len(snapshot.closed):
        return None
    was_sent = snapshot.sent >= 0
    closed = np.sort(snapshot.closed)
    counts = snapshot.timeline.of_width(timeline.width_for(int(closed[-1]), snapshot.timeline.width_ns))
    columns = int(closed[-1]) // counts.width_ns + 1
    edges = np.arange(columns + 1) * counts.width_ns

    def per_column(at_ns: Int64s) -> Int64s:
        """How many of these times, ascending, each column has."""
        return np.diff(np.searchsorted(at_ns, edges, side="left"))

    return {
        "width_s": counts.width_ns / NS_PER_S,
        "sent": per_column(np.sort(snapshot.sent[was_sent])).tolist(),
        "ended": per_column(closed).tolist(),
        "failed": per_column(snapshot.failed).tolist(),
        "in_flight": most_in_each(snapshot.sent[was_sent], snapshot.closed[was_sent], edges).tolist(),
        "output_tokens": _tokens(snapshot, counts.width_ns, columns).tolist(),
        "ttft_ms": _percentiles(counts.ttft[:columns]),
        "icl_ms": _percentiles(counts.icl[:columns]) | _heat_map(counts.icl[:columns]),
    }


def _tokens(snapshot: Snapshot, width_ns: int, columns: int) -> Int64s:
    each = width_ns // BIN_NS
    bins = np.zeros(columns * each, dtype=np.int64)
    bins[: len(snapshot.bins)] = snapshot.bins[: len(bins)]
    whole: Int64s = bins.reshape(columns, each).sum(axis=1)
    return whole


def _percentiles(counts: Int64s) -> dict[str, list[float | None]]:
    each = [
        Sketch({coarse_lowest(row): int(column[row]) for row in map(int, np.flatnonzero(column))}) for column in counts
    ]
    return {f"p{p}": [sketch.percentile_ms(p) for sketch in each] for p in PERCENTILES}


def _heat_map(counts: Int64s) -> dict[str, Any]:
    """The counts by time and value, from the lowest row that has any to the highest."""
    rows = np.add.reduceat(counts, range(0, counts.shape[1], JOINED), axis=1)
    there = np.flatnonzero(rows.any(axis=0))
    first, end = (int(there[0]), int(there[-1]) + 1) if len(there) else (0, 0)
    return {
        "edges": [coarse_lowest(row * JOINED) / 1e6 for row in range(first, end + 1)],
        "counts": rows[:, first:end].tolist(),
    }
