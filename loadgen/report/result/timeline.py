"""Timeline: what happened in each stretch of a run; a sample of its single requests, and all
that is kept of each.
"""

from __future__ import annotations

from typing import Annotated, Any, Self

import numpy as np
from msgspec import UNSET, Struct, UnsetType, structs

from loadgen.core import sketch
from loadgen.core.histogram import coarse_lowest
from loadgen.core.request_rows import FAILED
from loadgen.core.server_times import VLLM
from loadgen.core.sketch import Sketch
from loadgen.metrics.snapshot import BIN_NS, Snapshot
from loadgen.metrics.throughput import most_in_each
from loadgen.util.arrays import Int64s
from loadgen.util.clock import NS_PER_S

STRETCHES = 200  # of a run, each with as many requests as any other
A_STRETCH = 5  # requests that are kept of each
TIME_COLUMNS = ("ttfts", "itls")
TOKEN_COLUMNS = (*TIME_COLUMNS, "output_lens", "generated_texts")
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

    edges: Annotated[
        list[float], "Edges of the rows of `counts`, ascending, ms: one more than there are rows."
    ]
    counts: Annotated[
        list[list[int]], "Number of gaps: for each column, a list of rows, the shortest gaps first."
    ]


class Timeline(Struct, frozen=True, kw_only=True):
    """The run over time, in columns from the start of the clock.

    Each list has an item for each column.
    """

    width_s: Annotated[
        float,
        "Width of a column, s: 0.25 times a power of two, so that there are at most 256 columns.",
    ]
    sent: Annotated[list[int], "Requests sent."]
    ended: Annotated[list[int], "Requests that ended, ok or not."]
    failed: Annotated[list[int], "Requests that ended and were not ok."]
    in_flight: Annotated[list[int], "Peak number of requests in flight in the column."]
    output_tokens: Annotated[list[int], "Output tokens of ok requests, by time of arrival."]
    ttft_ms: Annotated[
        PercentileCourse,
        "TTFT of ok requests by when their first token came, on the clock of `latency_from`, ms.",
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
        counts = snapshot.timeline.of_width(
            sketch.width_for(int(closed[-1]), snapshot.timeline.width_ns)
        )
        columns = int(closed[-1]) // counts.width_ns + 1
        edges = np.arange(columns + 1) * counts.width_ns

        def per_column(at_ns: Int64s) -> list[int]:
            counts_per_column: list[int] = np.diff(
                np.searchsorted(at_ns, edges, side="left")
            ).tolist()
            return counts_per_column

        icl_counts = _dense(counts.icl, columns)
        rows, gaps = _heat_map(icl_counts)
        bins_per_column = counts.width_ns // BIN_NS
        bins = np.zeros(columns * bins_per_column, dtype=np.int64)
        bins[: len(snapshot.bins)] = snapshot.bins[: len(bins)]
        return cls(
            width_s=counts.width_ns / NS_PER_S,
            sent=per_column(np.sort(snapshot.sent[was_sent])),
            ended=per_column(closed),
            failed=per_column(snapshot.failed),
            in_flight=most_in_each(
                snapshot.sent[was_sent], snapshot.closed[was_sent], edges
            ).tolist(),
            output_tokens=bins.reshape(columns, bins_per_column).sum(axis=1).tolist(),
            ttft_ms=PercentileCourse(**_percentiles(_dense(counts.ttft, columns))),
            icl_ms=HeatMap(**_percentiles(icl_counts), edges=rows, counts=gaps),
        )


def _dense(cells: sketch.Cells, columns: int) -> Int64s:
    """Return the counts of these columns, shape (columns, sketch.ROWS)."""
    counts = np.zeros((columns, sketch.ROWS), dtype=np.int64)
    for cell, count in cells.items():
        counts.flat[cell] = count
    return counts


def _percentiles(counts: Int64s) -> dict[str, list[float | None]]:
    sketches = [
        Sketch({coarse_lowest(row): int(column[row]) for row in map(int, np.flatnonzero(column))})
        for column in counts
    ]
    return {f"p{p}": [sketch.percentile_ms(p) for sketch in sketches] for p in (50, 99)}


def _heat_map(counts: Int64s) -> tuple[list[float], list[list[int]]]:
    """Count by time and value, from the lowest row that has any to the highest: edges, ms, and
    columns of rows.
    """
    rows = np.add.reduceat(counts, range(0, counts.shape[1], ROWS_JOINED), axis=1)
    filled = np.flatnonzero(rows.any(axis=0))
    first, end = (int(filled[0]), int(filled[-1]) + 1) if len(filled) else (0, 0)
    edges = [coarse_lowest(row * ROWS_JOINED) / 1e6 for row in range(first, end + 1)]
    return edges, rows[:, first:end].tolist()


class RequestSample(Struct, frozen=True, kw_only=True):
    """Requests over time: all of up to 1,000. Each list has an item for each request, in the order
    of `sent_s`.

    Of more requests, each of 200 stretches keeps five: the ones with the longest TTFT and the
    longest E2EL, the first that failed, and two others. Requests that were cancelled, or whose
    users left, are left out.
    """

    requests: Annotated[int, "Number of requests that the sample stands for."]
    sent_s: Annotated[
        list[float], "When it was sent, s on the clock of the run; else when it ended."
    ]
    ttft_ms: Annotated[
        list[float | None], "TTFT on the clock of `latency_from`, ms; null: the request failed."
    ]
    e2el_ms: Annotated[
        list[float],
        "E2EL on the clock of `latency_from`, ms; of a failed request, the time from sent to its "
        "end.",
    ]
    tpot_ms: Annotated[
        list[float | None],
        "TPOT as `vllm bench serve` divides, ms; null: the request failed, or had one token. Empty "
        "in files of earlier versions.",
    ] = []

    @property
    def is_complete(self) -> bool:
        """Whether it has all requests, and all of them succeeded."""
        return self.requests == len(self.tpot_ms) and None not in self.ttft_ms

    @classmethod
    def of(cls, snapshot: Snapshot) -> Self | None:
        """Take the sample; None where no request has ended.

        Args:
            snapshot: The snapshot of the run.
        """
        ended = snapshot.ttft >= FAILED
        if not ended.any():
            return None
        sent = snapshot.sent[ended]
        closed = snapshot.closed[ended]
        ttft = snapshot.ttft[ended]
        e2el = snapshot.e2el[ended]
        tpot = snapshot.tpot[ended]
        at = np.where(sent >= 0, sent, closed)
        took = np.where(ttft == FAILED, closed - at, e2el)
        order = np.lexsort((snapshot.index[ended], at))
        if len(order) > STRETCHES * A_STRETCH:
            stretches = []
            for stretch in np.array_split(order, STRETCHES):
                # In its order: the slowest, one that failed, the first, and the middle one.
                failed = np.flatnonzero(ttft[stretch] == FAILED)[:1]
                slowest = [np.argmax(ttft[stretch]), np.argmax(e2el[stretch])]
                places = np.unique([*slowest, *failed, 0, len(stretch) // 2])
                stretches.append(stretch[places])
            order = np.concatenate(stretches)
        return cls(
            requests=int(ended.sum()),
            sent_s=_rounded(at[order], 1e9),
            ttft_ms=_latencies_ms(ttft[order]),
            e2el_ms=_rounded(took[order], 1e6),
            tpot_ms=_latencies_ms(tpot[order]),
        )


def _latencies_ms(ns: Int64s) -> list[float | None]:
    """Convert latencies of requests to ms; None where it is negative, as there is none."""
    return [ms if known else None for ms, known in zip(_rounded(ns, 1e6), ns >= 0, strict=True)]


def _rounded(ns: Int64s, unit: float) -> list[float]:
    """Convert to a unit of so many ns, with three decimals: the sample is for a picture, and
    stays small.
    """
    numbers: list[float] = np.round(ns / unit, 3).tolist()
    return numbers


class RequestColumns(Struct, frozen=True, kw_only=True):
    """What `--save-detailed` keeps: lists with an item for each request, in the order of the
    schedule.
    """

    input_lens: Annotated[list[int], "Prompt tokens, as the server counts them, else as planned."]
    output_lens: Annotated[
        list[int] | UnsetType,
        "Output tokens; 0 where the request failed. Missing where answers have no tokens.",
    ] = UNSET
    ttfts: Annotated[
        list[float] | UnsetType,
        "TTFT from sent, s; 0 where the request failed. Missing where answers come in one piece.",
    ] = UNSET
    itls: Annotated[
        list[list[float]] | UnsetType,
        "Gaps between the events with tokens, s. Missing where answers come in one piece.",
    ] = UNSET
    latencies: Annotated[list[float], "E2EL from sent, s; 0 where the request failed."]
    start_times: Annotated[
        list[float], "When it was sent, s on CLOCK_MONOTONIC; 0 where it never was."
    ]
    queue_times: Annotated[list[float], "From due to sent, s."]
    generated_texts: Annotated[
        list[str] | UnsetType,
        "The text of the answer, without reasoning; empty where the request failed. Missing where "
        "answers have no tokens.",
    ] = UNSET
    errors: Annotated[list[str], "Why the request failed; empty where it did not."]
    server_queue_times: Annotated[
        list[float | None] | UnsetType,
        "What vLLM says of its queue, s; null where it did not say. Missing where it never did: it "
        "needs --enable-per-request-metrics.",
    ] = UNSET
    server_ttfts: Annotated[
        list[float | None] | UnsetType,
        "What vLLM says of its prefill, which it names so, s: not TTFT. As `server_queue_times`.",
    ] = UNSET
    targets: Annotated[
        list[int] | UnsetType, "With several targets, the number of its target, from 0."
    ] = UNSET
    classes: Annotated[
        list[int] | UnsetType, "With classes of requests, the number of its class, from 0."
    ] = UNSET

    @classmethod
    def of(cls, snapshot: Snapshot, *, streams: bool = True, generates: bool = True) -> Self | None:
        """Sort what was kept of each request by its number in the run; None where nothing was kept.

        Args:
            snapshot: The snapshot of the run.
            streams: Whether answers are streams of tokens; else the times of tokens are left out.
            generates: Whether answers have tokens; else all columns of tokens are left out.
        """
        if snapshot.details is None:
            return None
        order = sorted(range(len(snapshot.index)), key=snapshot.index.__getitem__)
        columns: dict[str, Any] = {
            name: [items[i] for i in order]
            for name, items in structs.asdict(snapshot.details).items()
        }
        if VLLM not in snapshot.said_times:
            del columns["server_queue_times"], columns["server_ttfts"]
        absent = () if streams else TIME_COLUMNS if generates else TOKEN_COLUMNS
        columns = {name: items for name, items in columns.items() if name not in absent}
        for name, parts in (("targets", snapshot.targets), ("classes", snapshot.classes)):
            if parts:
                numbers = np.repeat(np.arange(len(parts)), [len(part.index) for part in parts])
                in_order = np.argsort(np.concatenate([part.index for part in parts]), kind="stable")
                columns[name] = numbers[in_order].tolist()
        return cls(**columns)
