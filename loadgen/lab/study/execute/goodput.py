"""The search for the goodput of a running server: the highest rate that meets its limits."""

import math
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from loadgen.analysis.search.algorithm import End, SearchRange, find_highest_level
from loadgen.analysis.search.criteria import RequestShare
from loadgen.analysis.search.levels import RATE, Levels, Measure, format_level
from loadgen.analysis.search.search_bounds import SearchBounds
from loadgen.config.settings import RunSettings
from loadgen.errors import LoadgenError
from loadgen.lab.study.execute.workload_findings import Goodput
from loadgen.lab.study.spec.search_effort import Effort


async def search_goodput(
    measure: Measure, settings: RunSettings, limits: RequestShare, effort: Effort, *, folder: Path, start: float
) -> Goodput:
    """Find the highest rate that meets the limits.

    Each run lasts at least RUN_S, and has enough requests to decide the share that must be good.

    Args:
        measure: Makes a run, as for `Levels`.
        settings: Settings of the workload, with the server.
        limits: Limits to meet.
        effort: Resolution of the search.
        folder: Folder for the records.
        start: First rate, requests/s; the throughput of the workload itself is a good choice.

    Raises:
        LoadgenError: A run ended early or is invalid, or the client was the limit at every rate.
    """

    def records(name: str) -> AbstractContextManager[Path]:
        return nullcontext(folder / f"{name}.records.jsonl")

    bounds = SearchBounds(max_runs=effort.max_runs)
    levels = Levels(measure, settings, [limits], records, name="goodput", bounds=bounds)
    span = SearchRange(effort.resolution, levels.min_level, RATE.max_level)
    found = await find_highest_level(levels.run_level, start, span)
    notes = levels.notes + levels.disturbances
    if found.end is End.CLIENT:
        why = f"at {format_level(found.tried[-1][0])} requests/s {levels.runs[-1].why}"
        if not found.level:
            raise LoadgenError(why)
        notes.append(f"{why}, so that the search ended")
    return Goodput(
        rate=found.level,
        fails=found.fails if math.isfinite(found.fails) else None,
        end=str(End.FLOOR if found.end is End.CLIENT else found.end),
        tried=list(found.tried),
        attainment=limits.attainment,
        limits=limits.text,
        resolution=effort.resolution,
        runs=len(levels.runs),
        notes=notes,
    )
