"""Answer: what changed from the baseline to a candidate, and how sure that is, in the parts of
one line.
"""

import math
from collections.abc import Iterable, Iterator, Sequence

from loadgen.analysis.compare.comparison import CandidateRows, Comparison
from loadgen.analysis.compare.confidence_interval import Basis
from loadgen.analysis.compare.metrics import ERROR_RATE
from loadgen.analysis.compare.pair import Conclusion, Row
from loadgen.analysis.compare.side import MIN_STARTS, Side
from loadgen.analysis.compare.texts import (
    CONFIDENCE_TEXT,
    NO_VERDICT,
    SIGNIFICANT,
    SURE,
    bounds,
    change,
    start_word,
    unit,
    values,
)
from loadgen.report.run_state import MAX_NAMED as MAX_REASONS
from loadgen.report.run_state import Colour
from loadgen.report.summary_line import VERDICT_COLOURS, Part
from loadgen.util.number_format import first_of, percent, three_digits

ANSWER_LATENCIES = ("ttft", "tpot", "e2el")
STATISTICS = ("p99", "p90", "p50", "mean")  # the first with an interval represents its latency
THROUGHPUTS = ("goodput", "output_throughput", "request_throughput")  # the first that there is
SAME_WITHIN = (
    0.05  # an interval within this of 0 shows that two values are the same, for most purposes
)
SEVERITY = ["", *VERDICT_COLOURS]  # another tool has no verdict
COLOURS = {Conclusion.BETTER: Colour.GREEN, Conclusion.WORSE: Colour.RED}


def parts(comparison: Comparison, candidate: CandidateRows) -> Iterator[Part]:
    """List the parts of the line: the changes, the basis of their intervals, and caveats."""
    rows = _main_rows(candidate)
    colours = {COLOURS.get(row.conclusion, Colour.NONE) for row in rows}
    colour = next(
        (severe for severe in (Colour.RED, Colour.GREEN) if severe in colours), Colour.NONE
    )
    yield (
        f"{candidate.candidate.name}: {'; '.join(_changes(rows)) or 'no number in common'}",
        colour,
    )
    yield from _certainty(comparison, candidate)
    yield _verdicts(comparison.baseline, candidate.candidate)
    if candidate.error_rates_differ:
        yield "error rates differ, so that latencies are of other requests", Colour.RED
    if comparison.clashes:
        yield "different workloads", Colour.YELLOW
    if comparison.simulated_sides:
        yield "simulated engine", Colour.NONE


def _main_rows(candidate: CandidateRows) -> list[Row]:
    """Select one row for the throughput, the errors and each latency; a share that is 0 on both
    sides is no news.
    """
    rows = {row.metric.name: row for row in candidate.rows if row.change is not None}
    main = [next((rows[name] for name in THROUGHPUTS if name in rows), None)]
    for latency in ANSWER_LATENCIES:
        names = [f"{latency}_{statistic}" for statistic in STATISTICS]
        shown = [rows[name] for name in names if name in rows]
        main.append(
            next((row for row in shown if row.interval is not None), shown[0] if shown else None)
        )
    errors = rows.get(ERROR_RATE)
    if errors is not None and errors.change:
        main.insert(0 if candidate.error_rates_differ else len(main), errors)
    return [row for row in main if row is not None]


def _changes(rows: Sequence[Row]) -> Iterator[str]:
    """Write the changes: first those that are significant, then those without an interval, then
    the others.
    """
    for word in SIGNIFICANT:
        if alike := [row for row in rows if row.conclusion is word]:
            count = {1: "", 2: "both "}.get(len(alike), "all ")
            yield (
                f"{_with_changes(alike)}, "
                f"{'which may be chance' if word is Conclusion.MAYBE else count + word}"
            )
    if alike := [row for row in rows if row.conclusion is Conclusion.UNKNOWN]:
        yield _with_changes(alike)
    others = [row for row in rows if row.conclusion is Conclusion.NO_SIGNIFICANT_DIFFERENCE]
    same = [row for row in others if _reach(row) <= SAME_WITHIN]
    if same:
        yield (
            f"{_enumeration(map(_name, same))} the same (within "
            f"{percent(max(map(_reach, same)), 1)})"
        )
    if alike := [row for row in others if row not in same]:
        widest = max(alike, key=_reach)
        yield f"no clear change of {_enumeration(map(_name, alike))} ({bounds(widest)})"


