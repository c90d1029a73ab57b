"""Recovers the measurement of a run, or of a worker of it, from its records, after processes have died."""

from dataclasses import replace
from functools import reduce

from loadgen.config.settings import RunSettings, is_bounded_by_time
from loadgen.core.outcome import Outcome
from loadgen.errors import BadInput, WorkerDied
from loadgen.metrics import parted_recorder
from loadgen.metrics.client_cpu_usage import ClientUsage
from loadgen.metrics.records.file import RecordFile
from loadgen.metrics.records.shards import shard_path
from loadgen.metrics.records.trailer import RunTrailer, WorkerReport
from loadgen.metrics.run_data import Measurement
from loadgen.runner.job import Job
from loadgen.util.partition import Partition
from loadgen.workload import request_store
from loadgen.workload.due_times import DueTimes

NOTHING = "left no records"


def recover_run(file: RecordFile, schedule: DueTimes) -> Measurement:
    """Recover a run from its records: one file, or still one for each of its workers.

    Args:
        file: The file that holds all records, or into which they were to be joined.
        schedule: The schedule of the run.

    Raises:
        BadInput: A line of a file is no record.
    """
    done: set[int] = set()  # a run that was killed while shards were joined has some records twice
    parts = [_recover_file(file, schedule, done=done)]
    for index in range(len(parts[0].trailer.workers), file.partition.count):
        path, partition = shard_path(file.path, index), Partition(index, file.partition.count)
        if path.exists():
            parts.append(_recover_file(RecordFile(path), schedule, done=done))
        else:
            parts.append(_without_file(file, schedule, partition, done))
    whole = reduce(Measurement.merge, parts)
    if whole.snapshot.partial is None and file.trailer is None:
        of = "" if is_bounded_by_time(file.header.settings) else f" of {file.scheduled}"
        partial = f"{whole.snapshot.ended}{of} requests had ended when the records stopped"
        whole = replace(whole, snapshot=replace(whole.snapshot, partial=partial))
    return whole


def recover_worker(job: Job, workers: int, start_ns: int, died: WorkerDied) -> Measurement:
    """Recover the part of a participant that died while the clock ran; it is empty where it kept no records.

    Args:
        job: The job of the participant.
        workers: How many loops shared it.
        start_ns: When the clock started.
        died: How it died.
    """
    schedule = request_store.schedule(job.folder)
    try:
        if job.records is not None:
            return _recover_file(RecordFile(job.records), schedule, died=died)
    except BadInput:
        pass
    partitions = [job.partition.split(index, workers) for index in range(workers)]
    parts = [
        _empty(
            job.settings,
            schedule,
            start_ns,
            partition,
            WorkerReport(number=partition.index, lost=died.how),
            str(died),
        )
        for partition in partitions
    ]
    return reduce(Measurement.merge, parts)


def _recover_file(
    file: RecordFile, schedule: DueTimes, *, done: set[int] | None = None, died: WorkerDied | None = None
) -> Measurement:
    """Recover what one file holds, without the requests whose numbers are `done`, to which its own are added."""
    settings, trailer, done = file.header.settings, file.trailer, set() if done is None else done
    recorder = parted_recorder.recorder_for(settings, file.start_ns, _scheduled(settings, schedule, file.partition))
    unread, repeated = None, _RepeatedPrompts(file)
    try:
        for data, record in file.lines():
            if record.index not in done:
                done.add(record.index)
                recorder.add(record)
                if trailer is not None and record.index in trailer.sampled:
                    recorder.add_sample(record, trailer.sampled[record.index])
                repeated.add(record.index, data.get("source"))
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
        schedule_sha256=_schedule_sha256(file),
        lost=died.how if died else None,
    )
    return Measurement(recorder.snapshot(str(died) if died else None), RunTrailer(workers=(report,)))


def _without_file(file: RecordFile, schedule: DueTimes, partition: Partition, done: set[int]) -> Measurement:
    """Recover a partition without a file of its own: it was joined with the first, or is lost."""
    was_joined = not done.isdisjoint(schedule.stripe(partition.index, partition.count).numbers)
    report = WorkerReport(number=partition.index, lost=NOTHING)
    if was_joined:
        report = WorkerReport(number=partition.index, schedule_sha256=_schedule_sha256(file))
    return _empty(file.header.settings, schedule, file.start_ns, partition, report)


def _schedule_sha256(file: RecordFile) -> str | None:
    sha256: str | None = file.header.provenance["schedule"]["sha256"]
    return sha256


def _empty(
    settings: RunSettings,
    schedule: DueTimes,
    start_ns: int,
    partition: Partition,
    report: WorkerReport,
    partial: str | None = None,
) -> Measurement:
    """Make the part of a partition of which nothing is left, or nothing that was not counted already."""
    recorder = parted_recorder.recorder_for(settings, start_ns, _scheduled(settings, schedule, partition))
    return Measurement(recorder.snapshot(partial), RunTrailer(workers=(report,)))


def _scheduled(settings: RunSettings, schedule: DueTimes, partition: Partition) -> int:
    """Return how many requests of a partition were to be sent; 0 where time alone bounds them."""
    return 0 if is_bounded_by_time(settings) else len(schedule.stripe(partition.index, partition.count).numbers)


class _RepeatedPrompts:
    """Counts the requests beyond those prepared at first that repeat the prompt of another, by their sources."""

    def __init__(self, file: RecordFile) -> None:
        about = file.header.provenance["prompts"]
        self._prepared = about["requests"] if about.get("further") else None
        self._sources: set[str] = set()
        self.count = 0

    def add(self, index: int, source: str | None) -> None:
        """Count the request with this number."""
        if self._prepared is None or source is None:
            return
        self.count += index >= self._prepared and source in self._sources
        self._sources.add(source)
