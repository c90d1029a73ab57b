"""Carries out whole runs on the clock against a scripted server, and reads back what each request went through."""

from pathlib import Path
from typing import Any

from loadgen.measurement import Measured, Measurement
from tests.faults.records import recorded
from tests.faults.test_load import carried_out, job, prepared

PATIENCE_S = 30  # a client that holds requests back would wait for ever


async def measured(url: str, folder: Path, count: int, **settings: Any) -> tuple[Measured, list[dict[str, Any]]]:
    """The run, and its records in the order of the schedule; `due` counts from the run's start, the rest from due."""
    path = folder / "records"
    found = await carried_out(Measurement(job(url, folder, count, records=str(path), **settings), prepared()))
    return found, recorded(path)
