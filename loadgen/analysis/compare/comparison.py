"""Comparison: sides held against the first of them, metric by metric, and what may be said of each difference."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from loadgen.analysis.compare import workload
from loadgen.analysis.compare.interval import CONFIDENCE, Basis
from loadgen.analysis.compare.metrics import USUAL, Metric
from loadgen.analysis.compare.noise_file import NoiseFile
from loadgen.analysis.compare.pair import MOST_ERRORS, Pair
from loadgen.analysis.compare.row import Row, Word
from loadgen.analysis.compare.side import Side, check_apart
from loadgen.analysis.compare.workload import Difference
from loadgen.checks import prefix_cache
from loadgen.errors import BadInput
from loadgen.util.number_format import percent


@dataclass(frozen=True)
class Beside:
    """A side beside the baseline.

    Attributes:
        side: Which.
        rows: Of the metrics that both have.
        repeated: Metrics without a row, each with the one of which it is a fixed multiple in every run.
        otherwise: What they are unlike in besides.
        survivors: Why latencies are not of the same requests on both sides; empty where they are.
        block: How long blocks of requests were, where any interval is within the runs.
    """

    side: Side
    rows: tuple[Row, ...]
    repeated: Mapping[str, str]
    otherwise: tuple[Difference, ...]
    survivors: str
    block: int | None

    @property
    def judged(self) -> list[Row]:
        """The rows that may be called better or worse."""
        known = [row for row in self.rows if row.interval and row.interval.basis is not Basis.WITHIN]
        return [row for row in known if not (self.survivors and row.metric.of_the_ok)]


@dataclass(frozen=True)
class Comparison:
    """Sides, the first of which is the baseline.

    Attributes:
        base: That.
        each: The others beside it.
        notes: What is to be known before any number.
    """

    base: Side
    each: tuple[Beside, ...]
    notes: tuple[str, ...]

    @property
    def sides(self) -> list[Side]:
        """All of them, the baseline first."""
        return [self.base, *(beside.side for beside in self.each)]

    @property
    def judged(self) -> list[Row]:
        """The rows that may be called better or worse: none where nothing follows from some run."""
        return [] if self.doubted else [row for beside in self.each for row in beside.judged]

    @property
    def doubted(self) -> bool:
        """Whether nothing follows from some run, so that no difference is called better or worse."""
        return any(side.doubts for side in self.sides)


def compare(
    sides: Sequence[Side], *, noise: NoiseFile | None = None, more: Iterable[Metric] = (), anyway: bool = False
) -> Comparison:
    """Hold sides against the first.

    Args:
        sides: Two or more.
        noise: What starts of one thing differ by, if that was kept.
        more: Metrics that are looked at besides the usual ones.
        anyway: Also compare runs that asked different things.

    Raises:
        BadInput: They did, or a run stands on two sides.
    """
    base, *others = sides
    check_apart(sides)
    clashes = [f"{who} asked different things: {listed(why)}" for who, why in _clashes(sides, noise) if why]
    if clashes and not anyway:
        raise BadInput("FILE", clashes[0], "name runs of one workload, or add --anyway")
    wanted = tuple(more)
    metrics = tuple(dict.fromkeys((*USUAL, *wanted)))
    samples = cache(lambda side: side.samples(metrics))
    each = tuple(_beside(base, other, Pair(base, other, noise, samples), metrics, wanted) for other in others)
    return _worded(Comparison(base, each, (*clashes, *_notes(sides))))


def listed(differences: Iterable[Difference]) -> str:
    """Differences in one line."""
    return ", ".join(map(str, differences))


def _clashes(sides: Sequence[Side], noise: NoiseFile | None) -> Iterator[tuple[str, Sequence[Difference]]]:
    """Who, and in what they did not ask the same."""
    base, reference = sides[0], sides[0].starts[0].workload
    for side in sides:
        yield f"the runs of {side.path}", side.unlike
    for side in sides[1:]:
        yield f"{base.path} and {side.path}", workload.unlike(reference, side.starts[0].workload)
    if noise is not None:
        yield f"{base.path} and the runs of the noise", workload.unlike(reference, noise.workload)


def _notes(sides: Sequence[Side]) -> Iterator[str]:
    if simulated := [side.name for side in sides if any(start.simulated for start in side.starts)]:
        yield f"SIMULATED ENGINE ({', '.join(simulated)}): the numbers describe loadgen's simulator, no real server"
    for side in sides:
        yield from side.doubts
        for start in side.starts:
            if start.error_rate is not None and start.error_rate > MOST_ERRORS:
                lost = percent(start.error_rate, 1)
                rest = "its latencies are those of the rest" if start.error_rate < 1 else "it has no latencies"
                yield f"{start.where}: the server failed {lost} of its requests; {rest}"
            if start.cached:
                share = percent(start.cached, 1)
                yield f"{start.where}: the server had {share} of the input cached before the run; {prefix_cache.ADVICE}"
        if side.otherwise:
            yield f"the starts of {side.name} are not of one thing: {listed(side.otherwise)}"


def _beside(base: Side, other: Side, pair: Pair, metrics: Iterable[Metric], wanted: Iterable[Metric]) -> Beside:
    firsts = {metric: first for metric in metrics if metric not in wanted and (first := pair.repeated(metric))}
    rows = tuple(row for metric in metrics if metric not in firsts and (row := pair.row(metric)))
    within = any(row.interval is not None and row.interval.basis is Basis.WITHIN for row in rows)
    return Beside(
        side=other,
        rows=rows,
        repeated={metric.name: first.name for metric, first in firsts.items()},
        otherwise=tuple(workload.otherwise(base.starts[0].facts, other.starts[0].facts)),
        survivors=pair.survivors,
        block=pair.block if within else None,
    )


def _worded(comparison: Comparison) -> Comparison:
    """With words: by Holm's procedure (Scand. J. Stat. 6, 1979) over all rows of which something is known of starts."""
    chances = sorted(row.interval.by_chance for row in comparison.judged if row.interval is not None)
    sure = 0  # rows that count
    while sure < len(chances) and chances[sure] <= (1 - CONFIDENCE) / (len(chances) - sure):
        sure += 1
    most = chances[sure - 1] if sure else -1.0
    return replace(
        comparison,
        each=tuple(
            replace(beside, rows=tuple(_with_word(row, beside, most) for row in beside.rows))
            for beside in comparison.each
        ),
    )


def _with_word(row: Row, beside: Beside, most: float) -> Row:
    """A row with the word that may be said of it, where chances up to `most` count."""
    found = row.interval
    if found is None:
        word = Word.UNKNOWN
    elif row in beside.judged and found.by_chance <= most and row.metric.more_is_better is not None:
        word = Word.BETTER if (found.low > 0) == row.metric.more_is_better else Word.WORSE
    else:
        word = Word.DIFFERS if found.leaves_out_none else Word.NOT_TOLD_APART
    return replace(row, word=word)
