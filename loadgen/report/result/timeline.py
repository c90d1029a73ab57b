"""Timeline: what happened in each stretch of a run, and how long it took."""

from __future__ import annotations

from typing import Annotated, Self

import numpy as np
from msgspec import Struct

from loadgen.core import sketch
from loadgen.core.histogram import coarse_lowest
from loadgen.core.sketch import Sketch
from loadgen.metrics.snapshot import BIN_NS, Snapshot
from loadgen.metrics.throughput import most_in_each
from loadgen.util.arrays import Int64s
from loadgen.util.clock import NS_PER_S

ROWS_JOINED = 2  # rows of the timeline that make one of the heat map: 8 a doubling


class PercentileCourse(Struct, frozen=True, kw_only=True):
    """Percentiles in each column, ms; null: nothing was measured there."""

    p50: Annotated[list[float | None], "Median."]
    p99: Annotated[list[float | None], "99th percentile."]

    def percentile(self, name: str) -> list[float | None]:
        """Look up p50 or p99."""
        return self.p50 if name == "p50" else self.p99


class HeatMap(PercentileCourse, frozen=True, kw_only=True):
    """Gaps between events with tokens, of ok requests, by when they ended, ms."""

    edges: Annotated[list[float], "Edges of the rows of `counts`, ascending, ms: one more than there are rows."]
    counts: Annotated[list[list[int]], "Number of gaps: for each column, a list of rows, the shortest gaps first."]


class Timeline(Struct, frozen=True, kw_only=True):
    """The run over time, in columns from the start of the clock. Each list has an item for each column."""

    width_s: Annotated[float, "Width of a column, s: 0.25 times a power of two, so that there are at most 256 columns."]
    sent: Annotated[list[int], "Requests sent."]
    ended: Annotated[list[int], "Requests that ended, ok or not."]
    failed: Annotated[list[int], "Requests that ended and were not ok."]
    in_flight: Annotated[list[int], "Peak number of requests in flight in the column."]
    output_tokens: Annotated[list[int], "Output tokens of ok requests, by time of arrival."]
    ttft_ms: Annotated[
        PercentileCourse, "TTFT of ok requests by when their first token came, on the clock of `latency_from`, ms."
    ]
    icl_ms: HeatMap

    @classmethod
    def of(cls, snapshot: Snapshot) -> Self | None:
        """Compute it; None where no request has ended.

        Args:
            snapshot: The snapshot of the run.
        """
        if not len(snapshot.closed):
            return None
        was_sent = snapshot.sent >= 0
        closed = np.sort(snapshot.closed)
        counts = snapshot.timeline.of_width(sketch.width_for(int(closed[-1]), snapshot.timeline.width_ns))
        columns = int(closed[-1]) // counts.width_ns + 1
        edges = np.arange(columns + 1) * counts.width_ns

        def per_column(at_ns: Int64s) -> list[int]:
            found: list[int] = np.diff(np.searchsorted(at_ns, edges, side="left")).tolist()
            return found

        icl_counts = _dense(counts.icl, columns)
        ttft, icl = _percentiles(_dense(counts.ttft, columns)), _percentiles(icl_counts)
        rows, gaps = _heat_map(icl_counts)
        return cls(
            width_s=counts.width_ns / NS_PER_S,
            sent=per_column(np.sort(snapshot.sent[was_sent])),
            ended=per_column(closed),
            failed=per_column(snapshot.failed),
            in_flight=most_in_each(snapshot.sent[was_sent], snapshot.closed[was_sent], edges).tolist(),
            output_tokens=_tokens(snapshot, counts.width_ns, columns),
            ttft_ms=PercentileCourse(p50=ttft[0], p99=ttft[1]),
            icl_ms=HeatMap(p50=icl[0], p99=icl[1], edges=rows, counts=gaps),
        )


def _dense(cells: sketch.Cells, columns: int) -> Int64s:
    """Return the counts of these columns, shape (columns, sketch.ROWS)."""
    counts = np.zeros((columns, sketch.ROWS), dtype=np.int64)
    for cell, count in cells.items():
        counts.flat[cell] = count
    return counts


def _tokens(snapshot: Snapshot, width_ns: int, columns: int) -> list[int]:
    each = width_ns // BIN_NS
    bins = np.zeros(columns * each, dtype=np.int64)
    bins[: len(snapshot.bins)] = snapshot.bins[: len(bins)]
    sums: list[int] = bins.reshape(columns, each).sum(axis=1).tolist()
    return sums


def _percentiles(counts: Int64s) -> tuple[list[float | None], list[float | None]]:
    each = [
        Sketch({coarse_lowest(row): int(column[row]) for row in map(int, np.flatnonzero(column))}) for column in counts
    ]
    return [sketch.percentile_ms(50) for sketch in each], [sketch.percentile_ms(99) for sketch in each]


def _heat_map(counts: Int64s) -> tuple[list[float], list[list[int]]]:
    """Count by time and value, from the lowest row that has any to the highest: edges, ms, and columns of rows."""
    rows = np.add.reduceat(counts, range(0, counts.shape[1], ROWS_JOINED), axis=1)
    filled = np.flatnonzero(rows.any(axis=0))
    first, end = (int(filled[0]), int(filled[-1]) + 1) if len(filled) else (0, 0)
    edges = [coarse_lowest(row * ROWS_JOINED) / 1e6 for row in range(first, end + 1)]
    return edges, rows[:, first:end].tolist()
