"""Latencies and waits: each distribution in a few numbers, with confidence intervals, and as a
histogram.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Generic, Literal, Self, TypeVar

import msgspec
import numpy as np
from msgspec import Struct

from loadgen.core.histogram import Histogram
from loadgen.metrics.snapshot import Snapshot
from loadgen.metrics.statistic import client_error_ms
from loadgen.stats.block_bootstrap import block_length, percentile_bounds
from loadgen.util.arrays import Int64s
from loadgen.util.number_format import percentile, to_ms

if TYPE_CHECKING:
    from hdrh.histogram import HdrHistogram

T = TypeVar("T")
Clock = Literal["due", "sent"]
SCALARS = ("mean", "std", "min", "max")
Bounds = Annotated[list[float | None], msgspec.Meta(min_length=2, max_length=2)]
Errors = dict[Annotated[str, msgspec.Meta(pattern=r"^(mean|p[0-9.e-]+)$")], float | None]
Intervals = dict[Annotated[str, msgspec.Meta(pattern=r"^p[0-9.e-]+$")], Bounds]


class _Statistic:
    """An attribute of a `Distribution` that is its value of a name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, distribution: Distribution, kind: type | None = None) -> float | None:
        return distribution[self.name]


class Distribution(dict[str, float | None]):
    """Summary of a distribution, ms: its statistics by their names in JSON; None where nothing was
    measured.

    Attributes:
        count: How many values there are.
        mean_ms: Their mean.
        std_ms: Their standard deviation.
        min_ms: The exact minimum.
        max_ms: The exact maximum.
        p50_ms, p90_ms, p99_ms: The percentiles that are always among them.
        percentiles_ms: All percentiles, by names such as p99 and p99.9, ascending.
    """

    mean_ms, std_ms, min_ms, max_ms = map(_Statistic, ("mean", "std", "min", "max"))
    p50_ms, p90_ms, p99_ms = map(_Statistic, ("p50", "p90", "p99"))

    @classmethod
    def of(cls, histogram: Histogram, percentiles: Iterable[float]) -> Self:
        """Summarize a histogram of ns.

        Args:
            histogram: The values.
            percentiles: The requested percentiles, ascending, 0 to 100.
        """
        scalars = {name: to_ms(getattr(histogram, name)) for name in SCALARS}
        of_p = {percentile(p): to_ms(histogram.percentile(p)) for p in percentiles}
        return cls({"count": histogram.count, **scalars, **of_p})

    @property
    def count(self) -> int:
        """How many values there are."""
        return int(self["count"] or 0)

    @property
    def percentiles_ms(self) -> dict[str, float | None]:
        """All percentiles, by name."""
        return {name: value for name, value in self.items() if name.startswith("p")}

    @classmethod
    def from_dict(cls, data: Mapping[str, float | None]) -> Self:
        """Read the JSON.

        Raises:
            KeyError, TypeError: The JSON is something else.
        """
        percentiles = [name for name in data if name.startswith("p")]
        return cls({name: data[name] for name in ("count", *SCALARS, *percentiles)})

    def __repr__(self) -> str:
        return f"Distribution({super().__repr__()})"


def percentiles_by_nines(histogram: Histogram, places: Sequence[float]) -> list[float | None]:
    """Compute the percentiles of a latency at places of a `Nines` axis: place 2 is p99.

    Args:
        histogram: The latency, ns; not empty.
        places: Powers of ten between a percentile and 100 %, ascending.

    Returns:
        Milliseconds; None beyond the last place that has a value of its own.
    """
    last = math.log10(histogram.count)
    values = [
        to_ms(value)
        for value in histogram.percentiles(
            100 * (1 - 10**-at) for at in places if at <= last + 1e-9
        )
    ]
    return values + [None] * (len(places) - len(values))


class EachLatency(Struct, Generic[T], frozen=True, kw_only=True):
    """What each latency has."""

    ttft_due: Annotated[T, "Of `ttft_due`."]
    ttft_sent: Annotated[T, "Of `ttft_sent`."]
    ttfo_due: Annotated[T, "Of `ttfo_due`."]
    ttfo_sent: Annotated[T, "Of `ttfo_sent`."]
    tpot: Annotated[T, "Of `tpot`."]
    tpot_n1: Annotated[T, "Of `tpot_n1`."]
    itl: Annotated[T, "Of `itl`."]
    icl: Annotated[T, "Of `icl`."]
    e2el_due: Annotated[T, "Of `e2el_due`."]
    e2el_sent: Annotated[T, "Of `e2el_sent`."]

    @classmethod
    def each(cls, make: Callable[[str], T]) -> Self:
        """Make what each latency has of its name."""
        return cls(**{name: make(name) for name in cls.__struct_fields__})

    def named(self, name: str) -> T:
        """Look up what a latency has by its name.

        Raises:
            AttributeError: No latency has this name.
        """
        part: T = getattr(self, name)
        return part


