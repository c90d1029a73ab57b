"""Series: the table and the conclusions of several runs at one server, at one level of load after another."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from loadgen.config import slo
from loadgen.metrics.snapshot import Snapshot
from loadgen.metrics.statistic import statistic_ms
from loadgen.report.result import RunResult
from loadgen.report.result.brief import RunBrief
from loadgen.report.result.limit import all_met, judged
from loadgen.report.result.series import SERIES_SCHEMA, Point, PointLatencies, Series
from loadgen.stats.percentile_confidence_interval import least_samples
from loadgen.util.number_format import fixed, percent
from loadgen.util.terminal_text import printable

WIDTH = 50
UNITS = {"rate": "requests/s", "concurrency": "requests in flight"}
LATENCIES = (("ttft", "p50"), ("ttft", "p99"), ("tpot", "p50"), ("tpot", "p99"), ("e2el", "mean"))
COLUMNS = {"ttft_p50": "TTFT p50", "ttft_p99": "p99", "tpot_p50": "TPOT p50", "tpot_p99": "p99"}
MARK = "*"  # of a percentile of few values
OF_FEW = f"{MARK} few values; the result of the run has the confidence interval"
VERDICTS = {True: "met", False: "MISSED"}


REPEATED = (
    "several runs had the same prompts, since the data set has no others: where the server has a prefix cache, the "
    "later ones were helped by it"
)


def is_series(data: Any) -> bool:
    """Whether saved JSON is a series of runs, and not a single one."""
    return isinstance(data, dict) and data.get("loadgen_series") == SERIES_SCHEMA


def conclude(series: Series) -> None:
    """Add to a series what follows from all of its points."""
    best = strongest(series.points) if series.kind == "sweep" else None
    series.knee = best.level if best is not None and not _is_last(best, series.points) else None
    hashes = (each.result.findings.prompts_sha256 for each in series.points)
    prompts = [each for each in hashes if each is not None]
    repeated = [REPEATED] if len(set(prompts)) < len(prompts) else []
    series.notes = list(dict.fromkeys(series.notes + repeated))


def point(level: float, result: RunResult, snapshot: Snapshot, *, limits: str | None, saved: Sequence[str]) -> Point:
    """Make the point of a run.

    Args:
        level: The level of the load.
        result: The result of the run.
        snapshot: The numbers it was made from.
        limits: The SLO that it is held against, if there is one.
        saved: Files of it.
    """
    clock = result.latency_from
    rows = judged(limits, snapshot, clock)
    tells = bool(rows) and result.verdict != "INVALID" and result.partial is None
    latencies = {
        f"{metric}_{name}": statistic_ms(snapshot.histograms[slo.distribution(metric, clock)], name)
        for metric, name in LATENCIES
    }
    return Point(
        level=level if math.isfinite(level) else "inf",
        met=all_met(rows) if tells else None,
        why=result.partial,
        slo=rows,
        verdict=result.verdict,
        latency_ms=PointLatencies(**latencies),
        saved=list(saved),
        result=RunBrief.of(result),
    )


def strongest(points: Sequence[Point]) -> Point | None:
    """Find the run with the most output tokens/s for its mean E2EL (Kleinrock's power, ICC 1979).

    At the last level it is no knee: what comes after it is not known.

    Returns:
        None where there are fewer than three levels, or one has no throughput or no latency.
    """
    found = _judgeable(points)
    if len({each.level for each in found}) < 3 or not all(map(_power, found)):
        return None
    return max(found, key=_power)


def _judgeable(points: Sequence[Point]) -> list[Point]:
    """Select the runs at a finite level that are not INVALID."""
    return [each for each in points if each.level != "inf" and each.verdict != "INVALID"]


def _is_last(best: Point, points: Sequence[Point]) -> bool:
    return level_of(best) == max(map(level_of, _judgeable(points)))


def _power(each: Point) -> float:
    e2el, throughput = each.latency_ms.e2el_mean, each.result.numbers.output_throughput
    return throughput / e2el if e2el and throughput else 0.0


def render(series: Series) -> str:
    """Render the console's view of a series; nothing in it moves a terminal."""
    return "\n".join(map(printable, _lines(series))) + "\n"


def _lines(series: Series) -> Iterator[str]:
    yield f"{f' {title(series)} ':=^{WIDTH}}"
    yield from banners(series)
    heads, rows = table(series)
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    yield "latencies in ms from " + series.latency_from
    for row in (heads, *rows):
        yield "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))
    if any(MARK in cell for row in rows for cell in row):
        yield OF_FEW
    yield from conclusions(series)


def title(series: Series) -> str:
    """Name a series in a few words."""
    return f"{series.kind.capitalize()} over the {'request rate' if series.over == 'rate' else 'concurrency'}"


def banners(series: Series) -> Iterator[str]:
    """Write what one is to know before any number."""
    if series.points and series.points[0].result.findings.simulated:
        yield "SIMULATED ENGINE: these numbers describe loadgen's simulator, not a real server."
    if series.partial:
        yield f"PARTIAL: {series.partial}."


def conclusions(series: Series) -> Iterator[str]:
    """Write what follows from the runs."""
    points = sorted(series.points, key=level_of)
    yield from dict.fromkeys(f"  at {named(each.level)}: {each.why}" for each in points if each.why)
    if series.found is not None:
        yield _found(series)
    elif judged_points := [each for each in points if each.met is not None]:
        yield _met(series, list(dict.fromkeys(each.level for each in judged_points if each.met)))
    if series.kind == "sweep" and (best := strongest(series.points)):
        level = in_unit(best.level, series.over)
        knee = f"Knee (highest ratio of tokens/s to mean E2EL): {level}"
        yield f"No knee up to {level}" if _is_last(best, series.points) else knee
    yield from (f"Note: {note}" for note in series.notes)


def table(series: Series) -> tuple[list[str], list[list[str]]]:
    """Make the heads of a table and a row for each run, in the order of the levels; cells are words as printed."""
    limits = slo.parse(series.slo) if series.slo else []
    others = [limit for limit in limits if limit.name not in (*COLUMNS, "ttft_median", "tpot_median", "error_rate")]
    heads = [series.over, "req/s", "tok/s", "peak", *(f"{name} " for name in COLUMNS.values())]
    heads += [*(f"{limit.name} " for limit in others), "failed", "verdict", *(["SLO"] if limits else [])]
    points = sorted(series.points, key=level_of)
    return list(heads), [_cells(each, others, judged=bool(limits)) for each in points]


def _cells(each: Point, others: Sequence[slo.Limit], *, judged: bool) -> list[str]:
    numbers = each.result.numbers
    values = {row.limit: row.value for row in each.slo}
    cells = [named(each.level), fixed(numbers.request_throughput, 2), fixed(numbers.output_throughput, 2)]
    cells += [fixed(numbers.max_concurrent_requests, 0)]
    for value, p in [
        *((each.latency_ms.named(name), float(name.partition("_p")[2])) for name in COLUMNS),
        *((values[limit.text], limit.percentile) for limit in others),
    ]:
        few = value is not None and p is not None and numbers.completed < least_samples(p)
        cells.append(fixed(value, 2) + (MARK if few else " "))
    ended = numbers.completed + numbers.failed  # those that were cancelled tell nothing of the server
    cells += [percent(numbers.failed / ended if ended else None, 1), each.verdict]
    return cells + ([VERDICTS.get(each.met, "-") if each.met is not None else "-"] if judged else [])


def _found(series: Series) -> str:
    """Say what a search found, in one line."""
    found, over = series.found, series.over
    assert found is not None
    level, fails, last = (bound and in_unit(bound, over) for bound in (found.level, found.fails, found.last))
    missed = any(each.met is False for each in series.points if each.level == found.fails)
    edge = f"nothing failed up to {named(found.level)}" if found.level else ""
    if found.fails:
        edge = f"{named(found.fails)} {'do not' if missed else 'were not shown to'}"
    match found.end:
        case "edge":
            return f"Highest {over} that meets {series.slo}: {level}; {edge}"
        case "floor":
            return f"At least {level} meet {series.slo}; {edge}, and the search ended there"
        case "none":
            return f"NO {over.upper()} MEETS {series.slo}: the lowest that was tried is {fails}"
        case "client":
            beyond = f"at least {level} meet {series.slo}" if level else "nothing is known of the server"
            return f"At {last} THE CLIENT, NOT THE SERVER, WAS THE LIMIT: {beyond}"
    beyond = f"; at least {level} meet {series.slo}" if level else ""
    return f"The search ended early{beyond}"


def _met(series: Series, levels: Sequence[float | str]) -> str:
    """Say which levels of a sweep met its SLO, in one line."""
    if not levels:
        return f"NO LEVEL MEETS {series.slo}"
    *others, last = levels
    return f"{series.slo} is met at: {', '.join((*map(named, others), in_unit(last, series.over)))}"


def level_of(each: Point) -> float:
    """The level of a point as a number; "inf" is the highest."""
    return float(each.level)


def named(level: float | str) -> str:
    """Write a level without its unit."""
    return level if isinstance(level, str) else f"{level:g}"


def in_unit(level: float | str, over: str) -> str:
    """Write a level with its unit: "4 requests/s", "1 request in flight"."""
    unit = UNITS[over]
    return f"{named(level)} {unit.replace('requests', 'request') if level == 1 else unit}"
