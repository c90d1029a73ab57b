"""Comparison: candidates against a baseline, metric by metric, with conclusions corrected for
the number of tests.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain

from loadgen.analysis.compare import workload
from loadgen.analysis.compare.confidence_interval import CONFIDENCE, Basis, NoiseFile
from loadgen.analysis.compare.metrics import DEFAULT_METRICS, Metric, in_table_order
from loadgen.analysis.compare.pair import MAX_ERROR_RATE, Conclusion, Pair, Row
from loadgen.analysis.compare.side import (
    Side,
    check_distinct,
    have_other_seeds,
    repeats_seed,
    together,
)
from loadgen.analysis.compare.workload import Difference
from loadgen.checks import prefix_cache
from loadgen.errors import BadInput, setting
from loadgen.stats import hypothesis_tests
from loadgen.util.number_format import first_of, percent

MAX_NAMED = 3  # runs in a note
# Better and worse, by whether the interval contains the variation between starts.
WORDS = {
    True: (Conclusion.BETTER, Conclusion.WORSE),
    False: (Conclusion.BETTER_HERE, Conclusion.WORSE_HERE),
}


@dataclass(frozen=True)
class CandidateRows:
    """A candidate compared with the baseline.

    Attributes:
        candidate: The side that is compared.
        rows: The rows of the metrics that both sides have.
        repeated: Metrics without a row, each with the metric that it is a fixed multiple of in
            every run.
        differences: Between the environments of the two sides.
        unanswered: Names of the sides in some run of which no request succeeded.
        error_rates_differ: Error rates of both sides, if they differ too much to compare latencies;
            else empty.
        block_length: In requests, if any interval is within the run.
    """

    candidate: Side
    rows: tuple[Row, ...]
    repeated: Mapping[str, str]
    differences: tuple[Difference, ...]
    unanswered: tuple[str, ...]
    error_rates_differ: str
    block_length: int | None

    def row(self, metric: str) -> Row | None:
        """Return the row of a metric, such as ttft_p99; None if not both sides have it, or
        `repeated` names it.
        """
        return next((row for row in self.rows if row.metric.name == metric), None)

    @property
    def bases(self) -> set[Basis]:
        """The sources of noise of all intervals."""
        return {row.interval.basis for row in self.rows if row.interval is not None}

    @property
    def tested_rows(self) -> list[Row]:
        """The rows that may be called better or worse: by starts or batch means, of comparable
        requests.
        """
        if self.unanswered:
            return []
        rows = [row for row in self.rows if row.interval and row.interval.basis is not Basis.WITHIN]
        return [row for row in rows if not (self.error_rates_differ and row.metric.of_successes)]


@dataclass(frozen=True)
class Comparison:
    """All candidates compared with the baseline.

    Attributes:
        baseline: The first side.
        candidates: The others.
        notes: Warnings to read before any number.
        clashes: Differences between workloads that should be the same, one text for each pair of
            sides.
    """

    baseline: Side
    candidates: tuple[CandidateRows, ...]
    notes: tuple[str, ...]
    clashes: tuple[str, ...] = ()

    @property
    def sides(self) -> list[Side]:
        """All sides, the baseline first."""
        return [self.baseline, *(candidate.candidate for candidate in self.candidates)]

    @property
    def simulated_sides(self) -> list[str]:
        """Names of the sides that measured loadgen's own simulator."""
        return [side.name for side in self.sides if any(run.simulated for run in side.starts)]

    @property
    def tested_rows(self) -> list[Row]:
        """The rows that may be called better or worse: none if some run is unusable."""
        if self.has_unusable_runs:
            return []
        return list(chain.from_iterable(candidate.tested_rows for candidate in self.candidates))

    @property
    def has_unusable_runs(self) -> bool:
        """Whether some run is INVALID or partial, so that no row is called better or worse."""
        return any(side.unusable_runs for side in self.sides)


def compare(
    sides: Sequence[Side],
    *,
    noise: NoiseFile | None = None,
    extra_metrics: Iterable[Metric] = (),
    anyway: bool = False,
) -> Comparison:
    """Compare sides with the first one.

    Args:
        sides: Two or more.
        noise: The variation between starts, from a file; None: there is no such file.
        extra_metrics: Metrics besides DEFAULT_METRICS.
        anyway: Also compare runs of different workloads.

    Raises:
        BadInput: The workloads differ, or a run is on two sides.
    """
    check_distinct(sides)
    baseline, *others = sides = together(sides)
    clashes = [
        f"{runs} have different workloads: {', '.join(map(str, differences))}"
        for runs, differences in _clashes(sides, noise)
        if differences
    ]
    if clashes and not anyway:
        raise BadInput((), clashes[0], f"name runs of one workload, or add {setting.anyway}")
    requested = tuple(extra_metrics)
    metrics = in_table_order((*DEFAULT_METRICS, *requested))
    read_requests = cache(lambda side: side.read_requests(metrics))
    pairs = [Pair(baseline, other, noise, read_requests) for other in others]
    candidates = tuple(_compare_pair(pair, metrics, requested) for pair in pairs)
    return _with_conclusions(Comparison(baseline, candidates, tuple(_notes(sides)), tuple(clashes)))


