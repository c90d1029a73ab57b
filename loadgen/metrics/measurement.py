"""What a loop, a worker or a whole run has measured: one value from the loop that measures to the report."""

from dataclasses import dataclass, replace
from typing import Self

from loadgen.metrics.records.trailer import RunTrailer
from loadgen.metrics.snapshot import Snapshot


@dataclass(frozen=True)
class Measurement:
    """The numbers of a run or of a part of it, with what only the measuring processes know; parts add up.

    Attributes:
        snapshot: The numbers.
        trailer: The other facts.
    """

    snapshot: Snapshot
    trailer: RunTrailer

    def merge(self, other: Self) -> Self:
        """Combine two parts."""
        return replace(self, snapshot=self.snapshot.merge(other.snapshot), trailer=self.trailer.merge(other.trailer))

    def with_records_error(self, error: str | None) -> Self:
        """Return a copy that reports this error of the records, unless it reports one already."""
        return replace(self, trailer=self.trailer.with_records_error(error))
