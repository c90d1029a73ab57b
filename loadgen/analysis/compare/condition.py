"""Condition: what a change must not be, as `ttft_p99>+5%`, `output_throughput<-3%`, `error_rate>+1pp`."""

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from loadgen.analysis.compare.comparison import Beside, Comparison
from loadgen.analysis.compare.interval import Basis
from loadgen.analysis.compare.metrics import ERROR_RATE, Metric, meant, named
from loadgen.analysis.compare.rendering import AT, bounds, change
from loadgen.analysis.compare.row import Row
from loadgen.errors import BadInput

FLAG = "--fail-if"
_CONDITION = re.compile(r"\s*(\w[\w.]*)\s*([<>])\s*([+-]?[0-9.]+)\s*(%|pp)\s*")
_EXAMPLE = 'write e.g. "ttft_p99>+5%", "output_throughput<-3%" or "error_rate>+1pp"'


@dataclass(frozen=True, slots=True)
class Condition:
    """A bound on a change, beyond which it fails.

    Attributes:
        text: As it was written.
        metric: Of which the change is.
        above: Whether beyond is above.
        bound: As a share of the baseline's value; for a share, of its difference.
    """

    text: str
    metric: Metric
    above: bool
    bound: float

    def beyond(self, value: float) -> bool:
        """Whether a change is."""
        return value > self.bound if self.above else value < self.bound


@dataclass(frozen=True, slots=True)
class Judged:
    """A condition held against a row.

    Attributes:
        condition: Which.
        side: Beside the baseline.
        failed: Whether the change is beyond the bound: all of its interval; where there is none, the point alone. None
            where the runs do not tell.
        why: In words.
    """

    condition: Condition
    side: str
    failed: bool | None
    why: str

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return {"condition": self.condition.text, "side": self.side, "failed": self.failed, "why": self.why}

    def __str__(self) -> str:
        held = {True: "FAILED", False: "passed", None: "not judged:"}[self.failed]
        return f"{held} {self.condition.text} ({self.side}): {self.why}"


def parse(texts: Iterable[str]) -> list[Condition]:
    """Read conditions; each text may have several, with commas between them.

    Raises:
        BadInput: One that is not understood.
    """
    return [_condition(part.strip()) for text in texts for part in text.split(",")]


def _condition(text: str) -> Condition:
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise BadInput(FLAG, f"{text!r} is no condition on a change", _EXAMPLE)
    name, sign, number, unit = match.groups()
    metric = named(name)
    if metric is None:
        near = meant(name)
        remedy = f"write {near.name}" if near else "the table's first column names them"
        raise BadInput(FLAG, f"{text!r} is on no metric that is known", remedy)
    if metric.is_share != (unit == "pp"):
        how = "a share, whose changes are percentage points" if metric.is_share else "no share"
        raise BadInput(
            FLAG, f"{text!r}: {name} is {how}", f"write {name}{sign}{number}{'pp' if metric.is_share else '%'}"
        )
    try:
        return Condition(text, metric, sign == ">", float(number) / 100)
    except ValueError as error:
        raise BadInput(FLAG, f"{text!r} has no number", _EXAMPLE) from error


def judge(comparison: Comparison, conditions: Iterable[Condition]) -> list[Judged]:
    """Hold every condition against every side.

    Raises:
        BadInput: A metric that some side does not have.
    """
    return [judged for condition in conditions for judged in _judged(comparison, condition)]


def _judged(comparison: Comparison, condition: Condition) -> Iterator[Judged]:
    for beside in comparison.each:
        if why := _why_not(comparison, beside, condition):
            yield Judged(condition, beside.side.name, None, why)
            continue
        row = next((row for row in beside.rows if row.metric == condition.metric), None)
        if row is None:
            problem = f"{condition.text!r}: {condition.metric.name} is not known of both"
            raise BadInput(FLAG, problem, "leave it out, or compare results that have it")
        if row.change is None:
            yield Judged(condition, beside.side.name, None, "of a baseline of 0 no change can be told")
            continue
        yield Judged(condition, beside.side.name, *_held(row, row.change, condition))


def _why_not(comparison: Comparison, beside: Beside, condition: Condition) -> str:
    """Why a condition cannot be judged of a side, in words; empty where it can."""
    doubts = [*comparison.base.doubts, *beside.side.doubts]
    return "; ".join(doubts) or (beside.survivors if condition.metric.of_the_ok else "")


def _held(row: Row, value: float, condition: Condition) -> tuple[bool, str]:
    """Whether it fails, and why."""
    point = f"{change(row)} is beyond" if condition.beyond(value) else f"{change(row)} is not beyond"
    if row.bounds is None:
        why = f"{point} by the point alone (no interval: {row.why}): whether it is noise is not known"
        return condition.beyond(value), why
    if row.metric.name == ERROR_RATE:  # a request that failed did fail: no noise takes that back
        return condition.beyond(value), point
    near = row.bounds[0] if condition.above else row.bounds[1]
    failed = condition.beyond(near) and math.isfinite(near)
    interval = f"{AT} interval {bounds(row)}"
    if not condition.beyond(value):
        return False, f"{point}, {interval}"
    noise = "the noise" if row.interval and row.interval.basis is not Basis.WITHIN else "the noise within the run"
    return failed, f"{point}, {'all' if failed else 'not all'} of its {interval}; {_more(row)} {noise}"


def _more(row: Row) -> str:
    return "more than" if row.interval and row.interval.leaves_out_none else "no more than"
