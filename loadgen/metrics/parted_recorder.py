"""Counts the records of a run for each of its targets and classes apart; the whole is their sum."""

from collections import Counter
from functools import reduce
from operator import add
from typing import Self

from msgspec import structs

from loadgen.config.settings import RunSettings
from loadgen.core.record import Record
from loadgen.core.record_counter import RecordDivider
from loadgen.core.sketch import Sketch
from loadgen.metrics.recorder import Recorder
from loadgen.metrics.snapshot import Snapshot


class PartedRecorder(Recorder):
    """Hands each record to the recorder of its target and class, and counts what belongs to no
    part itself.
    """

    # Those of the first target in the order of the classes, then those of the next one.
    _parts: list[Recorder]
    _targets: int
    _classes: int  # how many, or 1 without any
    _has_classes: bool

    @classmethod
    def from_settings(cls, settings: RunSettings, start_ns: int, scheduled: int) -> Self:
        """Make a recorder with one of its own for each target and class of the settings."""
        recorder = super().from_settings(settings, start_ns, scheduled)
        of_classes = [
            settings.of_class(request_class) for request_class in settings.request_classes
        ] or [settings]
        recorder._targets = max(1, len(settings.urls))
        recorder._classes = len(of_classes)
        recorder._has_classes = bool(settings.request_classes)
        recorder._parts = [
            Recorder.from_settings(of_class, start_ns, 0)
            for of_class in of_classes * recorder._targets
        ]
        recorder.add = RecordDivider([part.add for part in recorder._parts], recorder._classes).add
        return recorder

    def add_sample(self, record: Record, streamed: int) -> None:
        """As `Recorder.add_sample`."""
        part = self._parts[record.target * self._classes + record.class_number]
        part.add_sample(record, streamed)

    @property
    def ended(self) -> int:
        """As `Recorder.ended`."""
        return super().ended + sum(part.ended for part in self._parts)

    @property
    def failed_by_class(self) -> Counter[str]:
        """As `Recorder.failed_by_class`."""
        return sum((part.failed_by_class for part in self._parts), super().failed_by_class)

    def count(self, name: str) -> int:
        """As `Recorder.count`."""
        return super().count(name) + sum(part.count(name) for part in self._parts)

    def sketch(self, name: str) -> Sketch:
        """As `Recorder.sketch`."""
        whole: Sketch = reduce(
            add, (part.sketch(name) for part in self._parts), super().sketch(name)
        )
        return whole

    def snapshot(self, partial: str | None = None) -> Snapshot:
        """Copy what has been counted so far, with the part of each target and of each class."""
        parts = [part.snapshot(partial) for part in self._parts]
        targets = list[Snapshot]()
        classes = list[Snapshot]()
        if self._targets > 1:
            parts = [_numbered(part, place // self._classes) for place, part in enumerate(parts)]
            rows = [
                parts[first : first + self._classes]
                for first in range(0, len(parts), self._classes)
            ]
            targets = [_merged(row) for row in rows]
        if self._has_classes:
            classes = [_merged(parts[number :: self._classes]) for number in range(self._classes)]
        whole = reduce(Snapshot.merge, parts, super().snapshot(partial))
        return structs.replace(
            whole, scheduled=self.scheduled, targets=tuple(targets), classes=tuple(classes)
        )


def recorder_for(settings: RunSettings, start_ns: int, scheduled: int) -> Recorder:
    """Make a recorder that keeps and judges what the settings ask, for several targets or classes
    apart.

    Args:
        settings: The settings of the run.
        start_ns: When its clock starts.
        scheduled: How many requests are to be sent.
    """
    has_parts = len(settings.urls) > 1 or settings.request_classes
    return (PartedRecorder if has_parts else Recorder).from_settings(settings, start_ns, scheduled)


def _merged(parts: list[Snapshot]) -> Snapshot:
    """Return the sum of parts, of which all that has ended was to be sent."""
    whole = reduce(Snapshot.merge, parts)
    return structs.replace(whole, scheduled=whole.ended)


def _numbered(part: Snapshot, number: int) -> Snapshot:
    """Return a part of a target, with the target's number in the examples of its failures."""
    examples = {
        name: [example | {"target": number} for example in of_outcome]
        for name, of_outcome in part.examples.items()
    }
    return structs.replace(part, examples=examples)
