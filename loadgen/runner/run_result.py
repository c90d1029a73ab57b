"""Results: the result of a run, made from its measurement or its records, or read from a file.

From records, the measurement of a run, or of a worker of it, is recovered after processes have
died.
"""

import contextlib
from collections.abc import Iterable, Iterator
from functools import reduce
from pathlib import Path
from typing import Any

from msgspec import structs

from loadgen import checks, report
from loadgen.config.option import check_type
from loadgen.config.settings import RunSettings, is_bounded_by_time, seed_of
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.errors import BadInput, WorkerDied
from loadgen.explanation.explainer import explain
from loadgen.metrics import parted_recorder, streamed_tokens
from loadgen.metrics.client_cpu_usage import ClientUsage
from loadgen.metrics.records.file import RecordFile
from loadgen.metrics.records.header import RunHeader
from loadgen.metrics.records.shards import further_shards, shard_path
from loadgen.metrics.records.trailer import RunTrailer, WorkerReport
from loadgen.metrics.run_data import Measurement, RunData
from loadgen.metrics.snapshot import LoopTotals, Snapshot
from loadgen.report.result import RunResult
from loadgen.runner.job import Job
from loadgen.util import files
from loadgen.util.partition import Partition
from loadgen.workload import request_store
from loadgen.workload.arrivals import Schedule
from loadgen.workload.due_times import DueTimes

NOTHING = "left no records"


class SavedResult(RunResult, frozen=True, kw_only=True):
    """The result of a run as it is saved, and as `load` returns it: all but the snapshot.

    `str` gives the report.
    """

    def save(self, path: str | Path) -> None:
        """Write the JSON to a file, as `save_result` does; the file is complete or not written at
        all.

        Raises:
            BadInput: It cannot be written.
        """
        # The columns have answers of the server.
        report.write_json(path, self.data, private=self.columns is not None)

    def __str__(self) -> str:
        return report.render(self, form="block")

    def __repr__(self) -> str:
        return f"<loadgen.{type(self).__name__}: {report.summary_line(self)}>"

    def _repr_html_(self) -> str:
        # Not before: it imports the charts of pages.
        from loadgen.report.ci_summary import notebook_html

        return notebook_html(self)


class Result(SavedResult, frozen=True, kw_only=True):
    """The result of a run, and the snapshot that it was made from.

    Attributes:
        snapshot: The histograms, counts and times of the run.
    """

    snapshot: Snapshot

    def assert_slo(self, limits: str) -> None:
        """Raise unless the run meets all of these limits, whatever `slo` the run was asked to meet.

        Args:
            limits: As `slo` has them: "ttft_p99<500ms,error_rate<1%".

        Raises:
            AssertionError: It misses some: each of them, with its value and the 99 % interval of a
                percentile.
            BadInput: A limit is not understood.
        """
        __tracebackhide__ = True  # pytest shows the caller
        missed = list(report.describe_misses(limits, self.snapshot, self.latency_from))
        if missed:
            raise AssertionError("\n".join(missed))


def conclude(
    header: RunHeader,
    schedule: DueTimes,
    measurement: Measurement,
    records: Iterable[Record] = (),
) -> Result:
    """Check the measurement of a run, and make its result.

    Args:
        header: What the run is.
        schedule: Its due times.
        measurement: What was measured.
        records: Its records, by which it is explained; empty: it kept none.
    """
    snapshot = streamed_tokens.with_sampled_tpot(measurement.snapshot)
    data = RunData(header=header, schedule=schedule, snapshot=snapshot, trailer=measurement.trailer)
    explained = None
    with contextlib.suppress(BadInput):  # a record that cannot be read costs no result
        explained = explain(records, measurement.trailer.telemetry, closed_loop=data.closed_loop)
    return Result.of(data, checks.examine(data), snapshot=snapshot, explain=explained)


def kept_records(path: Path | None, measurement: Measurement) -> Iterable[Record]:
    """Return the records of a run that has just ended; nothing where they are not complete.

    Args:
        path: Where they were to be written, or None.
        measurement: What was measured.
    """
    if path is None or measurement.trailer.records_error or not path.is_file():
        return ()
    with contextlib.suppress(BadInput):
        return RecordFile(path)
    return ()


def from_records(path: str | Path) -> Result:
    """Make the result of a run from its records, complete or not; what only the processes knew is
    n/a.

    If the run was killed before it could write its records as lines of JSON, they are written now;
    not where the journal of a worker is missing.

    Args:
        path: A file that --records or a run that ended early has written.

    Raises:
        BadInput: It is not such a file.
    """
    check_type("path", path, str | Path, "give the path of a file")
    path = Path(path)
    # Before the file is read: what is not locked gets no further row.
    goes_on = any(files.is_locked(shard) for shard in (path, *further_shards(path)))
    file = RecordFile(path)
    settings = file.header.settings
    schedule = Schedule.from_settings(settings, seed_of(settings, "arrivals"), file.asked_due)
    measurement = recover_run(file, schedule)
    workers = [part.partition.index for part in file.parts()]
    is_whole = not goes_on and workers == [*range(file.partition.count)]
    # Before the journals are replaced.
    result = conclude(file.header, schedule, measurement, file)
    if is_whole and file.is_journal and settings.records:
        totals = LoopTotals.of(measurement.snapshot)
        with contextlib.suppress(OSError):  # where it lies, nothing may be written
            file.write_lines(file.path, measurement.trailer, totals)
    return result


def read(path: str | Path) -> list[dict[str, Any]]:
    """Read the results in a file: a saved one, the several of --append-result, or that of a file of
    records.

    Returns:
        The JSON as it was saved; `report.from_dict` converts it to its type.

    Raises:
        BadInput: It cannot be read, or holds none.
    """
    return [from_records(path).data] if RecordFile.is_one(path) else report.load(str(path))


