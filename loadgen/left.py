"""Left: what workers have left of a run in their records, as if they had brought it back."""

from dataclasses import replace
from functools import reduce

from loadgen import pieces, recorders, requests
from loadgen.errors import BadInput, WorkerDied
from loadgen.measurement import Job, Measured
from loadgen.outcomes import Outcome
from loadgen.records import RecordFile
from loadgen.schedule import Schedule
from loadgen.settings import RunSettings, seed_of
from loadgen.shard import Shard
from loadgen.stripe import Stripe

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
    for number in range(len(found[0].shards), file.stripe.of):
        path = pieces.piece(file.path, number)
        if path.exists():
            found.append(_by_worker(RecordFile(path), schedule, seen=seen))
        else:
            found.append(_nothing(file.heading.settings, schedule, file.start_ns, Stripe(number, file.stripe.of)))
    whole = reduce(Measured.merge, found)
    if whole.snapshot.partial is None and file.ending is None:
        partial = f"{whole.snapshot.ended} of {file.scheduled} requests had ended when the records did"
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
    schedule = Schedule.from_settings(settings, seed_of(settings, "arrivals"), requests.asked(job.folder))
    try:
        if job.records is not None:
            return _by_worker(RecordFile(job.records), schedule, died=died)
    except BadInput:
        pass
    stripes = [job.stripe.split(number, workers) for number in range(workers)]
    return reduce(Measured.merge, [_nothing(settings, schedule, start_ns, stripe, died) for stripe in stripes])


def _by_worker(
    file: RecordFile, schedule: Schedule, *, seen: set[int] | None = None, died: WorkerDied | None = None
) -> Measured:
    """What stands in one file, but for the numbers of requests that were `seen` before."""
    ending, stripe, seen = file.ending, file.stripe, set() if seen is None else seen
    recorder = recorders.of(file.heading.settings, file.start_ns, len(schedule.stripe(stripe.number, stripe.of)[0]))
    for record in file:
        if record.index not in seen:
            seen.add(record.index)
            recorder.add(record)
    if ending is None:
        sha256 = file.heading.provenance["schedule"]["sha256"]
        shard = Shard(number=stripe.number, schedule_sha256=sha256, lost=died.how if died else None)
        return Measured(recorder.snapshot(str(died) if died else None), (shard,))
    recorder.scheduled = ending.scheduled
    recorder.counters["warm_connections"] = ending.warm_connections
    for first, count in ending.never_sent:
        recorder.add_never_sent(first, count, Outcome.CANCELLED, ending.partial or "")
    for name, histogram in ending.histograms.items():
        recorder.histograms[name].merge(histogram)
    return Measured(
        recorder.snapshot(ending.partial), ending.shards, ending.never_sent, ending.tokenized, ending.telemetry
    )


def _nothing(
    settings: RunSettings, schedule: Schedule, start_ns: int, stripe: Stripe, died: WorkerDied | None = None
) -> Measured:
    """All of a stripe is missing."""
    recorder = recorders.of(settings, start_ns, len(schedule.stripe(stripe.number, stripe.of)[0]))
    shard = Shard(number=stripe.number, lost=died.how if died else NOTHING)
    return Measured(recorder.snapshot(str(died) if died else None), (shard,))
