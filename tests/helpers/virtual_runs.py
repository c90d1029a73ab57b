"""Carries out whole runs in virtual time, against servers in memory: pacer, wire, recorder, checks
and report are real.

Times that tests state are ns after the start of the run's clock.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from loadgen.client.load_loop import Load
from loadgen.config.settings import RunSettings
from loadgen.core.pacer import Pacer
from loadgen.core.record import Record
from loadgen.metrics.recorder import Recorder
from loadgen.metrics.records.trailer import RunTrailer
from loadgen.metrics.run_data import Measurement
from loadgen.metrics.snapshot import Snapshot
from loadgen.runner.run_result import conclude
from loadgen.testing import virtual
from loadgen.testing.memory import Memory, Server
from loadgen.util.clock import Clock
from loadgen.util.partition import Partition
from loadgen.workload import request_store
from loadgen.workload.arrivals import Schedule
from loadgen.workload.endpoints.generation import CHAT
from loadgen.workload.prompt import Prompt
from loadgen.workload.target import Target
from tests.helpers import run_facts

US, MS, S = 1_000, 1_000_000, 1_000_000_000
TARGET = Target("http://memory/v1/chat/completions", "m", CHAT)
START_NS = virtual.EPOCH_NS + S


@dataclass(frozen=True)
class Run:
    """What a run left."""

    settings: RunSettings
    schedule: Schedule
    snapshot: Snapshot
    records: list[Record]  # in the order of the schedule

    @cached_property
    def result(self) -> dict[str, Any]:
        """The result as it would be saved."""
        heading = run_facts.heading(self.settings, self.schedule)
        trailer = RunTrailer(workers=(run_facts.shard(self.schedule),))
        return conclude(heading, self.schedule, Measurement(self.snapshot, trailer)).data

    @property
    def own(self) -> dict[str, Any]:
        """loadgen's own part of the result."""
        own: dict[str, Any] = self.result["loadgen"]
        return own


def carried_out(
    server: Server,
    schedule: Schedule,
    settings: RunSettings | None = None,
    *,
    stripe: tuple[int, int] = (0, 1),
    lateness_ns: Iterator[int] | None = None,
    prompts: Sequence[Prompt] = (Prompt("Hello?", 2, 1, "test/0"),),
    meanwhile: Callable[[Load], None] = lambda load: None,
) -> Run:
    """Carry out a schedule, or a stripe (i, n) of it; the i-th alarm of the pacer rings late by the
    i-th lateness.

    Requests are those of `prompts`, again and again; `meanwhile` is called in the loop before the
    clock starts.
    """
    settings = settings or RunSettings(request_rate=1.0)
    partition = Partition(*stripe)
    own = schedule.stripe(*stripe)
    records: list[Record] = []
    recorder = Recorder.from_settings(settings, START_NS, len(own.numbers))

    async def main() -> None:
        clock = virtual.clock()
        pacing = clock if lateness_ns is None else _late(clock, lateness_ns)
        with tempfile.TemporaryDirectory() as folder:
            request_store.write(Path(folder), prompts, TARGET.body, dict, len(prompts))
            with request_store.Requests(Path(folder)) as bodies:
                network = Memory(server, clock)
                load = Load(
                    settings,
                    network,
                    bodies,
                    recorder,
                    own,
                    pacing,
                    on_record=records.append,
                    partition=partition,
                )
                meanwhile(load)
                await load.run()

    virtual.run(main())
    return Run(
        settings, schedule, recorder.snapshot(), sorted(records, key=lambda record: record.index)
    )


def _late(clock: Clock, lateness_ns: Iterator[int]) -> Clock:
    def alarm(loop: Any, callback: Callable[[], object]) -> Any:
        def ring() -> None:
            virtual.spend(next(lateness_ns))
            callback()

        paces = isinstance(getattr(callback, "__self__", None), Pacer)
        return clock.alarm(loop, ring if paces else callback)

    return replace(clock, alarm=alarm)
