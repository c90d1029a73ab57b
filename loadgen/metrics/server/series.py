"""What is scraped of servers: sources, scrapes, the time series that these make over a run, and
histograms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from msgspec import Struct, field, structs

from loadgen.metrics.server.names import ACCEPTED_AT, COUNTERS, HIGHEST, SUMMED
from loadgen.util.redaction import WithCredentials
from loadgen.util.route import DIRECT, Route
from loadgen.workload.prefix_cache.cache_block import CacheBlock

# Before the clock starts; while it runs; after the last request has ended.
FIRST, TICK, LAST = ("first", "tick", "last")
Series = list[float | None]
T = TypeVar("T", float, "PromHistogram")


class Source(WithCredentials, frozen=True):
    """An endpoint with the metrics of a server.

    Attributes:
        url: The url of the endpoint, for GET.
        target: Base URL of the server.
        headers: The headers of the request, credentials among them.
        route: How it is reached.
    """

    url: str
    target: str
    headers: dict[str, str] = field(default_factory=dict)
    route: Route = DIRECT


class ScrapeOrder(Struct, frozen=True):
    """What to scrape during a run.

    Attributes:
        sources: Where the servers' metrics are.
        folder: Where to write them.
        gpus: Whether to read this machine's GPUs.
        last_scrapes: How often it is scraped at most after the run, until every server is idle.
        missing: Base URLs of targets without metrics, while others have some.
        cache_block: The unit of the servers' prefix caches, by the metrics that were found; None:
            they do not say.
    """

    sources: tuple[Source, ...]
    folder: Path
    gpus: bool = False
    last_scrapes: int = 5
    missing: tuple[str, ...] = ()
    cache_block: CacheBlock | None = None

    def with_headers(self, headers: Mapping[str, dict[str, str]]) -> tuple[Source, ...]:
        """Return the sources with other headers, by the base URL of the server; those that are sent
        no credentials stay as they are.
        """
        return tuple(
            structs.replace(source, headers=headers[source.target]) if source.headers else source
            for source in self.sources
        )


class WithTtft(Struct, frozen=True, kw_only=True):
    """Values with a server's histogram of TTFT, to JSON and back.

    Attributes:
        ttft: Times to first token in seconds; None where the server has no such histogram.
    """

    ttft: PromHistogram | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return structs.asdict(self) | {"ttft": self.ttft and self.ttft.to_dict()}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Read the values from their JSON form.

        Raises:
            KeyError, TypeError, ValueError: `data` is something else.
        """
        return cls(**data | {"ttft": data["ttft"] and PromHistogram.from_dict(data["ttft"])})


class Scrape(WithTtft, frozen=True, kw_only=True):
    """One answer of one source, or its failure.

    Attributes:
        url, target: As in `Source`.
        moment: FIRST, TICK or LAST.
        asked_ns: Before the request, CLOCK_MONOTONIC.
        answered_ns: After the answer, or after the wait for it.
        failed: Why it could not be read, in loadgen's words, or None.
        values, names, ttft: As in `parser.Reading`.
    """

    url: str
    target: str
    moment: str
    asked_ns: int
    answered_ns: int
    failed: str | None = None
    values: dict[str, float] = {}
    names: dict[str, str] = {}


class SourceSeries(WithTtft, frozen=True, kw_only=True):
    """Metrics of one source over a run. Lists have an item for each scrape.

    Attributes:
        url, target: As in `Source`.
        at_s: When it was scraped, seconds after the run's clock started; the first time is below 0.
        took_ms: Until it had answered, connecting included.
        moments: FIRST, TICK or LAST.
        failed: Why a scrape failed, or None.
        names: The server's name of each quantity (those of `names`, and "ttft").
        series: The values of each quantity: gauges as they were; counters since the first scrape,
            restarts bridged.
        ttft: The server's times to first token in seconds, between the first and the last scrape.
        restarts: How often its counters were reset.
    """

    url: str
    target: str
    at_s: list[float]
    took_ms: list[float]
    moments: list[str]
    failed: list[str | None]
    names: dict[str, str]
    series: dict[str, Series]
    restarts: int

    @property
    def covers(self) -> bool:
        """Whether it was scraped before the clock started and after the last request:
        differences are the run's.
        """
        readable = {
            moment
            for moment, failed in zip(self.moments, self.failed, strict=True)
            if failed is None
        }
        return {FIRST, LAST} <= readable

    def increase(self, quantity: str) -> float | None:
        """Return the increase of a counter; None where no scrape had it."""
        return next(
            (value for value in reversed(self.series.get(quantity, [])) if value is not None), None
        )

    @classmethod
    def of(cls, scrapes: list[Scrape], start_ns: int) -> Self:
        """Make the series of a source.

        Args:
            scrapes: The scrapes of one source, in order of time.
            start_ns: When the clock of the run started, CLOCK_MONOTONIC.
        """
        quantities = set[str]().union(*(scrape.values for scrape in scrapes))
        positions = sorted(name for name in quantities if name.startswith(ACCEPTED_AT))
        counts = {quantity: _Growth(0.0, float) for quantity in (*COUNTERS, *positions)}
        ttft = _Growth(PromHistogram(0.0, 0.0, {}), lambda buckets: buckets.count)
        names: Mapping[str, str] = {}
        series: dict[str, Series] = {quantity: [] for quantity in (*SUMMED, *HIGHEST, *counts)}
        restarts = 0
        for scrape in scrapes:
            names = scrape.names | dict(names)
            is_reset = ttft.add(scrape.ttft, read=scrape.failed is None)
            for quantity, values in series.items():
                value = scrape.values.get(quantity)
                if quantity in counts:
                    is_reset |= counts[quantity].add(value, read=scrape.failed is None)
                    value = None if value is None else counts[quantity].total
                values.append(value)
            if is_reset:
                restarts += 1
        return cls(
            url=scrapes[0].url,
            target=scrapes[0].target,
            at_s=[(scrape.asked_ns - start_ns) / 1e9 for scrape in scrapes],
            took_ms=[(scrape.answered_ns - scrape.asked_ns) / 1e6 for scrape in scrapes],
            moments=[scrape.moment for scrape in scrapes],
            failed=[scrape.failed for scrape in scrapes],
            names=dict(names),
            series={quantity: values for quantity, values in series.items() if quantity in names},
            ttft=ttft.total if "ttft" in names else None,
            restarts=restarts,
        )