class Latencies(EachLatency[Distribution], frozen=True, kw_only=True):
    """Summary of each latency of ok requests, ms."""

    ttft_due: Annotated[Distribution, "To the first token of any kind, from due."]
    ttft_sent: Annotated[Distribution, "To the first token of any kind, from sent."]
    ttfo_due: Annotated[
        Distribution, "To the first token of the answer itself, after any reasoning, from due."
    ]
    ttfo_sent: Annotated[
        Distribution, "To the first token of the answer itself, after any reasoning, from sent."
    ]
    tpot: Annotated[Distribution, "Per output token after those of the first event."]
    tpot_n1: Annotated[Distribution, "Per output token after the first one, as vLLM divides."]
    itl: Annotated[
        Distribution,
        "Between tokens. If an event has several tokens, the gap before it is divided equally.",
    ]
    icl: Annotated[Distribution, "Between events with tokens."]
    e2el_due: Annotated[Distribution, "To the last token, from due."]
    e2el_sent: Annotated[Distribution, "To the last token, from sent."]

    @classmethod
    def of(cls, snapshot: Snapshot, percentiles: Iterable[float]) -> Self:
        """Summarize the histograms of a snapshot.

        Args:
            snapshot: The snapshot of a run, or of the requests to one target.
            percentiles: Those that are summarized, ascending, 0 to 100.
        """
        percentiles = list(percentiles)
        return cls.each(lambda name: Distribution.of(snapshot.histograms[name], percentiles))

    def latency(self, metric: str, clock: str) -> Distribution:
        """Look up a latency by its metric: ttft, ttfo, tpot, itl, icl or e2el.

        Args:
            metric: Its name, without a clock.
            clock: "due" or "sent", from which it is counted if it is no gap.
        """
        return self.named(metric if metric in self.__struct_fields__ else f"{metric}_{clock}")


class Distributions(Latencies, frozen=True, kw_only=True):
    """Summary of each distribution, ms: latencies of ok requests, and waits of all sent
    requests.
    """

    lag: Annotated[Distribution, "From when a request could be sent until it was sent."]
    pool_wait: Annotated[Distribution, "Wait for a slot under --max-concurrency."]
    connect: Annotated[Distribution, "Wait for a connection; 0 if one was ready."]
    loop_stall: Annotated[Distribution, "Time by which the event loop was late to read."]
    gc_pause: Annotated[Distribution, "Pauses of Python's garbage collector."]
    unfinished: Annotated[Distribution, "From due to the end of requests that were given up."]


class LatencyIntervals(Struct, frozen=True, kw_only=True):
    """The 99 % confidence intervals of the percentiles, ms, by a bootstrap of blocks of requests.

    By percentile (`p99`), between which two values the true one lies; null: the requests are worth
    too few independent ones, or it was not computed: for latencies on the other clock than that of
    `latency_from`, and for TTFO if answers begin with reasoning. Gaps between tokens have none:
    those of all streams share the engine's steps.
    """

    ttft_due: Annotated[Intervals, "Of `ttft_due`."]
    ttft_sent: Annotated[Intervals, "Of `ttft_sent`."]
    ttfo_due: Annotated[Intervals, "Of `ttfo_due`."]
    ttfo_sent: Annotated[Intervals, "Of `ttfo_sent`."]
    tpot: Annotated[Intervals, "Of `tpot`."]
    tpot_n1: Annotated[Intervals, "Of `tpot_n1`."]
    e2el_due: Annotated[Intervals, "Of `e2el_due`."]
    e2el_sent: Annotated[Intervals, "Of `e2el_sent`."]

    @classmethod
    def of(cls, snapshot: Snapshot, percentiles: Iterable[float], clock: Clock) -> Self:
        """Compute the intervals.

        Args:
            snapshot: The snapshot of the run.
            percentiles: Those that are summarized, 0 to 100.
            clock: From which the latencies of its rows count.
        """
        percentiles = list(percentiles)
        order = np.argsort(snapshot.index, kind="stable")
        ttft, tpot = f"ttft_{clock}", "tpot"
        columns = {ttft: snapshot.ttft, f"e2el_{clock}": snapshot.e2el, tpot: snapshot.tpot}
        was_sent = snapshot.sent >= 0
        sent, closed = snapshot.sent[was_sent], snapshot.closed[was_sent]
        wall_ns = int(closed.max() - sent.min()) if len(sent) else 0
        in_flight = float((closed - sent).sum()) / wall_ns if wall_ns > 0 else 0.0  # on average
        unknown: list[tuple[float, float] | None] = [None] * len(percentiles)
        bounds = dict.fromkeys(cls.__struct_fields__, unknown)  # between which percentiles each is
        for name, column in columns.items():
            values = column[order].astype(float)
            if len(values := values[values >= 0]):
                length = block_length(len(values), in_flight, values)
                bounds[name] = [percentile_bounds(values, p, length) for p in percentiles]
        bounds["tpot_n1"] = bounds[tpot]
        if not snapshot.counters["reasoning_events"]:
            bounds[f"ttfo_{clock}"] = bounds[ttft]
        return cls(
            **{
                name: {
                    # None for one that is beyond the sample.
                    percentile(p): [
                        to_ms(snapshot.histograms[name].percentile(end)) if 0 < end < 100 else None
                        for end in ends or (0, 100)
                    ]
                    for p, ends in zip(percentiles, bounds[name], strict=True)
                }
                for name in cls.__struct_fields__
            }
        )

    def named(self, name: str) -> Intervals:
        """Look up the intervals of a distribution; empty where it has none."""
        intervals: Intervals = getattr(self, name, {})
        return intervals


