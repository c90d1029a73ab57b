"""Runs that are compared: their results and records, made of requests whose latencies a test
states in its head.
"""

import pickle
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from loadgen import report
from loadgen.config.settings import RunSettings, seed_of
from loadgen.core.record import Record
from loadgen.metrics.recorder import Recorder
from loadgen.metrics.records.file import RecordWriter, write_trailer
from loadgen.metrics.records.trailer import RunTrailer
from loadgen.metrics.run_data import Measurement
from loadgen.metrics.snapshot import LoopTotals
from loadgen.runner.run_result import conclude
from loadgen.util.partition import WHOLE, Partition
from loadgen.workload.arrivals import Schedule
from tests.helpers import run_facts
from tests.helpers.run_facts import MS, START

SETTINGS = RunSettings(request_rate=20.0, num_prompts=200)
FEW = SETTINGS.replace(num_prompts=20)


def saved(path: Path, *, ttft: float = 20.0, settings: RunSettings = FEW, **changes: Any) -> str:
    """A result whose requests all had this TTFT, ms, and gaps of half of it; `changes` are of
    `loadgen` in it.
    """
    path.write_text(
        report.to_json(result(path.stem, ttft=ttft, settings=settings, **changes)) + "\n"
    )
    return str(path)


def result(
    date: str, *, ttft: float = 20.0, settings: RunSettings = FEW, **changes: Any
) -> dict[str, Any]:
    """The same as it is in memory. It has no single requests, as of a run of many."""
    options = {
        name: changes.pop(name)
        for name in ("engine", "model", "prompts", "simulated")
        if name in changes
    }
    data: dict[str, Any] = pickle.loads(_pickled_result(pickle.dumps((ttft, settings, options))))
    data["date"] = date
    data["loadgen"] |= {"request_sample": None} | changes
    return data


@lru_cache(maxsize=256)
def _pickled_result(run: bytes) -> bytes:
    """Make the result of a run once: many tests compare the same runs, and none may change what
    others get.
    """
    ttft, settings, options = pickle.loads(run)
    schedule = _schedule(settings)
    records = _requests(schedule, np.full(schedule.count, ttft))
    return pickle.dumps(run_facts.result(list(records), settings, schedule=schedule, **options))


def unanswered(path: Path, settings: RunSettings = FEW) -> str:
    """A result of which no request succeeded."""
    schedule = _schedule(settings)
    failures = [
        run_facts.failed(index, due=int(due_ns) / MS)
        for index, due_ns in enumerate(schedule.due_ns)
    ]
    data: dict[str, Any] = run_facts.result(failures, settings, schedule=schedule)
    path.write_text(report.to_json(data | {"date": path.stem}) + "\n")
    return str(path)


def starts(folder: Path, *ttfts: float, **options: Any) -> str:
    """A folder of a result for each TTFT."""
    folder.mkdir()
    for number, ttft in enumerate(ttfts):
        saved(folder / f"{folder.name}-{number}.json", ttft=ttft, **options)
    return str(folder)


def recorded(
    path: Path,
    *,
    factor: float = 1.0,
    seed: int = 0,
    settings: RunSettings = SETTINGS,
    partition: Partition = WHOLE,
) -> str:
    """Records of a run whose TTFTs are drawn, exponential with a mean of 20 ms times a factor,
    beyond 5 ms. Those of a partition are the journal of a worker whose run was killed.
    """
    schedule = _schedule(settings)
    drawn = factor * (5 + np.random.default_rng(seed).exponential(15.0, schedule.count))
    records = _requests(schedule, drawn)
    if partition == WHOLE:
        return kept(path, records, schedule, settings)
    with RecordWriter.optional(path) as writer:
        assert writer is not None
        heading = run_facts.heading(settings, schedule)
        writer.begin(heading, START, schedule.count, [], None, partition)
        for record in islice(records, partition.index, None, partition.count):
            writer.write(record)
    return str(path)


def kept(
    path: Path,
    records: Iterable[Record],
    schedule: Schedule,
    settings: RunSettings = SETTINGS,
    *,
    scheduled: int | None = None,
) -> str:
    """Records, as lines of JSON, of a run that came to its end; `scheduled` says how many it turned
    out to be that were to be sent.
    """
    heading = run_facts.heading(settings, schedule)
    recorder = Recorder.from_settings(
        settings, START, schedule.count if scheduled is None else scheduled
    )
    with RecordWriter.optional(path) as writer:
        assert writer is not None
        writer.begin(heading, START, schedule.count, [])
        for record in records:
            recorder.add(record)
            writer.write(record)
    measurement = Measurement(recorder.snapshot(), RunTrailer(workers=(run_facts.shard(schedule),)))
    write_trailer(path, measurement.trailer, LoopTotals.of(measurement.snapshot), str(path))
    conclude(heading, schedule, measurement)
    return str(path)


def _schedule(settings: RunSettings) -> Schedule:
    return Schedule.from_settings(settings, seed_of(settings, "arrivals"))


def _requests(schedule: Schedule, ttfts: Any) -> Iterator[Record]:
    for index, (due_ns, ttft) in enumerate(zip(schedule.due_ns, ttfts, strict=True)):
        yield run_facts.steady(
            index, due=int(due_ns) / MS, ttft=float(ttft), gap=float(ttft) / 2, n=4
        )


def server(preemptions: float) -> dict[str, Any]:
    """The server's part of a result, with little in it."""
    return {
        "sources": [],
        "gpus": [],
        "gpu_levels": [],
        "covers_run": True,
        "restarts": 0,
        "levels": {
            level: {"mean": None, "max": None} for level in ("running", "waiting", "kv_usage")
        },
        "counts": {
            "requests": None,
            "prompt_tokens": None,
            "generation_tokens": None,
            "preemptions": preemptions,
        },
        "prefix_hit_rate": 0.5,
        "spec_acceptance": None,
        "ttft_ms": None,
        "output_tokens": {"server": None, "ours": 0},
    }
