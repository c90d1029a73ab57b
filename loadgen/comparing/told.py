"""Told: the numbers of a comparison as text, and as JSON."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from loadgen.comparing.comparison import Beside, Comparison, Row, Word
from loadgen.comparing.interval import Basis
from loadgen.comparing.metrics import REPEATED, Metric, named
from loadgen.comparing.noise_file import NoiseFile
from loadgen.comparing.side import LEAST_STARTS, Side
from loadgen.report.brief import failed, reasons
from loadgen.words import percent, signed

SCHEMA = 1


def value(number: float, metric: Metric) -> str:
    """A value of a metric, without its unit unless that is %."""
    return percent(number, 2) if metric.is_share else f"{number:.2f}"


def change(row: Row) -> str:
    """By how much a side is more: "+1.6%", "-0.20pp"; n/a beside a value of 0."""
    return "n/a" if row.change is None else _signed(row.change, row.metric)


def bounds(row: Row) -> str:
    """Between what that lies: "-0.5% to +0.6%"; nothing where nothing tells."""
    return "" if row.bounds is None else " to ".join(_signed(end, row.metric) for end in row.bounds)


def _signed(number: float, metric: Metric) -> str:
    return signed(number, 2).replace("%", "pp") if metric.is_share else signed(number)


def runs(side: Side) -> str:
    """What a side is made of: "3 starts, VALID (2), SUSPECT (1) for lag p99, 20250102-030405 to 20250102-040506"."""
    verdicts = Counter(start.verdict for start in side.starts)
    told = [f"{len(side.starts)} starts" if len(side.starts) > 1 else "1 run"]
    told += [
        f"{name} ({count})" if len(verdicts) > 1 else name for name, count in sorted(verdicts.items(), reverse=True)
    ]
    if why := dict.fromkeys(check["name"] for start in side.starts for check in failed(start.result)):
        told[-1] += f" for {' and '.join(why)}"
    dates = dict.fromkeys((side.starts[0].date, side.starts[-1].date))
    return ", ".join((*told, " to ".join(dates)))


def reading(comparison: Comparison, beside: Beside) -> Iterator[str]:
    """How the rows of a side are to be read, a line each."""
    bases = {row.interval.basis for row in beside.rows if row.interval is not None}
    if Basis.WITHIN in bases:
        yield (
            f"Intervals are within the run (blocks of {beside.block} requests), at 95 %; restart noise unknown: "
            f"give {LEAST_STARTS} starts of each, or --noise."
        )
    if Basis.STARTS in bases:
        yield "Intervals are by what the starts of each side differ by, at 95 %, each for its row alone."
    if Basis.NOISE in bases:
        yield "Intervals are by the noise of --noise and of the starts, at 95 %, each for its row alone."
    judged = [row for row in comparison.rows if row.interval and row.interval.basis is not Basis.WITHIN]
    if judged and comparison.doubted:
        yield "Nothing is called better or worse, for some runs are not to be believed."
    elif judged:
        yield f"better and worse allow for all {len(judged)} rows that were looked at (Holm)."
    if any(row.word is Word.DIFFERS for row in beside.rows):
        yield "differs: by its own interval alone, as 1 of 20 rows does by chance."
    without: dict[str, list[str]] = {}
    for row in beside.rows:
        if row.interval is None:
            without.setdefault(row.why, []).append(row.metric.name)
    told = [row for row in beside.rows if row.interval is not None]
    for why, names in without.items():
        yield f"No interval ({why})" + (f": {', '.join(names)}." if told or len(without) > 1 else ".")


def noise(file: NoiseFile) -> Iterator[str]:
    """What was kept, a line for each metric: the standard deviation of one start, and its degrees of freedom."""
    width = max(map(len, file.each), default=0)
    for name, each in file.each.items():
        metric = named(name)
        latency, _, statistic = name.partition("_")
        if latency in REPEATED and each == file.each.get(f"{REPEATED[latency]}_{statistic}"):
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
                "block_requests": beside.block,
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
                "reasons": reasons(start.result),
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
        "interval": row.bounds,
        "basis": row.interval and str(row.interval.basis),
        "by_chance": row.interval and row.interval.by_chance,
        "why_no_interval": row.why or None,
        "word": str(row.word),
    }
