"""Series: several runs at one server, at one level of load after another, what follows from all of
them, and a row for each level. A search judges all runs at a level together, a sweep each of its
runs.
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from loadgen.config import slo
from loadgen.document import Span, Table, Tone
from loadgen.metrics.snapshot import Snapshot
from loadgen.metrics.statistic import statistic_ms
from loadgen.report.result import RunResult
from loadgen.report.result.outcomes import all_met, judge_limits
from loadgen.report.result.rates import Efficiency
from loadgen.report.result.series import (
    SERIES_SCHEMA,
    BoundedLimit,
    LoadLevel,
    Point,
    PointLatencies,
    RunBrief,
    Series,
)
from loadgen.report.run_state import State, has_too_few
from loadgen.report.sections import latencies
from loadgen.report.sections.latencies import FEW
from loadgen.report.summary_line import worst_verdict
from loadgen.util.number_format import bounds, fixed, percent

UNITS = {"rate": "req/s", "concurrency": "requests in flight"}
TOO_FEW = "too few requests to decide"
MIN_FOR_KNEE = 100  # requests at a level: the throughput of fewer varies by more than a tenth
REPEATED = (
    "several runs had the same prompts, since the data set has no others: where the server has a "
    "prefix cache, the later ones were helped by it"
)
SLO_OUTCOMES = {True: "met", False: "MISSED", None: "-"}
SWEEP_LATENCIES = ("ttft_p50", "ttft_p99", "tpot_p50", "tpot_p99")
WHOLE_LATENCIES = ("e2el_p50", "e2el_p99")  # of answers without tokens
INTERVAL = "confidence interval"
UNKNOWN = BoundedLimit(limit="", value=None, low=None, high=None, met=None)
Column = tuple[str, Sequence[str]]  # its heading and its cells
TONES = {
    "met": Tone.GOOD,
    "MISSED": Tone.BAD,
    "MISSED, disturbed": Tone.BAD,
    "FAILED": Tone.BAD,
    "SUSPECT": Tone.BAD,
    "INVALID": Tone.BAD,
}
FEW_VALUES = f"{FEW} too few values; see the confidence interval in the result of the run"


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


def is_short_of_knee(series: Series) -> bool:
    """Whether three levels were measured, with too few requests for a knee."""
    points = judgeable_points(series.points)
    levels = {point.level for point in points}
    return len(levels) >= 3 and fewest_requests(points) < MIN_FOR_KNEE


def is_highest_level(best: Point, points: Sequence[Point]) -> bool:
    """Tell whether no run that can be judged had a higher level."""
    return level_of(best) == max(map(level_of, judgeable_points(points)))


def _power(point: Point) -> float:
    e2el, throughput = point.latency_ms.e2el_mean, point.result.numbers.output_throughput
    return throughput / e2el if e2el and throughput else 0.0


def deciding_points(series: Series) -> Sequence[Point]:
    """List the runs from which the answer follows: of a search those at the edge."""
    edge = () if series.found is None else (series.found.level, series.found.fails)
    return [point for point in series.points if point.level in edge] or series.points


def failed_checks(point: Point) -> list[str]:
    """Name the checks for which a run is not VALID."""
    return [reason.partition(":")[0] for reason in point.result.findings.reasons]


def level_of(point: Point) -> float:
    """Return the level of a point as a number; "inf" is the highest."""
    return float(point.level)


def level_text(level: float | str) -> str:
    """Write a level without its unit."""
    return level if isinstance(level, str) else f"{level:g}"


def level_with_unit(level: float | str, over: str) -> str:
    """Write a level with its unit: "4 req/s", "1 request in flight"."""
    unit = UNITS[over]
    return f"{level_text(level)} {unit.replace('requests', 'request') if level == 1 else unit}"


class Row(Struct, frozen=True):
    """A level of a search, or a run of a sweep.

    Attributes:
        judged: The level, whether it meets the SLO, and the values that the SLO limits.
        runs: The runs at it, one at least.
        confirms: Whether an SLO is met only if bounds show it.
    """

    judged: LoadLevel
    runs: Sequence[Point]
    confirms: bool

    @property
    def level(self) -> float:
        """The level; all at once is infinite."""
        return self.judged.level

    @property
    def outcome(self) -> str:
        """Whether it meets the SLO, in a word or two."""
        outcome = SLO_OUTCOMES[self.judged.met]
        if self.judged.met is None and self.confirms:
            outcome = "undecided" if self.judged.runs else "inconclusive"
        return f"{outcome}, disturbed" if self.judged.doubted else outcome

    @property
    def verdict(self) -> str:
        """The worst verdict of its runs; FAILED where no request succeeded."""
        if not self.completed:
            return State.FAILED
        return worst_verdict(run.verdict for run in self.runs)

    @property
    def completed(self) -> int:
        """Requests that succeeded."""
        return sum(run.result.numbers.completed for run in self.runs)

    @property
    def failed(self) -> float | None:
        """The share of the requests that failed; those that were cancelled show nothing of the
        server.
        """
        failed = sum(run.result.numbers.failed for run in self.runs)
        return failed / (self.completed + failed) if self.completed + failed else None

    @property
    def answers_per_s(self) -> float | None:
        """Ok answers per second from the first to the last, of all runs together; None if one of
        them has no rate.
        """
        gaps, seconds = 0, 0.0
        for run in self.runs:
            rate, answers = run.result.findings.answers_per_s, run.result.numbers.completed
            if not rate:
                return None
            gaps, seconds = gaps + answers - 1, seconds + (answers - 1) / rate
        return gaps / seconds

    @property
    def answer_rate(self) -> float | None:
        """Ok answers per second as the answer of a run has them: where the rate between answers is
        not known, as in a closed loop or a burst, the request throughput.
        """
        rate = self.answers_per_s
        return self.throughput("request_throughput") if rate is None else rate

    @property
    def efficiency(self) -> Efficiency | None:
        """Speed for a user and per GPU, in the last of its runs."""
        return self.runs[-1].result.findings.efficiency

    def limited(self, limit: slo.Limit | None) -> BoundedLimit | None:
        """Look up what its runs show of a limit; None if they are not judged by it."""
        text = None if limit is None else limit.text
        return next((each for each in self.judged.slo if each.limit == text), None)

    def throughput(self, name: str) -> float | None:
        """Return a throughput of `RunNumbers`, of all runs together; None if one of them sent
        nothing.
        """
        numbers = [run.result.numbers for run in self.runs]
        rates = [
            (run.duration, getattr(run, name)) for run in numbers if getattr(run, name) is not None
        ]
        duration_s = sum(seconds for seconds, _ in rates)
        return sum(seconds * value for seconds, value in rates) / duration_s if duration_s else None


def rows(series: Series) -> list[Row]:
    """List the rows in the order of the levels; of a search without the run that sent all
    requests at once.
    """
    points = sorted(series.points, key=level_of)
    if series.kind == "sweep":
        return [Row(_judged([point], point.met), [point], confirms=False) for point in points]
    grouped: dict[float, list[Point]] = {}
    for point in points:
        if math.isfinite(level_of(point)):
            grouped.setdefault(level_of(point), []).append(point)
    judged = {level.level: level for level in series.levels}
    shown = []
    for level, runs in grouped.items():
        # An earlier version did not save whether the runs at a level meet the SLO.
        is_answer = series.found is not None and series.found.level == level
        shown.append(
            Row(judged.get(level) or _judged(runs, is_answer or runs[-1].met), runs, confirms=True)
        )
    return shown


def has_tokens(series: Series) -> bool:
    """Return whether answers have tokens, as all runs of a series have one API."""
    return all(point.result.numbers.generates for point in series.points)


def streams(series: Series) -> bool:
    """Return whether answers are streams of tokens, as all runs of a series have one API."""
    return all(point.result.numbers.streams for point in series.points)


def sweep_latencies(series: Series) -> tuple[str, ...]:
    """Name the usual latencies of a run: E2EL where answers come in one piece."""
    return SWEEP_LATENCIES if streams(series) else WHOLE_LATENCIES


def table(series: Series, *, with_bounds: bool = False) -> Table:
    """Make the table; latencies are in ms.

    Args:
        series: The runs.
        with_bounds: Whether the values that the SLO limits have their bounds beside them.
    """
    shown = rows(series)
    first: Column = (series.over, [f"{row.level:g}" for row in shown])
    if series.load is not None:
        first = ("run", [str(number) for number in range(1, len(shown) + 1)])
    columns: list[Column] = [first]
    if any(row.judged.slo for row in shown):
        columns.append(("SLO", [row.outcome for row in shown]))
    if len({row.verdict for row in shown}) > 1:
        columns.append(("verdict", [row.verdict for row in shown]))
    words = len(columns)
    columns += _latencies(series, shown, with_bounds=with_bounds)
    columns.append(("req/s", _numbers([row.answer_rate for row in shown])))
    if has_tokens(series):
        rates = [row.throughput("output_throughput") for row in shown]
        columns.append(("tok/s", _numbers(rates)))
    speeds = [row.efficiency for row in shown]
    if series.kind == "sweep" and any(
        speed is not None and speed.gpus is not None for speed in speeds
    ):
        users = [None if speed is None else speed.output_tokens_per_s_per_user for speed in speeds]
        gpus = [None if speed is None else speed.output_tokens_per_s_per_gpu for speed in speeds]
        columns += [("tok/s/user", _numbers(users)), ("tok/s/GPU", _numbers(gpus))]
    if any(row.failed for row in shown):
        columns.append(("failed", [percent(row.failed, 1) for row in shown]))
    if any(len(row.runs) > 1 for row in shown):
        columns.append(("runs", [str(len(row.runs)) for row in shown]))
    titles, cells = zip(*columns, strict=True)
    table_rows = ([*map(word, row)] for row in zip(*cells, strict=True))
    return Table.of(titles, table_rows, text_columns=words)


def word(text: str) -> Span:
    """Write a text; an outcome or a verdict has its colour."""
    return Span(text, TONES.get(text, Tone.PLAIN))


def heading(name: str) -> str:
    """Write the heading of a latency: ttft_p90 as "TTFT p90"."""
    metric, _, statistic = name.partition("_")
    return f"{metric.upper()} {statistic}"


def _judged(runs: Sequence[Point], met: bool | None) -> LoadLevel:
    """Judge a level by its last run alone: of a sweep, and of searches that earlier versions
    saved.
    """
    last = runs[-1]
    limits = [
        BoundedLimit(limit=row.limit, value=row.value, low=None, high=None, met=row.met)
        for row in last.slo
    ]
    return LoadLevel(level=level_of(last), met=met, runs=len(runs), why=last.why, slo=limits)


def _latencies(series: Series, rows: Sequence[Row], *, with_bounds: bool) -> list[Column]:
    """Make the columns of the latencies that the SLO limits and, of a sweep, of the usual ones."""
    columns, limits = list[Column](), slo.required_limits(series.slo) if series.slo else []
    limited = {
        limit.name.replace("median", "p50"): limit for limit in limits if limit.metric != "error"
    }
    shown = sweep_latencies(series) if series.kind == "sweep" else ()
    for name in sorted({*shown, *limited}, key=_place):
        if name in shown:
            values = [row.runs[0].latency_ms.named(name) for row in rows]
            marks = [few_mark(name, row.completed) for row in rows]
            columns.append((heading(name), _numbers(values, marks)))
            continue
        found = [row.limited(limited[name]) or UNKNOWN for row in rows]
        has_bounds = with_bounds and any(item.high is not None for item in found)
        marks = ["" if has_bounds else few_mark(name, row.completed) for row in rows]
        columns.append((heading(name), _numbers([item.value for item in found], marks)))
        if has_bounds:
            ends = [end for item in found for end in (item.low, item.high)]
            write = partial(fixed, digits=_digits(ends))
            cells = [bounds(item.low, item.high, write, "> {}", "< {}", "-") for item in found]
            columns.append((INTERVAL, cells))
    return columns


def _place(name: str) -> tuple[int, float]:
    """Return the place of a latency in a table: by its metric; mean, percentiles, maximum."""
    metric, _, statistic = name.partition("_")
    ends = {"mean": -1.0, "max": 100.0}
    return slo.LATENCY_METRICS.index(metric), ends.get(statistic) or float(statistic[1:])


def few_mark(name: str, completed: int) -> str:
    """Mark a percentile of too few requests; `name` as ttft_p99."""
    return latencies.few_mark(name.partition("_")[2], completed)


def _numbers(values: Sequence[float | None], marks: Sequence[str] = ()) -> list[str]:
    """Write the numbers of a column with equally many decimals, as many as the greatest needs."""
    digits = _digits(values)
    texts = ["-" if value is None else fixed(value, digits) for value in values]
    return [text + mark for text, mark in zip(texts, marks or [""] * len(texts), strict=True)]


def _digits(values: Sequence[float | None]) -> int:
    greatest = max((abs(value) for value in values if value is not None), default=0.0)
    return 0 if greatest >= 1000 else 1 if greatest >= 100 else 2
