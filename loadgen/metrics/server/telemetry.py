"""Server and GPU metrics of a run, read from the scraper's file: all at the end, or the latest
meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any, Self, TypeVar

import orjson
from msgspec import Struct, structs

from loadgen.metrics.server.names import ACCEPTED_AT, COUNT, HIGHEST, SUM, SUMMED, together
from loadgen.metrics.server.series import (
    LAST,
    TICK,
    PromHistogram,
    Scrape,
    Series,
    SourceSeries,
    by_source,
)
from loadgen.util.accelerators import QUANTITIES
from loadgen.util.files import TailReader

T = TypeVar("T")
# in the run's folder: a line for each scrape, and one for each reading of the GPUs
FILE_NAME = "telemetry.jsonl"


class Gpu(Struct, frozen=True):
    """Readings of one GPU over time.

    Attributes:
        name: As NVML names it.
        at_s: When it was read, seconds after the run's clock started.
        series: The readings of each quantity (`gpus.QUANTITIES`).
    """

    name: str | None
    at_s: list[float]
    series: dict[str, Series]


class Telemetry(Struct, frozen=True):
    """Metrics of all servers of a run, as if they were one server: they were scraped at the same
    times.

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
        """Whether differences are those of the run: every server was scraped before it and after
        it.
        """
        return not self.missing and all(source.covers for source in self.sources)

    @property
    def restarts(self) -> int:
        """How often a server's counters were reset."""
        return sum(source.restarts for source in self.sources)

    @property
    def ttft(self) -> PromHistogram | None:
        """Histogram of the servers' times to first token, seconds; None unless each server has
        one.
        """
        histograms = self._of_each(source.ttft for source in self.sources)
        return reduce(add, histograms) if histograms else None

    @property
    def fastest_ms(self) -> float | None:
        """The minimum time in which a source answered: a bound on what connecting and
        transmission take.
        """
        times_ms: list[float] = []
        for source in self.sources:
            scrapes = zip(source.took_ms, source.failed, strict=True)
            times_ms += [took_ms for took_ms, failed in scrapes if failed is None]
        return min(times_ms, default=None)

    def increase(self, quantity: str) -> float | None:
        """Return the increase of a counter during the run; None unless each source has it."""
        increases = self._of_each(source.increase(quantity) for source in self.sources)
        return sum(increases) if increases else None

    def mean(self, quantity: str) -> float | None:
        """Return the mean of one of the `names.MEANS` over the run; None where it is unknown."""
        total, count = self.increase(quantity + SUM), self.increase(quantity + COUNT)
        return total / count if total is not None and count else None

    def last(self, level: str) -> float | None:
        """Return a gauge at the last scrape, after the run; None unless every source had it
        then.
        """
        levels = self._of_each(source.series.get(level, [None])[-1] for source in self.sources)
        return together(level, levels) if levels else None

    def _of_each(self, values: Iterable[T | None]) -> list[T]:
        """Return the values of the sources; nothing unless each source has one."""
        present = [value for value in values if value is not None]
        return present if len(present) == len(self.sources) else []

    def grew_after(self, quantity: str) -> bool:
        """Return whether a counter of any source rose between its first and its last scrape
        after the run.
        """
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
        return all(
            source.names.get(quantity, quantity) == source.names.get(other)
            for source in self.sources
        )

    @property
    def prefix_hit_rate(self) -> float | None:
        """The share of tokens looked up in a prefix cache that were there; None where none was,
        or it is unknown.
        """
        hits, misses, whole = (
            self.increase(f"prefix_{what}") for what in ("hits", "misses", "queries")
        )
        if whole is None and hits is not None and misses is not None:
            whole = hits + misses
        return hits / whole if whole and hits is not None else None

    @property
    def spec_acceptance(self) -> float | None:
        """The share of drafted tokens that were accepted: over the run, else the mean over
        batches.
        """
        accepted = self.increase("accepted_tokens")
        drafted = self.increase("drafted_tokens")
        if drafted and accepted is not None:
            return accepted / drafted
        batches = self.levels("batch_acceptance")
        return sum(batches) / len(batches) if batches else None

    def course(self, quantity: str) -> list[tuple[float, float]]:
        """Return a gauge over time.

        Args:
            quantity: A name of a gauge, as in `names`.

        Returns:
            Pairs of seconds after the clock started and value, for each scrape between the first
            and the last in which every source had it.
        """
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
            "sources": [source.to_dict() for source in self.sources],
            "gpus": [structs.asdict(gpu) for gpu in self.gpus],
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
        """Read the scraper's file in a run's folder; there may be none, and a last line that is cut
        off is left out.

        Args:
            folder: The folder of the run.
            start_ns: When its clock started.
            missing: URLs of servers that had no metrics before the run; sources that never had any
                are added.
        """
        try:
            lines = (folder / FILE_NAME).read_bytes().split(b"\n")[:-1]
        except OSError:
            return cls(missing=missing)
        parsed = list(map(orjson.loads, lines))
        scrapes = [Scrape.from_dict(line) for line in parsed if "gpus" not in line]
        sources = [SourceSeries.of(of_source, start_ns) for of_source in by_source(scrapes)]
        readings = [line for line in parsed if "gpus" in line]
        read_s = [(reading["asked_ns"] - start_ns) / 1e9 for reading in readings]
        gpus = []
        for of_gpu in zip(*(reading["gpus"] for reading in readings), strict=True):
            series = {quantity: [values[quantity] for values in of_gpu] for quantity in QUANTITIES}
            gpus.append(Gpu(of_gpu[0]["name"], read_s, series))
        with_metrics = tuple(source for source in sources if source.names)
        if with_metrics:
            missing += tuple(source.url for source in sources if not source.names)
        return cls(with_metrics, tuple(gpus), missing)


