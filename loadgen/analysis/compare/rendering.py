"""Told: the numbers of a comparison as text, and as JSON."""

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

from loadgen.analysis.compare.comparison import Beside, Comparison
from loadgen.analysis.compare.interval import CONFIDENCE, Basis
from loadgen.analysis.compare.metrics import named
from loadgen.analysis.compare.noise_file import NoiseFile
from loadgen.analysis.compare.row import Row, Word
from loadgen.analysis.compare.side import LEAST_STARTS, Side
from loadgen.util.number_format import percent, signed

SCHEMA = 1
AT = f"{100 * CONFIDENCE:g} %"
TOLD = (Word.BETTER, Word.WORSE, Word.DIFFERS)
WIDE = 4  # times how finely a value is told: an interval so wide hardly knows of it


def values(row: Row) -> tuple[str, str]:
    """Both values, without their unit unless that is %: in two digits, or as many as show a difference that is told."""
    scale = 100 if row.metric.is_share else 1
    digits = _digits(scale * (row.other - row.one), 2) if row.word in TOLD else 2
    one, other = (f"{scale * each:.{digits}f}{'%' * row.metric.is_share}" for each in (row.one, row.other))
    return one, other


def change(row: Row) -> str:
    """By how much a side is more: "+1.6%", "-0.20pp"; n/a beside a value of 0."""
    return "n/a" if row.change is None else _signed(row.change, row)


def bounds(row: Row) -> str:
    """Between what that lies: "-0.5% to +0.6%"; nothing where nothing tells."""
    return "" if row.bounds is None else " to ".join(_signed(end, row) for end in row.bounds)


def _signed(share: float, row: Row) -> str:
    """In as many digits as show on which side of 0 an interval lies that leaves it out."""
    digits = 2 if row.metric.is_share else 1
    if row.bounds is not None and row.word in TOLD:
        digits = _digits(100 * min(map(abs, row.bounds)), digits)
    return signed(share, digits).replace("%", "pp" if row.metric.is_share else "%")


def _digits(number: float, usual: int) -> int:
    """How many digits after the point show that a number is not 0, but no fewer than usual."""
    return max(usual, math.ceil(-math.log10(abs(number)))) if number else usual


def runs(side: Side) -> str:
    """What a side is made of: "3 starts, VALID (2), SUSPECT (1) for lag p99, 20250102-030405 to 20250102-040506"."""
    verdicts = Counter(start.verdict for start in side.starts)
    told = [f"{len(side.starts)} starts" if len(side.starts) > 1 else "1 run"]
    told += [
        f"{name} ({count})" if len(verdicts) > 1 else name for name, count in sorted(verdicts.items(), reverse=True)
    ]
    if why := dict.fromkeys(check.name for start in side.starts for check in start.result.failed_checks):
        told[-1] += f" for {' and '.join(why)}"
    dates = dict.fromkeys((side.starts[0].date, side.starts[-1].date))
    return ", ".join((*told, " to ".join(dates)))


def reading(comparison: Comparison, beside: Beside) -> Iterator[str]:
    """How the rows of a side are to be read, a line each."""
    bases = {row.interval.basis for row in beside.rows if row.interval is not None}
    if Basis.WITHIN in bases:
        yield (
            f"Intervals are within the run (blocks of {beside.block} requests), at {AT}; restart noise unknown: "
            f"give {LEAST_STARTS} starts of each, or --noise."
        )
    if Basis.STARTS in bases:
        yield f"Intervals are by what the starts of each side differ by, at {AT}, each for its row alone."
    if Basis.NOISE in bases:
        yield f"Intervals are by the noise of --noise and of the starts, at {AT}, each for its row alone."
    if finest := _finest(beside):
        yield f"Intervals allow for how finely values are told: {finest}."
    if comparison.doubted and bases - {Basis.WITHIN}:
        yield "Nothing is called better or worse, for some runs are not to be believed."
    elif comparison.judged:
        yield f"better and worse allow for all {len(comparison.judged)} rows that were looked at (Holm)."
    if beside.survivors:
        yield f"No latency is called better or worse, for these are not of the same requests: {beside.survivors}."
    if any(row.word is Word.DIFFERS for row in beside.rows):
        yield f"differs: by its own interval alone, as 1 of {round(1 / (1 - CONFIDENCE))} rows does by chance."
    if beside.repeated:
        yield f"Left out, being fixed multiples of others in every run: {_repeated(beside)}."
    without: dict[str, list[str]] = {}
    for row in beside.rows:
        if row.interval is None:
            without.setdefault(row.why, []).append(row.metric.name)
    told = [row for row in beside.rows if row.interval is not None]
    for why, names in without.items():
        yield f"No interval ({why})" + (f": {', '.join(names)}." if told or len(without) > 1 else ".")


