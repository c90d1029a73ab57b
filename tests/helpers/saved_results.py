"""Makes results with a timeline, as they are saved, of runs that nobody has made."""

import math
from typing import Any

import numpy as np
import orjson
from msgspec import structs

from loadgen.checks import Check
from loadgen.config.settings import RunSettings
from loadgen.core.histogram import Histogram
from loadgen.core.outcome import Outcome
from loadgen.metrics.snapshot import Snapshot
from loadgen.report import to_json
from tests.helpers import run_facts, saved_json
from tests.helpers.server_scrapes import telemetry

CHECKS = (
    Check(
        "requests not ended once", True, "60 of 60", "one outcome for each", "report it", group="A"
    ),
    Check("lag p99", True, "0.100 ms", "1.000 ms", "free a core", group="B"),
    Check("targets fail unevenly", None, "n/a", "there is one target", "none needed", group="D"),
    Check(
        "too few for percentiles",
        False,
        "60 values are too few for p99",
        "662",
        "more",
        counts=False,
        group="D",
    ),
)
SUSPECT = Check("loop stalls", False, "4.1 ms", "0.8 ms", "free a core", group="C")
INVALID = Check(
    "engine lost",
    False,
    "killed by SIGKILL",
    "the same process",
    "read the engine's log",
    group="A",
)
SAID = telemetry(
    {"requests": 0, "generation_tokens": 0, "running": 0, "waiting": 0, "kv_usage": 0},
    {"requests": 60, "generation_tokens": 600, "running": 0, "waiting": 0, "kv_usage": 0},
    *({"running": 4 + n % 3, "waiting": n % 2, "kv_usage": 0.1 * n} for n in range(6)),
)


def timeline(
    columns: int = 24, width_s: float = 0.25, *, failed: tuple[int, ...] = ()
) -> dict[str, Any]:
    """A timeline of a run that goes up and down; these columns have two failures each."""
    wave = [round(10 + 6 * math.sin(number / 3)) for number in range(columns)]
    latency = [20.0 + 15 * math.sin(number / 4) for number in range(columns)]
    edges = [6.0 * 2 ** (row / 8) for row in range(17)]
    return {
        "width_s": width_s,
        "sent": wave,
        "ended": [0, *wave[:-1]],
        "failed": [2 if number in failed else 0 for number in range(columns)],
        "in_flight": wave,
        "output_tokens": [10 * count for count in wave],
        "ttft_ms": {
            "p50": [None, *latency[1:]],
            "p99": [None, *(2 * value for value in latency[1:])],
        },
        "icl_ms": {
            "p50": [None, *([8.0] * (columns - 1))],
            "p99": [None, *([11.0] * (columns - 1))],
            "edges": edges,
            "counts": [
                [max(0, 40 - 5 * abs(row - 3 - number % 4)) for row in range(16)]
                for number in range(columns)
            ],
        },
    }


def ran(
    settings: RunSettings | None = None,
    *checks: Check,
    failures: int = 0,
    said: bool = True,
    **changes: Any,
) -> dict[str, Any]:
    """The result of a run of 60 requests, as it is saved; `changes` are of loadgen's part of it."""
    records = [
        run_facts.steady(n, due=n * 100, ttft=20 + n % 7, gap=8 + n % 3, n=10)
        for n in range(60 - failures)
    ]
    records += [
        run_facts.failed(
            60 - failures + n, Outcome.STATUS, due=6000, detail="<b>busy</b> & \x1b[31mred"
        )
        for n in range(failures)
    ]
    options: dict[str, Any] = {"schedule": run_facts.due_at(*range(0, 6000, 100))}
    if said:
        options["telemetry"] = SAID
    data = run_facts.result(
        records, settings or RunSettings(request_rate=10.0), checks=(*checks, *CHECKS), **options
    )
    data["loadgen"] |= {"timeline": timeline(failed=(5, 17) if failures else ())} | changes
    return saved(data)


def big(requests: int = 100_000) -> dict[str, Any]:
    """The result of a run of so many requests with latencies of every size, 256 columns, and a
    full heat map.
    """
    draw = np.random.default_rng(0)
    one = run_facts.measured([run_facts.steady(n=3)])

    def drawn(name: str) -> Histogram:
        made = Histogram()
        made.record_many(
            (draw.lognormal(17, 1.2, requests * (10 if name in ("icl", "itl") else 1))).astype(
                np.int64
            )
        )
        return made

    sent = np.sort(draw.integers(0, 1000 * run_facts.S, requests))
    snapshot: Snapshot = structs.replace(
        one,
        scheduled=requests,
        outcomes={"ok": requests},
        histograms={name: drawn(name) for name in one.histograms},
        rows=run_facts.rows_of(
            index=np.arange(requests),
            sent=sent,
            closed=sent + run_facts.S,
            ttft=draw.lognormal(17, 1.2, requests).astype(np.int64),
            e2el=draw.lognormal(20, 0.2, requests).astype(np.int64),
        ),
    )
    data = run_facts.result(
        snapshot, RunSettings(request_rate=100.0), checks=CHECKS, telemetry=SAID
    )
    over_time = timeline(256, 4.0, failed=tuple(range(0, 256, 3)))
    rows = 8 * 14
    over_time["icl_ms"] |= {
        "edges": [0.5 * 2 ** (row / 8) for row in range(rows + 1)],
        "counts": draw.integers(0, 5000, (256, rows)).tolist(),
    }
    data["loadgen"]["timeline"] = over_time
    return saved(data)


def sweep(*levels: tuple[float, float, bool | None], **changes: Any) -> dict[str, Any]:
    """A series of runs, each of a level, a TTFT in ms, and whether the SLO is met, as it is
    saved.
    """
    data = saved_json.begun("sweep", "rate", "ttft_p99<500ms", "due")
    for number, (level, ttft, met) in enumerate(levels, 1):
        snapshot = run_facts.measured(
            [run_facts.steady(n, due=n * 1000 / level, ttft=ttft) for n in range(20)]
        )
        result = run_facts.result(snapshot, RunSettings(request_rate=level), checks=CHECKS)
        result["loadgen"]["provenance"]["prompts"] = {"sha256": str(number)}
        files = [f"pages/r-{number:02}.json", f"pages/r-{number:02}.html"]
        data["points"].append(
            saved_json.point(level, result, snapshot, limits=data["slo"], saved=files)
            | {"met": met}
        )
    saved_json.conclude(data)
    return saved(data | changes)


def search(*levels: tuple[float, float, bool | None]) -> dict[str, Any]:
    """A search of such levels, ascending, as it is saved; the bounds of each value are 10 %
    below and 20 % above it.
    """
    data = sweep(*levels)
    judged = []
    for level, ttft, met in levels:
        limit = {
            "limit": "ttft_p99<500ms",
            "value": ttft,
            "low": 0.9 * ttft,
            "high": 1.2 * ttft,
            "met": met,
        }
        judged.append({"level": level, "met": met, "runs": 1, "why": None, "slo": [limit]})
    met_levels = [level for level, _, met in levels if met]
    fails = min((level for level, _, met in levels if not met), default=None)
    found = {
        "level": max(met_levels, default=None),
        "fails": fails,
        "end": "edge",
        "last": levels[-1][0],
    }
    return data | {"kind": "search", "found": found, "levels": judged, "knee": None}


def saved(data: dict[str, Any]) -> dict[str, Any]:
    """What is read again of what was saved."""
    read: dict[str, Any] = orjson.loads(to_json(data))
    return read
