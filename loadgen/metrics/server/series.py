"""Scrapes: what a server said of itself time after time, put together to what it said of a run."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Self, TypeVar

from loadgen.metrics.server.names import COUNTERS, HIGHEST, SUMMED
from loadgen.metrics.server.prom_histogram import Buckets

FIRST, TICK, LAST = "first", "tick", "last"  # before the clock starts; while it runs; after the last request has ended
Series = list[float | None]
T = TypeVar("T", float, Buckets)


@dataclass(frozen=True)
class Source:
    """Where a server tells of itself.

    Attributes:
        url: Asked with GET.
        target: Base URL of the server of which it tells.
        headers: Of the request, credentials among them.
        verify_tls: Whether certificates are checked.
    """

    url: str
    target: str
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    verify_tls: bool = True


@dataclass(frozen=True, kw_only=True)
class Told:
    """What holds a server's histogram, as JSON and back.

    Attributes:
        ttft: Its times to first token in seconds; None where it keeps none.
    """

    ttft: Buckets | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return vars(self) | {"ttft": self.ttft and self.ttft.to_dict()}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The one of which `to_dict` made `data`.

        Raises:
            KeyError, TypeError, ValueError: It made something else.
        """
        return cls(**data | {"ttft": data["ttft"] and Buckets.from_dict(data["ttft"])})


@dataclass(frozen=True, kw_only=True)
class Scrape(Told):
    """One answer of one source, or none.

    Attributes:
        url: Of the source.
        target: Of the source.
        moment: FIRST, TICK or LAST.
        asked_ns: Before it was asked, CLOCK_MONOTONIC.
        answered_ns: After its answer was there, or was given up.
        failed: Why it says nothing, in words of our own; None where it was read.
        values: As in `exposition.Reading`.
        names: Likewise.
        ttft: Likewise.
    """

    url: str
    target: str
    moment: str
    asked_ns: int
    answered_ns: int
    failed: str | None = None
    values: dict[str, float] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Scraped(Told):
    """What one source said of a run. Lists have an item for each scrape.

    Attributes:
        url: Of the source.
        target: Base URL of the server of which it tells.
        at_s: When it was asked, seconds after the run's clock started: before 0 for the first time.
        took_ms: Until its answer was there, connecting included.
        moments: FIRST, TICK or LAST.
        failed: Why it said nothing, or None.
        names: By quantity (`metric_names`, and "ttft"), how the server spells it.
        series: By quantity, what it said: levels as they were; counts since the first scrape, restarts bridged.
        ttft: Its own times to first token in seconds, of what got one between the first and the last scrape.
        restarts: How often its counters began anew.
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
        """Whether it said something before the clock started and after the last request: differences are the run's."""
        told = {moment for moment, failed in zip(self.moments, self.failed, strict=True) if failed is None}
        return {FIRST, LAST} <= told

    def increase(self, quantity: str) -> float | None:
        """By how much a count grew; None where it was never told."""
        return next((value for value in reversed(self.series.get(quantity, [])) if value is not None), None)

    @classmethod
    def of(cls, scrapes: list[Scrape], start_ns: int) -> Self:
        """Put the scrapes of one source together, which are in the order in which they were made."""
        counts = {quantity: _Growth(0.0, float) for quantity in COUNTERS}
        ttft = _Growth(Buckets(0.0, 0.0, {}), lambda buckets: buckets.count)
        names: Mapping[str, str] = {}
        series: dict[str, Series] = {quantity: [] for quantity in (*SUMMED, *HIGHEST, *COUNTERS)}
        restarts = 0
        for scrape in scrapes:
            names = scrape.names | dict(names)
            again = ttft.add(scrape.ttft, told=scrape.failed is None)
            for quantity, values in series.items():
                value = scrape.values.get(quantity)
                if quantity in counts:
                    again |= counts[quantity].add(value, told=scrape.failed is None)
                    value = None if value is None else counts[quantity].total
                values.append(value)
            restarts += again
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
    """Adds up by how much a count has grown since the first scrape, over restarts of who counts it."""

    def __init__(self, nothing: T, size: Callable[[T], float]) -> None:
        self._nothing: T = nothing
        self._size: Callable[[T], float] = size
        self._before: T | None = None
        self.total: T = nothing

    def add(self, value: T | None, *, told: bool) -> bool:
        """Take what one scrape says; returns whether the count has begun anew."""
        if value is None:
            if self._before is None and told:
                self._before = self._nothing  # a server that has nothing to count yet may leave a counter out
            return False
        if self._before is None:
            self._before = value
        again: bool = self._size(value) < self._size(self._before)
        self.total += value - (self._nothing if again else self._before)
        self._before = value
        return again


def by_source(scrapes: Iterable[Scrape]) -> list[list[Scrape]]:
    """The scrapes of each source, in the order of the sources."""
    found: dict[tuple[str, str], list[Scrape]] = {}
    for scrape in scrapes:
        found.setdefault((scrape.url, scrape.target), []).append(scrape)
    return list(found.values())
