"""Series: several runs at one server, at one level of load after another, and what follows from
all of them.
"""

import math
from collections.abc import Sequence
from typing import Any

from loadgen.config import slo
from loadgen.metrics.snapshot import Snapshot
from loadgen.metrics.statistic import statistic_ms
from loadgen.report.result import RunResult
from loadgen.report.result.outcomes import all_met, judge_limits
from loadgen.report.result.series import SERIES_SCHEMA, Point, PointLatencies, RunBrief, Series
from loadgen.report.run_state import has_too_few

UNITS = {"rate": "requests/s", "concurrency": "requests in flight"}
TOO_FEW = "too few requests to decide"
MIN_FOR_KNEE = 100  # requests at a level: the throughput of fewer varies by more than a tenth
REPEATED = (
    "several runs had the same prompts, since the data set has no others: where the server has a "
    "prefix cache, the later ones were helped by it"
)


def is_series(data: Any) -> bool:
    """Whether saved JSON is a series of runs, and not a single one."""
    return isinstance(data, dict) and data.get("loadgen_series") == SERIES_SCHEMA


def add_conclusions(series: Series) -> None:
    """Set the knee and the notes of a series, which follow from all of its points."""
    best = knee_candidate(series.points) if series.kind == "sweep" else None
    series.knee = (
        best.level if best is not None and not is_highest_level(best, series.points) else None
    )
    hashes = (point.result.findings.prompts_sha256 for point in series.points)
    prompts = [sha256 for sha256 in hashes if sha256 is not None]
    repeated = [REPEATED] if len(set(prompts)) < len(prompts) else []
    series.notes = list(dict.fromkeys(series.notes + repeated))


def make_point(
    level: float, result: RunResult, snapshot: Snapshot, *, limits: str | None, saved: Sequence[str]
) -> Point:
    """Make the point of a run at a level of the load.

    Args:
        level: The level of the load.
        result: The result of the run.
        snapshot: The numbers it was made from.
        limits: The SLO that it is judged by, if there is one.
        saved: The paths of its files.
    """
    clock = result.latency_from
    rows = judge_limits(limits, snapshot, clock)
    tells = bool(rows) and result.verdict != "INVALID" and result.partial is None
    met = all_met(rows)
    is_doubtful = met is True and has_too_few(result)
    latencies: dict[str, float | None] = {}
    for name in PointLatencies.__struct_fields__:
        metric, _, statistic = name.partition("_")
        latencies[name] = statistic_ms(
            snapshot.histograms[slo.distribution(metric, clock)], statistic
        )
    return Point(
        level=level if math.isfinite(level) else "inf",
        met=None if is_doubtful or not tells else met,
        why=result.partial or (TOO_FEW if is_doubtful else None),
        slo=rows,
        verdict=result.verdict,
        latency_ms=PointLatencies(**latencies),
        saved=list(saved),
        result=RunBrief.of(result),
    )


def knee_candidate(points: Sequence[Point]) -> Point | None:
    """Find the run with the most output tokens/s for its mean E2EL (Kleinrock's power, ICC 1979).

    At the last level it is no knee: what comes after it is not known.

    Returns:
        None where there are fewer than three levels, or one has too few requests, no throughput or
        no latency.
    """
    judgeable = judgeable_points(points)
    if len({point.level for point in judgeable}) < 3 or not all(map(_power, judgeable)):
        return None
    return max(judgeable, key=_power) if fewest_requests(judgeable) >= MIN_FOR_KNEE else None


def fewest_requests(points: Sequence[Point]) -> int:
    """Return how many requests succeeded at the level that has the fewest; points is not empty."""
    return min(point.result.numbers.completed for point in points)


def judgeable_points(points: Sequence[Point]) -> list[Point]:
    """List the runs at a finite level that measured the server."""
    return [point for point in points if point.level != "inf" and point.verdict != "INVALID"]


def is_highest_level(best: Point, points: Sequence[Point]) -> bool:
    """Tell whether no run that can be judged had a higher level."""
    return level_of(best) == max(map(level_of, judgeable_points(points)))


def _power(point: Point) -> float:
    e2el, throughput = point.latency_ms.e2el_mean, point.result.numbers.output_throughput
    return throughput / e2el if e2el and throughput else 0.0


def level_of(point: Point) -> float:
    """Return the level of a point as a number; "inf" is the highest."""
    return float(point.level)


def level_text(level: float | str) -> str:
    """Write a level without its unit."""
    return level if isinstance(level, str) else f"{level:g}"


def level_with_unit(level: float | str, over: str) -> str:
    """Write a level with its unit: "4 requests/s", "1 request in flight"."""
    unit = UNITS[over]
    return f"{level_text(level)} {unit.replace('requests', 'request') if level == 1 else unit}"