class _Growth(Generic[T]):
    """Adds up the increase of a counter since the first scrape, over restarts of the server.

    Args:
        nothing: The value of a counter that has counted nothing.
        size: Returns the count in a value; after a restart of the server it is smaller.

    Attributes:
        total: The increase so far.
    """

    def __init__(self, nothing: T, size: Callable[[T], float]) -> None:
        self._nothing: T = nothing
        self._size: Callable[[T], float] = size
        self._before: T | None = None
        self.total: T = nothing

    def add(self, value: T | None, *, read: bool) -> bool:
        """Add the value of one scrape, and return whether the counter was reset."""
        if value is None:
            if self._before is None and read:
                # A server that has nothing to count yet may leave a counter out.
                self._before = self._nothing
            return False
        if self._before is None:
            self._before = value
        is_reset: bool = self._size(value) < self._size(self._before)
        self.total += value - (self._nothing if is_reset else self._before)
        self._before = value
        return is_reset


def by_source(scrapes: Iterable[Scrape]) -> list[list[Scrape]]:
    """Group scrapes by source, in the order of the sources."""
    groups: dict[tuple[str, str], list[Scrape]] = {}
    for scrape in scrapes:
        groups.setdefault((scrape.url, scrape.target), []).append(scrape)
    return list(groups.values())


class PromHistogram(Struct, frozen=True):
    """A Prometheus histogram, values counted by upper bound: its sum is exact, and every percentile
    is an interval.

    Attributes:
        count: The count of all values.
        sum: The sum of all values, in their unit.
        upto: How many values are no greater than each bound; of the last one, which is infinite,
            all are.
    """

    count: float
    sum: float
    upto: dict[float, float]

    def __add__(self, other: PromHistogram) -> PromHistogram:
        return self._with(other, 1)

    def __sub__(self, other: PromHistogram) -> PromHistogram:
        return self._with(other, -1)

    def _with(self, other: PromHistogram, sign: int) -> PromHistogram:
        bounds = sorted(self.upto.keys() | other.upto.keys())
        upto = {
            bound: self.upto.get(bound, 0.0) + sign * other.upto.get(bound, 0.0) for bound in bounds
        }
        return PromHistogram(self.count + sign * other.count, self.sum + sign * other.sum, upto)

    @property
    def mean(self) -> float | None:
        """The exact mean of all values; None where there are none."""
        return self.sum / self.count if self.count > 0 else None

    def interval(self, p: float) -> tuple[float, float | None] | None:
        """Return the bounds of the percentile that interpolates between the two neighbouring ranks.

        Args:
            p: From 0 to 100.

        Returns:
            The lower and the upper bound, the upper None where it is infinite; None without values
            or bounds.
        """
        if self.count <= 0 or not self.upto:
            return None
        rank = (self.count - 1) * p / 100
        low = self._bucket(math.floor(rank) + 1)[0]
        high = self._bucket(math.ceil(rank) + 1)[1]
        return low, None if math.isinf(high) else high

    def _bucket(self, number: int) -> tuple[float, float]:
        """Return the bounds of the bucket that holds the value of this rank, from 1 in ascending
        order.
        """
        below = 0.0
        for bound in sorted(self.upto):
            if self.upto[bound] >= number:
                return below, bound
            below = bound
        return below, math.inf

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form; an infinite bound is null."""
        upto = [
            [None if math.isinf(bound) else bound, count]
            for bound, count in sorted(self.upto.items())
        ]
        return {"count": self.count, "sum": self.sum, "upto": upto}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Read the histogram from its JSON form.

        Raises:
            KeyError, TypeError, ValueError: `data` is something else.
        """
        upto = {
            math.inf if bound is None else float(bound): float(count)
            for bound, count in data["upto"]
        }
        return cls(float(data["count"]), float(data["sum"]), upto)