class SpecDecode(Struct, frozen=True):
    """What servers drafted and accepted, all together. Unknown values are None.

    Attributes:
        rate: Share of the drafted tokens that were accepted, 0 to 1.
        length: Mean output tokens of a step that verifies a draft: the accepted ones and one more.
        drafts: Number of drafts.
        drafted: Tokens in them.
        accepted: Tokens of them that were accepted.
        per_position: Share of the drafts whose token at each position was accepted.
    """

    rate: float | None
    length: float | None
    drafts: float | None
    drafted: float | None
    accepted: float | None
    per_position: tuple[float, ...]

    @classmethod
    def of(cls, telemetry: Telemetry) -> Self | None:
        """Compute it; None where nothing was drafted, or no server reports it.

        SGLang has no counters but gauges of the last batch, of which the means over the scrapes are
        taken.
        """
        drafts, drafted, accepted = map(
            telemetry.increase, ("drafts", "drafted_tokens", "accepted_tokens")
        )
        length = 1 + accepted / drafts if drafts and accepted is not None else None
        if length is None and (batches := telemetry.levels("batch_accept_length")):
            length = sum(batches) / len(batches)
        if telemetry.spec_acceptance is None and length is None:
            return None
        names = set[str]().union(*(source.series for source in telemetry.sources))
        last = max(
            (int(name.removeprefix(ACCEPTED_AT)) for name in names if name.startswith(ACCEPTED_AT)),
            default=-1,
        )
        counts = [
            telemetry.increase(f"{ACCEPTED_AT}{position}") or 0.0 for position in range(last + 1)
        ]
        shares = tuple(count / drafts for count in counts) if drafts else ()
        return cls(telemetry.spec_acceptance, length, drafts, drafted, accepted, shares)


class LatestServerMetrics:
    """Follows the scraper's file while a run goes on.

    Args:
        folder: The folder of the run.
    """

    def __init__(self, folder: Path) -> None:
        self._file = TailReader(folder / FILE_NAME)
        self._last: dict[tuple[str, str], dict[str, float]] = {}

    def latest(self) -> dict[str, float]:
        """Return each gauge that the last scrape of every source had, of several sources as if
        they were one server.
        """
        for line in map(orjson.loads, self._file.lines()):
            if "gpus" not in line:
                self._last[line["url"], line["target"]] = line["values"]
        gauges = {}
        for quantity in (*SUMMED, *HIGHEST):
            values = [last[quantity] for last in self._last.values() if quantity in last]
            if values and len(values) == len(self._last):
                gauges[quantity] = together(quantity, values)
        return gauges