def _clashes(
    sides: Sequence[Side], noise: NoiseFile | None
) -> Iterator[tuple[str, Sequence[Difference]]]:
    """Yield the runs that must have the same workload, and the differences between their
    workloads.
    """
    baseline = sides[0]
    for side in sides:
        yield f"the runs of {side.path}", side.workload_differences
    for side in sides[1:]:
        differences = baseline.starts[0].workload_differences(side.starts[0])
        may_differ = noise is None and not any(map(repeats_seed, (baseline, side)))
        if have_other_seeds(baseline, side) and not may_differ:
            differences = [Difference("--seed", "one", "another, which no start varies")]
        yield f"{baseline.path} and {side.path}", differences
    reference = next(
        (run for side in sides for run in side.starts if run.tool == workload.OWN), None
    )
    if (
        noise is not None and reference is not None
    ):  # of another tool's run the workload is not known
        yield (
            f"{reference.where} and the noise file",
            workload.workload_differences(reference.workload, noise.workload),
        )


def _notes(sides: Sequence[Side]) -> Iterator[str]:
    meaning = sides[0].meaning
    if others := [
        run.where for side in sides for run in side.starts if run.meaning.clock != meaning.clock
    ]:
        yield f"all latencies are from {meaning.clock}, also those of {first_of(others, MAX_NAMED)}"
    for side in sides[1:]:
        if have_other_seeds(sides[0], side):
            names = f"{sides[0].name} and {side.name}"
            yield f"{names} have different seeds: a difference may be one of their requests"
    for side in sides:
        yield from side.unusable_runs
        for run in side.starts:
            yield from run.warnings
            if run.error_rate is not None and run.error_rate > MAX_ERROR_RATE:
                lost = percent(run.error_rate, 1)
                rest = (
                    "its latencies are those of the rest"
                    if run.error_rate < 1
                    else "it has no latencies"
                )
                yield f"{run.where}: the server failed {lost} of its requests; {rest}"
            if run.cached_share:
                share = percent(run.cached_share, 1)
                yield (
                    f"{run.where}: the server had {share} of the input cached before the run; "
                    f"{prefix_cache.ADVICE}"
                )
        if environment := side.environment_differences:
            differences = ", ".join(map(str, environment))
            yield f"the starts of {side.name} differ: {differences}"


def _compare_pair(
    pair: Pair, metrics: Iterable[Metric], requested: Iterable[Metric]
) -> CandidateRows:
    repeated = {
        metric: first
        for metric in metrics
        if metric not in requested and (first := pair.multiple_of(metric))
    }
    rows = tuple(row for metric in metrics if metric not in repeated and (row := pair.row(metric)))
    within = any(row.interval is not None and row.interval.basis is Basis.WITHIN for row in rows)
    return CandidateRows(
        candidate=pair.candidate,
        rows=rows,
        repeated={metric.name: first.name for metric, first in repeated.items()},
        differences=tuple(
            pair.baseline.starts[0].environment_differences(pair.candidate.starts[0])
        ),
        unanswered=tuple(side.name for side in pair.sides if side.has_unanswered_run),
        error_rates_differ=pair.error_rates_differ,
        block_length=pair.block_length if within else None,
    )


def _with_conclusions(comparison: Comparison) -> Comparison:
    """Add conclusions: better and worse are corrected by Holm's procedure for all rows that are
    tested.
    """
    p_values = [row.interval.p_value for row in comparison.tested_rows if row.interval is not None]
    largest = hypothesis_tests.largest_rejected(p_values, 1 - CONFIDENCE)
    candidates = []
    for candidate in comparison.candidates:
        rows = [
            replace(row, conclusion=_conclusion(row, candidate, largest)) for row in candidate.rows
        ]
        candidates.append(replace(candidate, rows=tuple(rows)))
    return replace(comparison, candidates=tuple(candidates))


def _conclusion(row: Row, candidate: CandidateRows, largest_p: float | None) -> Conclusion:
    interval, more_is_better = row.interval, row.metric.more_is_better
    if interval is None:
        return Conclusion.UNKNOWN
    significant = largest_p is not None and interval.p_value <= largest_p
    if significant and more_is_better is not None and row in candidate.tested_rows:
        better, worse = WORDS[interval.basis.is_of_starts]
        return better if (interval.low > 0) == more_is_better else worse
    return Conclusion.MAYBE if interval.excludes_zero else Conclusion.NO_SIGNIFICANT_DIFFERENCE
