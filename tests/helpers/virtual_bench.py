"""A bench in virtual time: carries out the runs that a search asks for, each against a server of
its own.
"""

import asyncio
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from loadgen.analysis.search.early_stop import StopRule
from loadgen.config.settings import RunSettings, seed_of
from loadgen.core.record import Record
from loadgen.metrics.recorder import Recorder
from loadgen.metrics.records.file import RecordWriter, write_trailer
from loadgen.metrics.records.trailer import RunTrailer
from loadgen.metrics.snapshot import LoopTotals
from loadgen.runner.run_result import Result
from loadgen.testing.memory import Server
from loadgen.workload.arrivals import Schedule
from tests.helpers import run_facts, saved_json
from tests.helpers.virtual_runs import START_NS, carried_out


def write(
    path: Path,
    records: list[Record],
    settings: RunSettings,
    schedule: Schedule,
    *,
    ends: bool = True,
) -> None:
    with RecordWriter.optional(path) as writer:
        assert writer is not None
        writer.begin(run_facts.heading(settings, schedule), START_NS, schedule.count, [])
        for record in sorted(records, key=lambda record: record.closed):
            writer.write(record)
    if ends:
        trailer = RunTrailer(workers=(run_facts.shard(schedule),))
        write_trailer(path, trailer, LoopTotals.of(Recorder(START_NS, len(records)).snapshot()))


class Bench:
    """Carries out runs in virtual time, each against a server of its own.

    Args:
        server: Makes it; of the schedule of the run where it takes one.
        distort: Changes the result of a run.
        lateness_ns: By which the client's alarms ring late, one after the other.

    Attributes:
        asked: The settings of each run.
    """

    def __init__(
        self,
        server: Callable[..., Server],
        *,
        distort: Callable[[Any], object] = lambda data: None,
        lateness_ns: Callable[[], Iterator[int]] | None = None,
    ) -> None:
        self._server, self._distort, self._lateness_ns = server, distort, lateness_ns
        self.asked: list[RunSettings] = []

    async def measure(self, settings: RunSettings, name: str, stop: StopRule) -> Result:
        self.asked.append(settings.checked())
        assert settings.records is not None
        assert Path(settings.records).name == f"{name}.records.jsonl"
        schedule = Schedule.from_settings(settings, seed_of(settings, "arrivals"))
        server = (
            self._server(schedule) if inspect.signature(self._server).parameters else self._server()
        )
        lateness_ns = self._lateness_ns() if self._lateness_ns else None
        # A loop runs here already.
        run = await asyncio.to_thread(
            carried_out, server, schedule, settings, lateness_ns=lateness_ns
        )
        write(Path(settings.records), run.records, settings, schedule)
        data = run.result
        self._distort(data)
        return saved_json.with_snapshot(data, run.snapshot)