def _finest(beside: Beside) -> str:
    """How finely values are told, where an interval is little wider: throughputs by request, percentiles by bucket."""
    found: dict[str, None] = {}
    for row in beside.rows:
        if row.interval is not None and row.interval.high - row.interval.low < WIDE * row.resolution:
            what = "percentiles" if row.metric.latency else row.metric.name
            unit = "a bucket" if row.metric.latency else "a request"
            found[f"{what} to {percent(row.resolution, _digits(100 * row.resolution, 2))} ({unit})"] = None
    return ", ".join(found)


def _repeated(beside: Beside) -> str:
    """Metrics that have no row, with those that have: "output_throughput, total_throughput (request_throughput)"."""
    found: dict[str, dict[str, None]] = {}
    for pair in beside.repeated.items():
        name, first = (metric.latency[0] if (metric := named(each)) and metric.latency else each for each in pair)
        found.setdefault(first, {})[name] = None
    return ", ".join(f"{', '.join(names)} ({first})" for first, names in found.items())


def noise(file: NoiseFile) -> Iterator[str]:
    """What was kept, a line for each metric: the standard deviation of one start, and its degrees of freedom."""
    width = max(map(len, file.each), default=0)
    for name, each in file.each.items():
        metric = named(name)
        first = file.each.get(metric.repeats) if metric else None
        if first is not None and first.df == each.df and math.isclose(first.sd, each.sd):
            continue
        sd = percent(each.sd, 2)
        yield f"{name:<{width}}  {sd.replace('%', 'pp') if metric and metric.is_share else sd} ({each.df} df)"


def as_json(comparison: Comparison) -> dict[str, Any]:
    """All of it."""
    return {
        "loadgen_comparison": SCHEMA,
        "notes": list(comparison.notes),
        "sides": [_side(side) for side in comparison.sides],
        "comparisons": [
            {
                "base": comparison.base.name,
                "side": beside.side.name,
                "differ": {each.name: [each.one, each.other] for each in beside.otherwise},
                "survivors": beside.survivors or None,
                "block_requests": beside.block,
                "repeated": dict(beside.repeated),
                "rows": [_row(row) for row in beside.rows],
            }
            for beside in comparison.each
        ],
    }


def _side(side: Side) -> dict[str, Any]:
    return {
        "name": side.name,
        "path": side.path,
        "starts": [
            {
                "file": start.where,
                "date": start.date,
                "verdict": start.verdict,
                "reasons": start.reasons,
                "partial": start.partial,
                "simulated": start.simulated,
                "records": start.records is not None,
            }
            for start in side.starts
        ],
    }


def _row(row: Row) -> dict[str, Any]:
    return {
        "metric": row.metric.name,
        "unit": row.metric.unit,
        "base": row.one,
        "side": row.other,
        "change": row.change,
        "resolution": row.resolution,
        "interval": row.bounds,
        "basis": row.interval and str(row.interval.basis),
        "by_chance": row.interval and row.interval.by_chance,
        "why_no_interval": row.why or None,
        "word": str(row.word),
    }
