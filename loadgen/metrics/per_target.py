"""Recorders: the records of a run against several targets, counted for each of them apart; the whole is their sum."""

from collections import Counter
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Self

from loadgen.config.settings import RunSettings
from loadgen.core.record import Record
from loadgen.core.sketch import Sketch
from loadgen.metrics.recorder import Recorder
from loadgen.metrics.snapshot import Snapshot


class Recorders(Recorder):
    """A recorder that hands each record to the one of its target; what belongs to no target, it counts itself."""

    _each: list[Recorder]

    @classmethod
    def from_settings(cls, settings: RunSettings, start_ns: int, scheduled: int) -> Self:
        """Recorders that keep and judge what the settings ask, one for each of their targets."""
        made = super().from_settings(settings, start_ns, scheduled)
        made._each = [Recorder.from_settings(settings, start_ns, 0) for _ in settings.urls]
        return made

    def add(self, record: Record) -> None:
        """Count a record that has its outcome."""
        self.ended += 1
        self._each[record.target].add(record)

    def add_sample(self, record: Record, streamed: int) -> None:
        """Note of a record that was added how many tokens its text has."""
        self._each[record.target].add_sample(record, streamed)

    @property
    def failed(self) -> int:
        """Requests that were given to a transport and did not end well."""
        return sum(one.failed for one in self._each)

    @property
    def failures(self) -> Counter[str]:
        """Requests that did not end well, by their class; those never sent are among them."""
        return sum((one.failures for one in self._each), super().failures)

    def count(self, name: str) -> int:
        """One of the `snapshot.COUNTERS`, so far."""
        return super().count(name) + sum(one.count(name) for one in self._each)

    def sketch(self, name: str) -> Sketch:
        """One of the `snapshot.DISTRIBUTIONS`, so far."""
        whole: Sketch = reduce(add, (one.sketch(name) for one in self._each), super().sketch(name))
        return whole

    def snapshot(self, partial: str | None = None) -> Snapshot:
        """What has been counted so far, as it stands, with the part of each target."""
        parts = [_numbered(one.snapshot(partial), number) for number, one in enumerate(self._each)]
        whole = reduce(Snapshot.merge, parts, super().snapshot(partial))
        return replace(whole, scheduled=self.scheduled, targets=tuple(parts))


def of(settings: RunSettings, start_ns: int, scheduled: int) -> Recorder:
    """A recorder that keeps and judges what the settings ask, of each target apart where there are several.

    Args:
        settings: Of the run.
        start_ns: When its clock starts.
        scheduled: How many requests are to be sent.
    """
    kind = Recorders if len(settings.urls) > 1 else Recorder
    return kind.from_settings(settings, start_ns, scheduled)


def _numbered(part: Snapshot, number: int) -> Snapshot:
    """The part of a target, whose failures say to which they were sent."""
    examples = {name: [example | {"target": number} for example in some] for name, some in part.examples.items()}
    return replace(part, scheduled=part.ended, examples=examples)
