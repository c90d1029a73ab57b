"""Results: what a run found, made from what was measured or from the records that it has left."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadgen import checks, recorders, report
from loadgen.checks import Verdict
from loadgen.client import Client
from loadgen.errors import BadInput, WorkerDied
from loadgen.evidence import Evidence
from loadgen.heading import Heading
from loadgen.measurement import Measured
from loadgen.outcomes import Outcome
from loadgen.records import RecordFile
from loadgen.schedule import Schedule
from loadgen.settings import seed_of
from loadgen.snapshot import Snapshot
from loadgen.telemetry import Telemetry


@dataclass(frozen=True)
class Result:
    """What a run found.

    Attributes:
        data: The result as saved: `vllm bench serve`'s keys, and loadgen's own under "loadgen".
        snapshot: The numbers it was made from.
    """

    data: dict[str, Any]
    snapshot: Snapshot

    @property
    def verdict(self) -> Verdict:
        """Whether to believe it."""
        return Verdict(self.data["loadgen"]["verdict"])

    def __str__(self) -> str:
        return report.render(self.data)


def conclude(heading: Heading, schedule: Schedule, measured: Measured) -> Result:
    """Check what was measured, and make the result."""
    evidence = Evidence(
        heading=heading,
        schedule=schedule,
        snapshot=measured.snapshot,
        client=measured.client,
        same_schedule=measured.schedule_sha256 == schedule.sha256,
        telemetry=measured.telemetry,
    )
    return Result(report.build(evidence, checks.examine(evidence)), measured.snapshot)


def from_records(path: str | Path, partial: str | None = None, folder: Path | None = None) -> Result:
    """The result of a run from the records it has left, complete or not; what only the process knew is n/a.

    Args:
        path: A file that --records or a run that ended early has written.
        partial: Why there is no more of it, if that is known.
        folder: Of the run, if it is still there: what servers said of themselves may be left in it.

    Raises:
        BadInput: It is no such file.
    """
    file = RecordFile(path)
    settings = file.heading.settings
    schedule = Schedule.from_settings(settings, seed_of(settings, "arrivals"), file.asked)
    recorder = recorders.of(settings, file.start_ns, file.scheduled)
    for record in file:
        recorder.add(record)
    client = Client()
    telemetry = Telemetry.left_in(folder, file.start_ns) if folder else Telemetry()
    if (ending := file.ending) is not None:
        partial, client, recorder.scheduled = ending.partial, ending.client, ending.scheduled
        telemetry = ending.telemetry
        recorder.counters["warm_connections"] = ending.warm_connections
        recorder.add_never_sent(ending.never_sent, Outcome.CANCELLED, partial or "")
        for name, histogram in ending.histograms.items():
            recorder.histograms[name].merge(histogram)
    elif partial is None:
        partial = f"{recorder.ended} of {file.scheduled} requests had ended when the records did"
    measured = Measured(recorder.snapshot(partial), file.heading.provenance["schedule"]["sha256"], client, telemetry)
    return conclude(file.heading, schedule, measured)


def left_by(died: WorkerDied, records: str | Path | None, folder: Path) -> Result:
    """What a measuring process that died has left of its run, in its records and in its folder.

    Raises:
        WorkerDied: Nothing.
    """
    try:
        if records is not None:
            return from_records(records, str(died), folder)
    except BadInput:
        pass
    raise WorkerDied(f"{died}: nothing of the run is left") from died
