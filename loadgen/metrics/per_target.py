"""Counts the records of a run against several targets for each target apart; the whole is their sum."""

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


class PerTargetRecorder(Recorder):
    """Hands each record to the recorder of its target, and counts what belongs to no target itself."""

    _by_target: list[Recorder]

    @classmethod
    def from_settings(cls, settings: RunSettings, start_ns: int, scheduled: int) -> Self:
        """Make a recorder with one of its own for each target of the settings."""
        made = super().from_settings(settings, start_ns, scheduled)
        made._by_target = [Recorder.from_settings(settings, start_ns, 0) for _ in settings.urls]
        return made

    def add(self, record: Record) -> None:
        """Count a record that has its outcome."""
        self.ended += 1
        self._by_target[record.target].add(record)

    def add_sample(self, record: Record, streamed: int) -> None:
        """Keep how many tokens the text of a record has that was added before."""
        self._by_target[record.target].add_sample(record, streamed)

    @property
    def failed(self) -> int:
        """Requests that were given to a transport and did not end well."""
        return sum(one.failed for one in self._by_target)

    @property
    def failed_by_class(self) -> Counter[str]:
        """Requests that did not end well, by their class; those never sent are among them."""
        return sum((one.failed_by_class for one in self._by_target), super().failed_by_class)

    def count(self, name: str) -> int:
        """Return one of the `snapshot.COUNTERS`, so far."""
        return super().count(name) + sum(one.count(name) for one in self._by_target)

    def sketch(self, name: str) -> Sketch:
        """Return one of the `snapshot.DISTRIBUTIONS`, so far."""
        whole: Sketch = reduce(add, (one.sketch(name) for one in self._by_target), super().sketch(name))
        return whole

    def snapshot(self, partial: str | None = None) -> Snapshot:
        """Copy what has been counted so far, with the part of each target."""
        parts = [_numbered(one.snapshot(partial), number) for number, one in enumerate(self._by_target)]
        whole = reduce(Snapshot.merge, parts, super().snapshot(partial))
        return replace(whole, scheduled=self.scheduled, targets=tuple(parts))


def recorder_for(settings: RunSettings, start_ns: int, scheduled: int) -> Recorder:
    """Make a recorder that keeps and judges what the settings ask, for each target apart where there are several.

    Args:
        settings: The settings of the run.
        start_ns: When its clock starts.
        scheduled: How many requests are to be sent.
    """
    kind = PerTargetRecorder if len(settings.urls) > 1 else Recorder
    return kind.from_settings(settings, start_ns, scheduled)


def _numbered(part: Snapshot, number: int) -> Snapshot:
    """Return the part of a target, with the target's number in the examples of its failures."""
    examples = {name: [example | {"target": number} for example in some] for name, some in part.examples.items()}
    return replace(part, scheduled=part.ended, examples=examples)
