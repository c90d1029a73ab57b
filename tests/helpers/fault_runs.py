"""Carries out whole runs on the clock, and reads back what each request went through."""

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from loadgen.config.settings import RunSettings, seed_of
from loadgen.core.record import Record
from loadgen.metrics.records.file import RecordFile
from loadgen.metrics.records.header import RunHeader
from loadgen.metrics.run_data import Measurement
from loadgen.runner.coordinator import coordinate
from loadgen.runner.job import Job
from loadgen.runner.loop_runner import LoopRunner
from loadgen.workload import request_store
from loadgen.workload.arrivals import Schedule
from loadgen.workload.prompt import Prompt
from tests.helpers.fault_requests import target

PATIENCE_S = 30  # a run that holds requests back would wait for ever


def job(url: str, folder: Path, count: int, fault: str | None = None, **settings: Any) -> Job:
    """`count` requests of two tokens, all of which meet `fault`; their bodies lie in `folder`."""
    asked = target(url, fault)
    prompts = [Prompt("Hello?", 2, 2, f"test/{number}") for number in range(count)]
    request_store.write(folder, prompts, asked.body, dict, count)
    made = RunHeader(RunSettings(num_prompts=count, **settings), "m", "", False, {})
    schedule = Schedule.from_settings(made.settings, seed_of(made.settings, "arrivals"))
    request_store.write_schedule(folder, schedule)
    if off_record := request_store.warmup_count(made.settings):
        with request_store.RequestFiles(folder, asked.body, request_store.WARMUP_PREFIX) as files:
            files.add(
                [Prompt("Ready?", 2, 2, f"test/rehearsal/{number}") for number in range(off_record)]
            )
    return Job(
        made, (asked,), folder, records=Path(settings["records"]) if "records" in settings else None
    )


async def prepared() -> None:
    """The requests are there already."""


async def carried_out(
    runner: LoopRunner, given: Job, ready: Awaitable[None] | None = None
) -> Measurement:
    """What a runner measures, whose requests are there already unless `ready` says when."""
    async with asyncio.timeout(PATIENCE_S), runner:
        return await coordinate(runner, given, ready or prepared(), lambda progress: None)


async def run(given: Job) -> Measurement:
    return await carried_out(LoopRunner(), given)


async def run_recorded(
    url: str, folder: Path, count: int, **settings: Any
) -> tuple[Measurement, list[Record]]:
    """A run, and its records in the order of the schedule."""
    path = folder / "records"
    return await run(job(url, folder, count, records=str(path), **settings)), recorded(path)


def recorded(path: Path) -> list[Record]:
    """The records of a run in the order of its schedule."""
    return sorted(RecordFile(path), key=lambda record: record.index)