@contextlib.contextmanager
def whole(where: str) -> Iterator[None]:
    """Refuse, in the block, a result in which something is missing that it had when it was saved.

    Args:
        where: It was read.

    Raises:
        BadInput: Something is missing.
    """
    try:
        yield
    except (ArithmeticError, AttributeError, BadInput, LookupError, TypeError, ValueError) as error:
        problem = f"{where} is not a whole loadgen result ({type(error).__name__}: {error})"
        raise BadInput(
            (), problem, "name a result as it was saved, or a file of records"
        ) from error


def recover_run(file: RecordFile, schedule: DueTimes) -> Measurement:
    """Recover a run from its records.

    Args:
        file: The records.
        schedule: The schedule of the run.

    Raises:
        BadInput: A line or row of a file is no record.
    """
    if file.is_of_whole_run:
        return _recover_file(file, schedule, file)
    files_left = list(file.parts())
    parts = [_recover_file(part, schedule, part.own_records()) for part in files_left]
    count = file.partition.count
    for index in sorted({*range(count)} - {part.partition.index for part in files_left}):
        report = WorkerReport(number=index, lost=NOTHING)
        partition = Partition(index, count)
        parts.append(_empty(file.header.settings, schedule, file.start_ns, partition, report))
    whole = reduce(Measurement.merge, parts)
    if whole.snapshot.partial is None and file.trailer is None:
        of = "" if is_bounded_by_time(file.header.settings) else f" of {file.scheduled}"
        partial = f"{whole.snapshot.ended}{of} requests had ended when the records stopped"
        whole = structs.replace(whole, snapshot=structs.replace(whole.snapshot, partial=partial))
    return whole


def recover_worker(job: Job, workers: int, start_ns: int, died: WorkerDied) -> Measurement:
    """Recover the measurement of a participant that died while the clock ran; empty if it kept no
    records.

    Args:
        job: The job of the participant.
        workers: Number of loops that shared it.
        start_ns: When the clock started, ns of CLOCK_MONOTONIC.
        died: How it died.
    """
    schedule = request_store.schedule(job.folder)
    parts = []
    for partition in (job.partition.split(index, workers) for index in range(workers)):
        report = WorkerReport(number=partition.index, lost=died.how)
        part = _empty(job.settings, schedule, start_ns, partition, report, str(died))
        if job.records is not None:
            with contextlib.suppress(BadInput):
                file = RecordFile(shard_path(job.records, partition.index))
                part = _recover_file(file, schedule, file.own_records(), died)
        parts.append(part)
    return reduce(Measurement.merge, parts)


def _recover_file(
    file: RecordFile,
    schedule: DueTimes,
    records: Iterable[Record],
    died: WorkerDied | None = None,
) -> Measurement:
    """Recover what was measured from records of which a file tells the header and the trailer."""
    settings = file.header.settings
    trailer = file.trailer
    recorder = parted_recorder.recorder_for(
        settings, file.start_ns, _scheduled(settings, schedule, file.partition)
    )
    sampled = {} if trailer is None else trailer.sampled
    unread = None
    repeated = _RepeatedPrompts(file)
    try:
        for record in records:
            recorder.add(record)
            if record.index in sampled:
                recorder.add_sample(record, sampled[record.index])
            repeated.add(record.index, record.source)
    except BadInput as error:
        if died is None:
            raise
        unread = error.problem
    if trailer is not None and file.totals is not None:
        recorder.restore(file.totals)
        for first, count in trailer.never_sent:
            recorder.add_never_sent(first, count, Outcome.CANCELLED, file.totals.partial or "")
        return Measurement(recorder.snapshot(file.totals.partial), trailer)
    if is_bounded_by_time(settings):
        recorder.scheduled = recorder.ended
        recorder.counters["repeated_prompts"] = repeated.count
    report = WorkerReport(
        number=file.partition.index,
        client=ClientUsage(records_error=unread),
        schedule_sha256=file.header.provenance["schedule"]["sha256"],
        lost=died.how if died else None,
    )
    return Measurement(
        recorder.snapshot(str(died) if died else None), RunTrailer(workers=(report,))
    )


def _empty(
    settings: RunSettings,
    schedule: DueTimes,
    start_ns: int,
    partition: Partition,
    report: WorkerReport,
    partial: str | None = None,
) -> Measurement:
    """Make the part of a partition of which nothing is left, or nothing that was not counted
    already.
    """
    recorder = parted_recorder.recorder_for(
        settings, start_ns, _scheduled(settings, schedule, partition)
    )
    return Measurement(recorder.snapshot(partial), RunTrailer(workers=(report,)))


def _scheduled(settings: RunSettings, schedule: DueTimes, partition: Partition) -> int:
    """Return how many requests of a partition were to be sent; 0 where time alone bounds them."""
    return (
        0
        if is_bounded_by_time(settings)
        else len(schedule.stripe(partition.index, partition.count).numbers)
    )


class _RepeatedPrompts:
    """Counts the requests beyond those prepared at first that repeat the prompt of another, by
    their sources.

    Attributes:
        count: Number of such requests so far.
    """

    def __init__(self, file: RecordFile) -> None:
        about = file.header.provenance["prompts"]
        self._prepared = about["requests"] if about.get("further") else None
        self._sources: set[str] = set()
        self.count = 0

    def add(self, index: int, source: str | None) -> None:
        """Count the request with this number."""
        if self._prepared is None or source is None:
            return
        if index >= self._prepared and source in self._sources:
            self.count += 1
        self._sources.add(source)
