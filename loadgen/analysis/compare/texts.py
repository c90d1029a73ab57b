"""The numbers of a comparison as text, and the lines that explain them."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from loadgen.analysis.compare.comparison import CandidateRows, Comparison
from loadgen.analysis.compare.confidence_interval import CONFIDENCE, Basis, NoiseFile
from loadgen.analysis.compare.metrics import metric_by_name
from loadgen.analysis.compare.pair import Conclusion, Row
from loadgen.analysis.compare.side import MIN_STARTS, Side
from loadgen.document import Table
from loadgen.report.sections.latencies import FEW, INEXACT
from loadgen.stats.batch_means import BATCHES
from loadgen.util.number_format import in_table, percent, signed

CONFIDENCE_TEXT = f"{100 * CONFIDENCE:g}%"
NO_VERDICT = "no verdict"
SURE = (Conclusion.BETTER, Conclusion.WORSE)
HERE = (Conclusion.BETTER_HERE, Conclusion.WORSE_HERE)
SIGNIFICANT = (*SURE, *HERE, Conclusion.MAYBE)
MARKS = {FEW: "too few requests", INEXACT: "timing error of loadgen too large"}
UNKNOWN_NOISE = "noise between restarts unknown"
MAIN_METRICS = (
    *("goodput", "request_throughput", "output_throughput", "error_rate"),
    *("ttft_p50", "ttft_p99", "tpot_p50", "tpot_p99", "e2el_p50", "e2el_p99"),
)
SAME_WITHIN = 0.05  # an interval within this of 0 shows two values to be the same for most purposes
SAME, UNDECIDED = "the same", "undecided"  # words of rows without a significant difference
PERHAPS = {False: "perhaps better", True: "perhaps worse"}  # by whether the change is worse
NARROW_STEPS = 4  # rounding steps: rounding matters to intervals that are narrower


def values(row: Row) -> tuple[str, str]:
    """Format both values without unit but %, shares with two decimals, others as tables do; with
    more where these do not show a significant difference.
    """
    scale, usual = (100, 2) if row.metric.is_share else (1, 0)
    both = scale * row.baseline, scale * row.candidate
    digits = _decimals(both[1] - both[0], usual) if row.conclusion in SIGNIFICANT else usual
    first, second = (f"{value:.{digits}f}" for value in both)
    if row.metric.is_share:
        return f"{first}%", f"{second}%"
    return max(first, in_table(both[0]), key=len), max(second, in_table(both[1]), key=len)


def change(row: Row) -> str:
    """Format the change with its marks: "+1.6%", "-0.20pp", "+25.0%*"; n/a if the baseline is 0."""
    return "n/a" if row.change is None else f"{_signed(row.change, row)}{row.marks}"


def figure(row: Row) -> str:
    """Format what changed and by how much: "TTFT p99 +25.0%*"."""
    return f"{row.metric.title} {change(row)}"


def figure_with_bounds(row: Row) -> str:
    """Format what changed, by how much, and the interval: "TPOT p50 +5.0% (+3.4 to +6.7)"."""
    unit = "pp" if row.metric.is_share else "%"
    return f"{figure(row)} ({bounds(row).replace(unit, '')})" if row.bounds else figure(row)


def meanings_of_marks(rows: Iterable[Row]) -> Iterator[str]:
    """Yield what each mark in some rows means: "* too few requests"."""
    shown = {mark for row in rows for mark in row.marks}
    return (f"{mark} {meaning}" for mark, meaning in MARKS.items() if mark in shown)


def bounds(row: Row) -> str:
    """Format the interval of the change: "-0.5% to +0.6%"; empty without an interval."""
    return "" if row.bounds is None else " to ".join(_signed(end, row) for end in row.bounds)


def _signed(share: float, row: Row) -> str:
    """Format a share with as many decimals as show on which side of 0 a significant interval
    lies.
    """
    digits = 2 if row.metric.is_share else 1
    if row.bounds is not None and row.conclusion in SIGNIFICANT:
        digits = _decimals(100 * min(map(abs, row.bounds)), digits)
    return signed(share, digits).replace("%", "pp" if row.metric.is_share else "%")


def _decimals(number: float, usual: int) -> int:
    """Return how many decimals show that a number is not 0, at least `usual`."""
    return max(usual, math.ceil(-math.log10(abs(number)))) if number else usual


def runs(side: Side) -> str:
    """Summarize the runs: "3 starts, VALID (2), SUSPECT (1) for lag p99, 20250102-030405 to
    20250102-040506".
    """
    verdicts = Counter(run.verdict or NO_VERDICT for run in side.starts)
    parts = [f"{len(side.starts)} {start_word(side)}" if len(side.starts) > 1 else "1 run"]
    parts += [
        f"{name} ({count})" if len(verdicts) > 1 else name
        for name, count in sorted(verdicts.items(), reverse=True)
    ]
    if why := dict.fromkeys(name for run in side.starts for name in run.failed_checks):
        parts[-1] += f" for {' and '.join(why)}"
    dates = dict.fromkeys((side.starts[0].date, side.starts[-1].date))
    return ", ".join(filter(None, (*parts, " to ".join(dates))))


def start_word(*sides: Side) -> str:
    """Call runs starts if each has started its server, at a free port; a run at a server that was
    there may follow another, as in a series.
    """
    return "server starts" if all(map(_has_own_servers, sides)) else "runs"


def _has_own_servers(side: Side) -> bool:
    addresses = {run.address for run in side.starts}
    is_alone = len(addresses) == len(side.starts)
    return is_alone and all(run.has_own_server for run in side.starts)


def notes(comparison: Comparison) -> list[str]:
    """List the warnings that precede all numbers."""
    simulated = comparison.simulated_sides
    warning = (
        f"SIMULATED ENGINE ({', '.join(simulated)}): the numbers describe loadgen's "
        "simulator, not a real server"
    )
    return [*comparison.clashes, *([warning] if simulated else []), *comparison.notes]


def load(comparison: Comparison) -> str:
    """Describe the load of the first run, and whether it is that of all."""
    first = comparison.baseline.starts[0]
    return (
        f"Load of {comparison.baseline.quoted if comparison.clashes else 'each run'}: "
        f"{first.load_text}"
    )


def notable_rows(candidate: CandidateRows, quoted: Iterable[Row]) -> list[Row]:
    """Select the rows that are significant or quoted in the answer, and the main ones in any
    case; not those that are 0 on both sides.
    """
    told = {row.metric.name for row in quoted}
    return [
        row
        for row in candidate.rows
        if row.conclusion in SIGNIFICANT
        or row.metric.name in told
        or (row.metric.name in MAIN_METRICS and (row.baseline or row.candidate))
    ]


def word(row: Row) -> str:
    """Write the conclusion about a row, which is never empty."""
    if row.bounds is None:
        return "no interval"
    if row.conclusion is Conclusion.MAYBE:
        return PERHAPS[bool(row.is_worse)]
    if row.conclusion is not Conclusion.NO_SIGNIFICANT_DIFFERENCE:
        return str(row.conclusion)
    return SAME if max(map(abs, row.bounds)) <= SAME_WITHIN else UNDECIDED


def legend(comparison: Comparison, rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    """Yield the words about differences that are in some rows, each with its meaning."""
    words = set(map(word, rows))
    corrected = (
        f"at {CONFIDENCE_TEXT}, corrected for all {len(comparison.tested_rows)} rows that were "
        "tested (Holm)"
    )
    one_in = round(1 / (1 - CONFIDENCE))
    meanings: dict[str, str] = dict.fromkeys(SURE, corrected)
    meanings |= dict.fromkeys(HERE, f"in these runs, {corrected}; {UNKNOWN_NOISE}")
    meanings |= {
        **dict.fromkeys(
            PERHAPS.values(),
            f"significant only before the correction; 1 row in {one_in} is, by chance",
        ),
        SAME: f"the interval is within {percent(SAME_WITHIN, 0)} of 0",
        UNDECIDED: "the interval contains 0",
    }
    return ((each, meaning) for each, meaning in meanings.items() if each in words)


def explanations(
    comparison: Comparison, candidate: CandidateRows, rows: Sequence[Row]
) -> Iterator[str]:
    """Yield how to read some rows of a candidate, one line each."""
    bases = candidate.bases
    if Basis.WITHIN in bases:
        yield (
            f"Intervals are at {CONFIDENCE_TEXT}, from the variation within the run (blocks of "
            f"{candidate.block_length} requests). The variation between starts is unknown: give "
            f"{MIN_STARTS} starts of each side, or --noise."
        )
    if Basis.BATCHES in bases:
        yield (
            "Intervals of TPOT, ICL and ITL mean and p50 are from the variation between "
            f"{BATCHES} parts of the run. Between equal simulated servers, up to 1 in 7 was "
            "significant, and 1 in 2 where the noise was as slow as the run."
        )
    if Basis.STARTS in bases:
        yield (
            f"Intervals are at {CONFIDENCE_TEXT}, from the variation between the "
            f"{start_word(comparison.baseline, candidate.candidate)} of each side, "
            "each for its own row only."
        )
    if Basis.NOISE in bases:
        yield (
            f"Intervals are at {CONFIDENCE_TEXT}, from the noise of --noise and of the starts, "
            "each for its own row only."
        )
    if rounded := _rounding(candidate):
        yield f"Intervals include how exact the values are: {rounded}."
    if comparison.has_unusable_runs and bases - {Basis.WITHIN}:
        yield "No row is called better or worse, because some runs are INVALID or partial."
    if candidate.unanswered:
        yield f"No row is called better or worse, because {no_success(candidate)}."
    if candidate.error_rates_differ:
        yield (
            "No latency is called better or worse, because the error rates differ: "
            f"{candidate.error_rates_differ}."
        )
    if candidate.repeated:
        yield (
            "Left out, because they are fixed multiples of others in every run: "
            f"{_repeated(candidate)}."
        )
    for meaning in meanings_of_marks(rows):
        yield f"{meaning}."
    without: dict[str, list[str]] = {}
    for row in rows:
        if row.interval is None:
            without.setdefault(row.why_no_interval, []).append(row.metric.title)
    most = max(without.values(), key=len, default=[])
    for why, names in without.items():
        is_usual = not bases and names is most  # of most rows, none of which has an interval
        yield f"No interval ({why})" + ("." if is_usual else f": {', '.join(names)}.")


def no_success(candidate: CandidateRows) -> str:
    """Say that no request of a run succeeded: "no request succeeded in a run of "base"\"."""
    sides = (f'"{name}"' for name in candidate.unanswered)
    return f"no request succeeded in a run of {' and '.join(sides)}"


