"""Groups of participants: workers of one machine, or machines of a cluster. A group is a participant, too.

Light to import, as `participant` is.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from loadgen.metrics.progress import Progress
from loadgen.runner.participant import Participant, Step
from loadgen.util.tasks import gather_or_cancel

if TYPE_CHECKING:
    from loadgen.metrics.run_data import Measurement
    from loadgen.runner.job import Job


class Group(Participant):
    """Participants that take each step together: none takes a step before all have taken the one before.

    Args:
        workers: How many loops on each machine share it.
    """

    # Where one dies while the clock runs, the others send nothing more.

    job: "Job"

    def __init__(self, participants: Sequence[Participant], workers: int) -> None:
        self._participants, self.workers = participants, workers
        self._jobs: list[Job] = []

    async def begin(self, job: "Job") -> None:
        """Share the job among the participants."""
        self.job, self._jobs = job, self.shares(job)
        pairs = zip(self._participants, self._jobs, strict=True)
        await gather_or_cancel(participant.begin(own) for participant, own in pairs)

    def shares(self, job: "Job") -> "list[Job]":
        """Split a job into one for each participant; the coordinator alone scrapes server metrics."""
        from loadgen.metrics.records.shards import shard_path

        pids, count = [participant.pid for participant in self._participants], len(self._participants)
        return [
            replace(
                job,
                partition=job.partition.split(index, count),
                records=job.records and shard_path(job.records, index),
                scraping=None,
                sibling_pids=tuple(pid for pid in pids if pid not in (None, own)),
            )
            for index, own in enumerate(pids)
        ]

    async def take(self, step: Step) -> None:
        """Have all take the step."""
        await gather_or_cancel(participant.take(step) for participant in self._participants)

    async def carry_out(self, start_ns: int) -> "Measurement":
        """Have all send on one clock; merge what they measured, and join their records to one file."""
        from loadgen.metrics.records.shards import join_shards
        from loadgen.metrics.run_data import Measurement

        parts = await gather_or_cancel(self._carry_out_one(one, start_ns) for one in self._participants)
        whole = reduce(Measurement.merge, parts)
        paths = [own.records for own in self._jobs if own.records]
        return whole.with_records_error(await asyncio.to_thread(join_shards, paths)) if paths else whole

    def progress(self) -> Progress:
        """Return how far all are."""
        return Progress.together([participant.progress() for participant in self._participants])

    def stop(self, reason: str) -> None:
        """Stop all."""
        for participant in self._participants:
            participant.stop(reason)

    def abort(self, reason: str) -> None:
        """Abort all."""
        for participant in self._participants:
            participant.abort(reason)

    def release(self) -> None:
        """Release all."""
        for participant in self._participants:
            participant.release()

    def clear(self) -> None:
        """Remove shards of the records that are empty; call once all participants have ended."""
        from loadgen.metrics.records.shards import remove_empty_shards

        if self._jobs and self.job.records is not None:
            remove_empty_shards(self.job.records)

    async def _carry_out_one(self, participant: Participant, start_ns: int) -> "Measurement":
        """Have one carry out its job; where a worker of it was lost, the others stop."""
        measurement = await participant.carry_out(start_ns)
        if any(worker.lost for worker in measurement.trailer.workers):
            assert measurement.snapshot.partial is not None
            self.stop(measurement.snapshot.partial)
        return measurement