def _with_changes(rows: Iterable[Row]) -> str:
    return _enumeration(f"{_name(row)} {change(row)} ({_values(row)})" for row in rows)


def _values(row: Row) -> str:
    before, after = (
        values(row) if row.metric.is_share else map(three_digits, (row.baseline, row.candidate))
    )
    if before == after:  # the change is smaller than the digits show
        before, after = values(row)
    return f"{before} to {after}{unit(row)}"


def _enumeration(texts: Iterable[str]) -> str:
    *others, last = texts
    return f"{', '.join(others)} and {last}" if others else last


def _reach(row: Row) -> float:
    return max(map(abs, row.bounds or (math.inf,)))


def _name(row: Row) -> str:
    if row.metric.name in THROUGHPUTS:
        return "goodput" if row.metric.name == "goodput" else "throughput"
    return "errors" if row.metric.name == ERROR_RATE else row.metric.title


def _intervals(candidate: CandidateRows) -> str:
    """Write the intervals of the changes that are sure; if there are none, only their level."""
    sure = [
        f"{_name(row)} {bounds(row)}" for row in _main_rows(candidate) if row.conclusion in SURE
    ]
    return f"{CONFIDENCE_TEXT} intervals{': ' if sure else ''}{', '.join(sure)}"


def _certainty(comparison: Comparison, candidate: CandidateRows) -> Iterator[Part]:
    bases = candidate.bases
    counts = sorted({len(side.starts) for side in (comparison.baseline, candidate.candidate)})
    if Basis.STARTS in bases:
        of_each = " of each" if len(counts) == 1 else ""
        starts = start_word(comparison.baseline, candidate.candidate)
        yield (
            f"{_intervals(candidate)}, from {' and '.join(map(str, counts))} {starts}{of_each}",
            Colour.NONE,
        )
    elif Basis.NOISE in bases:
        yield f"{_intervals(candidate)}, from the noise of other starts", Colour.NONE
    elif Basis.WITHIN in bases:
        runs = "one run" if counts[0] == 1 else f"{counts[0]} runs"
        yield (
            f"from {runs} of each: a restart may change as much, give {MIN_STARTS} starts",
            Colour.YELLOW,
        )
    else:
        yield "no intervals: this may be chance", Colour.YELLOW


def _verdicts(baseline: Side, candidate: Side) -> Part:
    """Write the verdicts of the runs: "all VALID", "base VALID, new SUSPECT (1 of 3 runs)"."""
    sides = (baseline, candidate)
    worst = max((run.verdict for side in sides for run in side.starts), key=SEVERITY.index)
    partial = any(run.partial for side in sides for run in side.starts)
    verdict, other = map(_verdict, sides)
    text = f"{baseline.name} {verdict}, {candidate.name} {other}"
    if verdict == other:
        text = f"all {verdict}" if "(" not in verdict else f"both sides {verdict}"
    failed = (name for side in sides for run in side.starts for name in run.failed_checks)
    reasons = first_of(list(dict.fromkeys(failed)), MAX_REASONS)
    return (
        f"{text}: {reasons}" if reasons else text,
        Colour.RED if partial else VERDICT_COLOURS.get(worst, Colour.NONE),
    )


def _verdict(side: Side) -> str:
    worst = max((run.verdict for run in side.starts), key=SEVERITY.index)
    count, runs = sum(run.verdict == worst for run in side.starts), len(side.starts)
    share = "" if count == runs else f" ({count} of {runs} runs)"
    return f"{worst or NO_VERDICT}{share}" + (
        " and partial" if any(run.partial for run in side.starts) else ""
    )