class ClientErrors(EachLatency[Errors], frozen=True, kw_only=True):
    """How far each number of a latency can be from the truth because of the client, ms.

    By `mean` and percentile (`p99`); null: nothing was measured. docs/accuracy.md says what the
    bound consists of.
    """

    @classmethod
    def of(cls, snapshot: Snapshot, percentiles: Iterable[float]) -> Self:
        """Compute the bounds of the means and of these percentiles, 0 to 100."""
        names = ["mean", *map(percentile, percentiles)]
        return cls.each(
            lambda each: {name: client_error_ms(snapshot, each, name) for name in names}
        )


class HistogramCounts(Struct, frozen=True, kw_only=True):
    """A histogram of ns that ports of HdrHistogram read. Numbers above 2**53 are strings."""

    counts: Annotated[str, "HdrHistogram's V2 encoding, compressed, base64."]
    count: Annotated[int | str, "Number of values."]
    rejects: Annotated[int | str, "Values out of range, which no other number here includes."]
    min: Annotated[int | str | None, "Minimum; null: no values."]
    max: Annotated[int | str | None, "Maximum; null: no values."]
    total: Annotated[int | str, "The sum of the values, exactly."]
    total_of_squares: Annotated[int | str, "The sum of their squares, exactly."]

    def histogram(self) -> HdrHistogram:
        """Decode the histogram as one of the package hdrhistogram.

        Raises:
            BadInput: The numbers do not agree with each other.
        """
        return self.recorded().to_hdr()

    def recorded(self) -> Histogram:
        """Decode the histogram as the run recorded it: with exact sums, and mergeable without loss.

        Raises:
            BadInput: The numbers do not agree with each other.
        """
        return Histogram.from_dict(msgspec.to_builtins(self))


class Histograms(EachLatency[HistogramCounts], frozen=True, kw_only=True):
    """Full histogram of each distribution, ns."""

    lag: Annotated[HistogramCounts, "Of `lag`."]
    pool_wait: Annotated[HistogramCounts, "Of `pool_wait`."]
    connect: Annotated[HistogramCounts, "Of `connect`."]
    loop_stall: Annotated[HistogramCounts, "Of `loop_stall`."]
    gc_pause: Annotated[HistogramCounts, "Of `gc_pause`."]
    unfinished: Annotated[HistogramCounts, "Of `unfinished`."]

    @classmethod
    def of(cls, snapshot: Snapshot) -> Self:
        """Encode the histograms of a snapshot."""
        return cls.each(lambda name: HistogramCounts(**snapshot.histograms[name].to_dict()))


class GroupLatency(Struct, frozen=True, kw_only=True):
    """A latency of the ok requests of a group."""

    count: Annotated[int, "How many requests have it."]
    mean: Annotated[float | None, "Mean, ms; null: no request has it."]
    p50: Annotated[float | None, "Median, ms."]
    p90: Annotated[float | None, "90th percentile, ms."]
    p99: Annotated[float | None, "99th percentile, ms."]

    @classmethod
    def of(cls, values: Int64s) -> Self:
        """Summarize values in ns, shape (n,)."""
        mean = to_ms(float(values.mean())) if len(values) else None
        p50, p90, p99 = (percentile_ms(values, p) for p in (50, 90, 99))
        return cls(count=len(values), mean=mean, p50=p50, p90=p90, p99=p99)


def percentile_ms(values: Int64s, p: float) -> float | None:
    """Return a percentile, 0 to 100, of values in ns, shape (n,), in ms; None where there are
    none.
    """
    return to_ms(float(np.percentile(values, p))) if len(values) else None
