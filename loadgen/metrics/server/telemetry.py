"""Server and GPU metrics of a run, read from the scraper's file: all at the end, or the latest meanwhile."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any, Self, TypeVar

import orjson

from loadgen.metrics.server.names import HIGHEST, SUMMED, together
from loadgen.metrics.server.prom_histogram import PromHistogram
from loadgen.metrics.server.series import LAST, TICK, Scrape, Series, SourceSeries, by_source
from loadgen.util.accelerators import QUANTITIES
from loadgen.util.files import TailReader

T = TypeVar("T")
FILE_NAME = "telemetry.jsonl"  # in the run's folder: a line for each scrape, and one for each reading of the GPUs


@dataclass(frozen=True)
class Gpu:
    """Readings of one GPU over time.

    Attributes:
        name: As NVML names it.
        at_s: When it was read, seconds after the run's clock started.
        series: The readings of each quantity (`gpus.QUANTITIES`).
    """

    name: str | None
    at_s: list[float]
    series: dict[str, Series]


@dataclass(frozen=True)
class Telemetry:
    """Metrics of all servers of a run, as if they were one server: they were scraped at the same times.

    Attributes:
        sources: The servers that had metrics.
        gpus: Of this machine, if the server is on it.
        missing: The URLs of servers that had none, while others had some.
    """

    sources: tuple[SourceSeries, ...] = ()
    gpus: tuple[Gpu, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def covers(self) -> bool:
        """Whether differences are those of the run: every server was scraped before it and after it."""
        return not self.missing and all(source.covers for source in self.sources)

    @property
    def restarts(self) -> int:
        """How often a server's counters were reset."""
        return sum(source.restarts for source in self.sources)

    @property
    def ttft(self) -> PromHistogram | None:
        """Histogram of the servers' times to first token, seconds; None unless each server has one."""
        found = self._of_each(source.ttft for source in self.sources)
        return reduce(add, found) if found else None

    @property
    def fastest_ms(self) -> float | None:
        """The minimum time in which a source answered: a bound on what connecting and transmission take."""
        took = [ms for one in self.sources for ms, why in zip(one.took_ms, one.failed, strict=True) if why is None]
        return min(took, default=None)

    def increase(self, quantity: str) -> float | None:
        """Return the increase of a counter during the run; None unless each source has it."""
        known = self._of_each(source.increase(quantity) for source in self.sources)
        return sum(known) if known else None

    def last(self, level: str) -> float | None:
        """Return a gauge at the last scrape, after the run; None unless every source had it then."""
        known = self._of_each(source.series.get(level, [None])[-1] for source in self.sources)
        return together(level, known) if known else None

    def _of_each(self, values: Iterable[T | None]) -> list[T]:
        """Return the values of the sources; nothing unless each source has one."""
        known = [value for value in values if value is not None]
        return known if len(known) == len(self.sources) else []

    def grew_after(self, quantity: str) -> bool:
        """Return whether a counter of any source rose between its first and its last scrape after the run."""
        for source in self.sources:
            values = zip(source.series.get(quantity, ()), source.moments, strict=False)
            after = [value for value, moment in values if moment == LAST and value is not None]
            if after and after[-1] > after[0]:
                return True
        return False

    @property
    def last_at_s(self) -> float:
        """When the last scrape began, seconds after the run's clock started."""
        return max(source.at_s[-1] for source in self.sources)

    def has_same_name(self, quantity: str, other: str) -> bool:
        """Return whether each source reads both quantities from metrics of one name."""
        return all(source.names.get(quantity, quantity) == source.names.get(other) for source in self.sources)

    @property
    def prefix_hit_rate(self) -> float | None:
        """The share of tokens looked up in a prefix cache that were there; None where none was, or it is unknown."""
        hits, misses, whole = (self.increase(f"prefix_{what}") for what in ("hits", "misses", "queries"))
        if whole is None and hits is not None and misses is not None:
            whole = hits + misses
        return hits / whole if whole and hits is not None else None

    @property
    def spec_acceptance(self) -> float | None:
        """The share of drafted tokens that were accepted: over the run, else the mean over batches."""
        accepted, drafted = self.increase("accepted_tokens"), self.increase("drafted_tokens")
        if drafted and accepted is not None:
            return accepted / drafted
        batches = self.levels("batch_acceptance")
        return sum(batches) / len(batches) if batches else None

    def course(self, quantity: str) -> list[tuple[float, float]]:
        """Return a gauge over time, as pairs of seconds after the clock started and value."""
        # There is one for each scrape between first and last in which every source had it.
        if not self.sources:
            return []
        first = self.sources[0]
        columns = zip(*(source.series.get(quantity, ()) for source in self.sources), strict=False)
        return [
            (at_s, together(quantity, values))
            for column, at_s, moment in zip(columns, first.at_s, first.moments, strict=False)
            if moment == TICK and (values := self._of_each(column))
        ]

    def levels(self, quantity: str) -> list[float]:
        """Return the values of a gauge over time."""
        return [level for _, level in self.course(quantity)]

    def to_dict(self) -> dict[str, Any]:
        """Return what orjson writes of the metrics."""
        return {
            "sources": [one.to_dict() for one in self.sources],
            "gpus": self.gpus,
            "missing": self.missing,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Read the metrics from their JSON form.

        Raises:
            KeyError, TypeError, ValueError: `data` is something else.
        """
        return cls(
            tuple(map(SourceSeries.from_dict, data["sources"])),
            tuple(Gpu(**gpu) for gpu in data["gpus"]),
            tuple(data.get("missing", ())),
        )

    @classmethod
    def left_in(cls, folder: Path, start_ns: int, missing: tuple[str, ...] = ()) -> Self:
        """Read the scraper's file in a run's folder; there may be none, and a last line that is cut off is left out.

        Args:
            folder: The folder of the run.
            start_ns: When its clock started.
            missing: URLs of servers that had no metrics before the run; sources that never had any are added.
        """
        try:
            lines = (folder / FILE_NAME).read_bytes().split(b"\n")[:-1]
        except OSError:
            return cls(missing=missing)
        parsed = list(map(orjson.loads, lines))
        scrapes = [Scrape.from_dict(line) for line in parsed if "gpus" not in line]
        sources = [SourceSeries.of(one, start_ns) for one in by_source(scrapes)]
        readings = [line for line in parsed if "gpus" in line]
        known = tuple(source for source in sources if source.names)
        if known:
            missing += tuple(source.url for source in sources if not source.names)
        return cls(known, _gpus(readings, start_ns), missing)


class LatestServerMetrics:
    """Follows the scraper's file while a run goes on.

    Args:
        folder: The folder of the run.
    """

    def __init__(self, folder: Path) -> None:
        self._file = TailReader(folder / FILE_NAME)
        self._last: dict[tuple[str, str], dict[str, float]] = {}

    def latest(self) -> dict[str, float]:
        """Return each gauge that the last scrape of every source had, of several sources as if they were one server."""
        for line in map(orjson.loads, self._file.lines()):
            if "gpus" not in line:
                self._last[line["url"], line["target"]] = line["values"]
        found = {}
        for quantity in (*SUMMED, *HIGHEST):
            values = [last[quantity] for last in self._last.values() if quantity in last]
            if values and len(values) == len(self._last):
                found[quantity] = together(quantity, values)
        return found


def _gpus(readings: list[dict[str, Any]], start_ns: int) -> tuple[Gpu, ...]:
    at_s = [(reading["asked_ns"] - start_ns) / 1e9 for reading in readings]
    columns = zip(*(reading["gpus"] for reading in readings), strict=True)
    return tuple(
        Gpu(column[0]["name"], at_s, {quantity: [one[quantity] for one in column] for quantity in QUANTITIES})
        for column in columns
    )
