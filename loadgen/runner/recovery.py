"""Left: what workers have left of a run in their records, as if they had brought it back."""

from dataclasses import replace
from functools import reduce

from loadgen.config.settings import RunSettings, seed_of
from loadgen.core.outcome import Outcome
from loadgen.errors import BadInput, WorkerDied
from loadgen.metrics import per_target
from loadgen.metrics.client_usage import Client
from loadgen.metrics.records import shards as pieces
from loadgen.metrics.records.file import RecordFile
from loadgen.metrics.worker_report import Shard
from loadgen.runner.measurement import Job, Measured
from loadgen.util.partition import Partition
from loadgen.workload import request_store
from loadgen.workload.arrivals import Schedule, is_bounded_by_time

NOTHING = "left no records"


def by_all(file: RecordFile, schedule: Schedule) -> Measured:
    """What a run has left, in one file, or still in one for each of its workers.

    Args:
        file: In which the records are, or were to be put together.
        schedule: Of the run.

    Raises:
        BadInput: A line of it is no record.
    """
    seen: set[int] = set()  # what was put together last may stand in a part still
    found = [_by_worker(file, schedule, seen=seen)]
    for number in range(len(found[0].shards), file.stripe.count):
        path, stripe = pieces.piece(file.path, number), Partition(number, file.stripe.count)
        if path.exists():
            found.append(_by_worker(RecordFile(path), schedule, seen=seen))
        else:
            found.append(_without_file(file, schedule, stripe, seen))
    whole = reduce(Measured.merge, found)
    if whole.snapshot.partial is None and file.ending is None:
        of = "" if is_bounded_by_time(file.heading.settings) else f" of {file.scheduled}"
        partial = f"{whole.snapshot.ended}{of} requests had ended when the records did"
        whole = replace(whole, snapshot=replace(whole.snapshot, partial=partial))
    return whole


def by_one(job: Job, workers: int, start_ns: int, died: WorkerDied) -> Measured:
    """What a part has left that died while the clock ran; nothing where it kept no records.

    Args:
        job: What it had to do.
        workers: How many shared it.
        start_ns: When the clock started.
        died: How it did.
    """
    settings = job.settings
    schedule = Schedule.from_settings(settings, seed_of(settings, "arrivals"), request_store.asked(job.folder))
    try:
        if job.records is not None:
            return _by_worker(RecordFile(job.records), schedule, died=died)
    except BadInput:
        pass
    stripes = [job.stripe.split(number, workers) for number in range(workers)]
    shards = [Shard(number=stripe.index, lost=died.how) for stripe in stripes]
    missing = [_nothing(settings, schedule, start_ns, *one, str(died)) for one in zip(stripes, shards, strict=True)]
    return reduce(Measured.merge, missing)


def _by_worker(
    file: RecordFile, schedule: Schedule, *, seen: set[int] | None = None, died: WorkerDied | None = None
) -> Measured:
    """What stands in one file, but for the numbers of requests that were `seen` before."""
    ending, stripe, seen = file.ending, file.stripe, set() if seen is None else seen
    recorder = per_target.of(file.heading.settings, file.start_ns, _scheduled(file.heading.settings, schedule, stripe))
    unread, asked = None, _Asked(file)
    try:
        for told, record in file.told():
            if record.index not in seen:
                seen.add(record.index)
                recorder.add(record)
                if ending is not None and record.index in ending.sampled:
                    recorder.add_sample(record, ending.sampled[record.index])
                asked.add(record.index, told.get("source"))
    except BadInput as error:
        if died is None:
            raise
        unread = error.problem
    if ending is None:
        if is_bounded_by_time(file.heading.settings):
            recorder.scheduled = recorder.ended
            recorder.counters["repeated_prompts"] = asked.again
        shard = Shard(
            number=stripe.index,
            client=Client(records_error=unread),
            schedule_sha256=_schedule_sha256(file),
            lost=died.how if died else None,
        )
        return Measured(recorder.snapshot(str(died) if died else None), (shard,))
    recorder.scheduled = ending.scheduled
    recorder.counters["warm_connections"] = ending.warm_connections
    recorder.counters["repeated_prompts"] = ending.repeated_prompts
    for first, count in ending.never_sent:
        recorder.add_never_sent(first, count, Outcome.CANCELLED, ending.partial or "")
    for name, histogram in ending.histograms.items():
        recorder.histograms[name].merge(histogram)
    return Measured(
        recorder.snapshot(ending.partial),
        ending.shards,
        ending.never_sent,
        ending.tokenized,
        ending.sampled,
        ending.telemetry,
        ending.no_answer_since_s,
    )


def _without_file(file: RecordFile, schedule: Schedule, stripe: Partition, seen: set[int]) -> Measured:
    """What is to be added for a stripe that has no file of its own: it was put together with the first, or is lost."""
    together = not seen.isdisjoint(schedule.stripe(stripe.index, stripe.count)[0].tolist())
    shard = Shard(number=stripe.index, lost=NOTHING)
    if together:
        shard = Shard(number=stripe.index, schedule_sha256=_schedule_sha256(file))
    return _nothing(file.heading.settings, schedule, file.start_ns, stripe, shard)


def _schedule_sha256(file: RecordFile) -> str | None:
    sha256: str | None = file.heading.provenance["schedule"]["sha256"]
    return sha256


def _nothing(
    settings: RunSettings,
    schedule: Schedule,
    start_ns: int,
    stripe: Partition,
    shard: Shard,
    partial: str | None = None,
) -> Measured:
    """A stripe of which nothing is left, or nothing but what has been counted already."""
    recorder = per_target.of(settings, start_ns, _scheduled(settings, schedule, stripe))
    return Measured(recorder.snapshot(partial), (shard,))


def _scheduled(settings: RunSettings, schedule: Schedule, stripe: Partition) -> int:
    """How many requests of a stripe were to be sent; where time alone bounds them, none until it has ended."""
    return 0 if is_bounded_by_time(settings) else len(schedule.stripe(stripe.index, stripe.count)[0])


class _Asked:
    """Counts the requests beyond those prepared at first that asked what another had asked, by their sources."""

    def __init__(self, file: RecordFile) -> None:
        about = file.heading.provenance["prompts"]
        self._prepared = about["requests"] if about.get("further") else None
        self._sources: set[str] = set()
        self.again = 0

    def add(self, index: int, source: str | None) -> None:
        """The next one."""
        if self._prepared is None or source is None:
            return
        self.again += index >= self._prepared and source in self._sources
        self._sources.add(source)