def _rounding(candidate: CandidateRows) -> str:
    """List rounding steps that matter to an interval: of throughputs a request, of latencies the
    timing error.
    """
    steps: dict[str, float] = {}
    for row in candidate.rows:
        if (
            row.interval is not None
            and row.interval.high - row.interval.low < NARROW_STEPS * row.resolution
        ):
            what = (
                "latencies to at most {} (the timing error of loadgen)"
                if row.metric.latency
                else f"{row.metric.title} to {{}} (a request)"
            )
            steps[what] = max(row.resolution, steps.get(what, 0.0))
    return ", ".join(
        what.format(percent(step, _decimals(100 * step, 2))) for what, step in steps.items()
    )


def _repeated(candidate: CandidateRows) -> str:
    names_by_metric: dict[str, dict[str, None]] = {}
    for names in candidate.repeated.items():
        metrics = map(metric_by_name, names)
        repeated, first = (
            metric.latency.upper()
            if metric and metric.latency
            else metric.title
            if metric
            else name
            for name, metric in zip(names, metrics, strict=True)
        )
        names_by_metric.setdefault(first, {})[repeated] = None
    return ", ".join(f"{', '.join(names)} ({first})" for first, names in names_by_metric.items())


def noise_table(file: NoiseFile) -> Table:
    """List the metrics of a noise file: the standard deviation of one start, and its degrees of
    freedom.
    """
    rows = []
    for name, noise in file.noise.items():
        metric = metric_by_name(name)
        first = file.noise.get(metric.may_repeat) if metric else None
        if first is not None and first.df == noise.df and math.isclose(first.sd, noise.sd):
            continue
        sd = percent(noise.sd, 2)
        shown = sd.replace("%", "pp") if metric and metric.is_share else sd
        rows.append((name, shown, f"({noise.df} df)"))
    return Table.of(("", "", ""), rows, text_columns=1)
