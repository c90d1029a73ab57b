"""Comparison: sides held against the first of them, metric by metric, and what may be said of each difference."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache

import numpy as np

from loadgen.comparing import interval, workload
from loadgen.comparing.interval import CONFIDENCE, Basis, Interval
from loadgen.comparing.metrics import REPEATED, STATISTICS, USUAL, Metric
from loadgen.comparing.noise_file import NoiseFile
from loadgen.comparing.side import LEAST_STARTS, Side, check_apart
from loadgen.comparing.workload import Difference
from loadgen.errors import BadInput
from loadgen.schedule import Floats


class Word(StrEnum):
    """What may be said of a difference."""

    BETTER = "better"  # allowing for all rows that are looked at
    WORSE = "worse"  # likewise
    DIFFERS = "differs"  # by the interval of its row alone
    NOT_TOLD_APART = "not told apart"
    UNKNOWN = "-"  # nothing tells


@dataclass(frozen=True, slots=True)
class Row:
    """A metric of two sides.

    Attributes:
        metric: Which.
        one: The baseline's value: of several starts the geometric mean, of shares the mean.
        other: The other side's.
        change: By how much that is more, as a share of the baseline's; of shares the difference. None beside a 0.
        interval: Of the difference of levels; None where nothing tells.
        why: Why nothing does.
        word: What may be said.
    """

    metric: Metric
    one: float
    other: float
    change: float | None
    interval: Interval | None
    why: str
    word: Word = Word.UNKNOWN

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Between what the change lies, in its unit."""
        if self.interval is None:
            return None
        return _change(self.interval.low, self.metric), _change(self.interval.high, self.metric)


@dataclass(frozen=True)
class Beside:
    """A side beside the baseline.

    Attributes:
        side: Which.
        rows: Of the metrics that both have.
        otherwise: What they are unlike in besides.
        block: How long blocks of requests were, where any interval is within the runs.
    """

    side: Side
    rows: tuple[Row, ...]
    otherwise: tuple[Difference, ...]
    block: int | None


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
    def rows(self) -> list[Row]:
        """All of them."""
        return [row for beside in self.each for row in beside.rows]

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
    each = tuple(_beside(base, other, wanted, noise) for other in others)
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
        if side.otherwise:
            yield f"the starts of {side.name} are not of one thing: {listed(side.otherwise)}"


def _beside(base: Side, other: Side, wanted: tuple[Metric, ...], noise: NoiseFile | None) -> Beside:
    metrics = dict.fromkeys((*USUAL, *wanted))
    length = cache(lambda: _block(base, other))  # records are read only where they are asked
    rows = [row for metric in metrics if (row := _row(metric, base, other, noise, length)) is not None]
    told = tuple(_without_repeated(rows, wanted))
    within = any(row.interval is not None and row.interval.basis is Basis.WITHIN for row in told)
    otherwise = tuple(workload.otherwise(base.starts[0].facts, other.starts[0].facts))
    return Beside(other, told, otherwise, length() if within else None)


def _row(
    metric: Metric, base: Side, other: Side, noise: NoiseFile | None, length: Callable[[], int | None]
) -> Row | None:
    """None where a run has no value."""
    one, two = base.levels(metric), other.levels(metric)
    if one is None or two is None:
        return None
    first, second = (float(levels.mean() if metric.is_share else np.exp(levels.mean())) for levels in (one, two))
    if not (np.isfinite(one).all() and np.isfinite(two).all()):  # logarithms, of which one is that of 0
        change = second / first - 1 if first else None if second else 0.0
        return Row(metric, first, second, change, None, "a value is 0")
    found = _interval(metric, base, other, (one, two), noise, length)
    if isinstance(found, Interval) and found.low == found.high:
        # No error in a run does not show that there never is one, nor times in one bucket that all are the same.
        found = "nothing of it was seen to vary"
    sure, why = (None, found) if isinstance(found, str) else (found, "")
    return Row(metric, first, second, _change(float(two.mean() - one.mean()), metric), sure, why)


def _interval(
    metric: Metric,
    base: Side,
    other: Side,
    levels: tuple[Floats, Floats],
    noise: NoiseFile | None,
    length: Callable[[], int | None],
) -> Interval | str:
    """Of the difference of the levels, or why there is none."""
    kept = None if noise is None else noise.each.get(metric.name)
    if kept is not None or min(map(len, levels)) >= LEAST_STARTS:
        return interval.by_starts(*levels, kept)
    if not metric.ours:
        return f"the server's own words need {LEAST_STARTS} starts of each"
    block = length()
    if block is None:
        return _no_records(base, other)
    samples = [side.samples for side in (base, other)]
    why = next((why for each in samples for sample in each if (why := sample.why_not(block))), None)
    if why is not None:
        return why
    found = interval.within(samples[0], samples[1], metric, float(levels[1].mean() - levels[0].mean()), block)
    return "of too few values" if found is None else found


def _block(base: Side, other: Side) -> int | None:
    """How long blocks must be for every run of two sides; None where some have no records."""
    samples = [*base.samples, *other.samples]
    if len(samples) < len(base.starts) + len(other.starts):
        return None
    return math.ceil(max(sample.enough for sample in samples))


def _no_records(base: Side, other: Side) -> str:
    kept = [start.kept for side in (base, other) for start in side.starts if start.records is None]
    names = [name for name in kept if name is not None]
    if len(names) == len(kept):
        return f"name the records instead of the result: {', '.join(names)}"
    return "keep --records"


def _change(difference: float, metric: Metric) -> float:
    """A difference of levels as it is told."""
    return difference if metric.is_share else math.expm1(difference)


def _without_repeated(rows: Sequence[Row], wanted: tuple[Metric, ...]) -> Iterator[Row]:
    """Without latencies of which all that is usual is the same as of another one, unless they are wanted."""
    values = {row.metric.name: (row.one, row.other) for row in rows}
    same = {
        name
        for name, first in REPEATED.items()
        if all(values.get(f"{name}_{each}") == values.get(f"{first}_{each}") for each in STATISTICS)
    }
    for row in rows:
        if row.metric in wanted or row.metric.latency is None or row.metric.latency[0] not in same:
            yield row


def _worded(comparison: Comparison) -> Comparison:
    """With words: by Holm's procedure (Scand. J. Stat. 6, 1979) over all rows of which something is known of starts."""
    known = [row.interval for row in comparison.rows if row.interval and row.interval.basis is not Basis.WITHIN]
    known.sort(key=lambda one: one.by_chance)
    most = -1.0  # the largest by_chance that counts
    for left, one in zip(range(len(known), 0, -1), known, strict=True):
        if comparison.doubted or one.by_chance > (1 - CONFIDENCE) / left:
            break
        most = one.by_chance
    each = tuple(
        replace(beside, rows=tuple(replace(row, word=_word(row, most)) for row in beside.rows))
        for beside in comparison.each
    )
    return replace(comparison, each=each)


def _word(row: Row, most: float) -> Word:
    found = row.interval
    if found is None:
        return Word.UNKNOWN
    if found.basis is not Basis.WITHIN and found.by_chance <= most and row.metric.more_is_better is not None:
        return Word.BETTER if (found.low > 0) == row.metric.more_is_better else Word.WORSE
    return Word.DIFFERS if found.leaves_out_none else Word.NOT_TOLD_APART
