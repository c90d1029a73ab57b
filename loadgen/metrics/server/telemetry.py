"""Telemetry: all that servers and GPUs said of a run while it was measured."""

from dataclasses import asdict, dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any, Self

import orjson

from loadgen.metrics.server.names import together
from loadgen.metrics.server.prom_histogram import Buckets
from loadgen.metrics.server.series import TICK, Scrape, Scraped, Series, by_source
from loadgen.util.gpus import QUANTITIES

FILE_NAME = "telemetry.jsonl"  # in the run's folder: a line for each scrape, and one for each reading of the GPUs


@dataclass(frozen=True)
class Gpu:
    """One GPU in the course of a run.

    Attributes:
        name: As NVML has it.
        at_s: When it was read, seconds after the run's clock started.
        series: By quantity (`gpus.QUANTITIES`), what was read.
    """

    name: str | None
    at_s: list[float]
    series: dict[str, Series]


@dataclass(frozen=True)
class Telemetry:
    """What the sources said; of several, which were asked at the same times, as if they were one server.

    Attributes:
        sources: Those that said something.
        gpus: Of this machine, if the server is on it.
        missing: Where servers of the run should have said something, and did not, while others did.
    """

    sources: tuple[Scraped, ...] = ()
    gpus: tuple[Gpu, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def covers(self) -> bool:
        """Whether differences are those of the run: every server told before it and after it."""
        return not self.missing and all(source.covers for source in self.sources)

    @property
    def restarts(self) -> int:
        """How often a server's counters began anew."""
        return sum(source.restarts for source in self.sources)

    @property
    def ttft(self) -> Buckets | None:
        """The servers' times to first token in seconds; None unless each keeps them."""
        found = [source.ttft for source in self.sources if source.ttft is not None]
        return reduce(add, found) if found and len(found) == len(self.sources) else None

    @property
    def fastest_ms(self) -> float | None:
        """The shortest time in which a source answered: a bound on what a connection and a request's way take."""
        took = [ms for one in self.sources for ms, why in zip(one.took_ms, one.failed, strict=True) if why is None]
        return min(took, default=None)

    def increase(self, quantity: str) -> float | None:
        """By how much a count grew; None unless each source tells."""
        told = [grown for source in self.sources if (grown := source.increase(quantity)) is not None]
        return sum(told) if told and len(told) == len(self.sources) else None

    @property
    def prefix_hit_rate(self) -> float | None:
        """The share of tokens looked for in a prefix cache that were there; None where nobody looked, or tells."""
        hits, misses, whole = (self.increase(f"prefix_{what}") for what in ("hits", "misses", "queries"))
        if whole is None and hits is not None and misses is not None:
            whole = hits + misses
        return hits / whole if whole and hits is not None else None

    @property
    def spec_acceptance(self) -> float | None:
        """The share of drafted tokens that were accepted: in the run, else the mean of what was told of batches."""
        accepted, drafted = self.increase("accepted_tokens"), self.increase("drafted_tokens")
        if drafted and accepted is not None:
            return accepted / drafted
        told = self.levels("batch_acceptance")
        return sum(told) / len(told) if told else None

    def course(self, quantity: str) -> list[tuple[float, float]]:
        """A level in the course of the run: (seconds after its clock started, what it was).

        Of each time between first and last at which every source told of it.
        """
        if not self.sources:
            return []
        first = self.sources[0]
        columns = zip(*(source.series.get(quantity, ()) for source in self.sources), strict=False)
        return [
            (at_s, together(quantity, told))
            for column, at_s, moment in zip(columns, first.at_s, first.moments, strict=False)
            if moment == TICK and len(told := [value for value in column if value is not None]) == len(self.sources)
        ]

    def levels(self, quantity: str) -> list[float]:
        """What a level was at these times."""
        return [level for _, level in self.course(quantity)]

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return {
            "sources": [one.to_dict() for one in self.sources],
            "gpus": [asdict(gpu) for gpu in self.gpus],
            "missing": list(self.missing),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The one of which `to_dict` made `data`.

        Raises:
            KeyError, TypeError, ValueError: It made something else.
        """
        return cls(
            tuple(map(Scraped.from_dict, data["sources"])),
            tuple(Gpu(**gpu) for gpu in data["gpus"]),
            tuple(data.get("missing", ())),
        )

    @classmethod
    def left_in(cls, folder: Path, start_ns: int, missing: tuple[str, ...] = ()) -> Self:
        """What the scraper has left in a run's folder; nothing where there is no file, or in a line that was cut off.

        Args:
            folder: Of the run.
            start_ns: When its clock started.
            missing: As far as it was known before the run; a source that said nothing all along is added.
        """
        try:
            lines = (folder / FILE_NAME).read_bytes().split(b"\n")[:-1]
        except OSError:
            return cls(missing=missing)
        told = list(map(orjson.loads, lines))
        scrapes = [Scrape.from_dict(line) for line in told if "gpus" not in line]
        sources = [Scraped.of(one, start_ns) for one in by_source(scrapes)]
        readings = [line for line in told if "gpus" in line]
        saying = tuple(source for source in sources if source.names)
        if saying:
            missing += tuple(source.url for source in sources if not source.names)
        return cls(saying, _gpus(readings, start_ns), missing)


def _gpus(readings: list[dict[str, Any]], start_ns: int) -> tuple[Gpu, ...]:
    at_s = [(reading["asked_ns"] - start_ns) / 1e9 for reading in readings]
    columns = zip(*(reading["gpus"] for reading in readings), strict=True)
    return tuple(
        Gpu(column[0]["name"], at_s, {quantity: [one[quantity] for one in column] for quantity in QUANTITIES})
        for column in columns
    )
