"""JudgedComparison: a comparison, and the conditions of --fail-if on its changes that hold or not.

A condition is such as `ttft_p99>+5%`, `output_throughput<-3%` or `error_rate>+1pp`.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from loadgen.analysis.compare import json_report
from loadgen.analysis.compare.comparison import CandidateRows, Comparison, compare
from loadgen.analysis.compare.confidence_interval import (
    MAX_STARTS,
    ConfidenceInterval,
    NoiseFile,
)
from loadgen.analysis.compare.metrics import (
    ERROR_RATE,
    NAMES_TEXT,
    Metric,
    metric_by_name,
    similar_metric,
)
from loadgen.analysis.compare.page import render
from loadgen.analysis.compare.pair import CONSTANT, Row
from loadgen.analysis.compare.side import MIN_STARTS, Side
from loadgen.analysis.compare.texts import (
    CONFIDENCE_TEXT,
    UNKNOWN_NOISE,
    bounds,
    change,
    no_success,
)
from loadgen.errors import BadInput, setting
from loadgen.report.gate import Demand

FLAG = setting.fail_if
REMEDY = f"give {MIN_STARTS} starts of each side, or --noise"
_CONDITION = re.compile(r"\s*(\w[\w.:/ ]*?)\s*([<>])\s*([+-]?[0-9.]+)\s*(%|pp)\s*")
_EXAMPLE = 'write e.g. "ttft_p99>+5%", "output_throughput<-3%" or "error_rate>+1pp"'


@dataclass(frozen=True, slots=True)
class Condition:
    """A bound on the change of a metric; the condition fails if the change is beyond it.

    Attributes:
        text: As the user wrote it.
        metric: That changes.
        above: Whether beyond means above the bound, else below.
        bound: As a share of the baseline's value; for a metric that is a share, a difference.
    """

    text: str
    metric: Metric
    above: bool
    bound: float

    def is_beyond(self, value: float) -> bool:
        """Tell whether a change is beyond the bound."""
        return value > self.bound if self.above else value < self.bound

    @property
    def scaled_bound(self) -> float:
        """The bound on the scale of differences; infinite where no change reaches it."""
        if self.metric.is_share:
            return self.bound
        return math.log1p(self.bound) if self.bound > -1 else -math.inf


@dataclass(frozen=True, slots=True)
class Judgement:
    """The result of a condition for a candidate.

    Attributes:
        condition: That was tested.
        side: Name of the candidate.
        failed: True if all of the interval of the change is beyond the bound, False if nothing of
            it is; of a change that has no noise, whether it is. None if the runs cannot tell.
        why: The reason, for people.
        starts: If the runs cannot tell, about how many starts of each side would; None: unknown.
    """

    condition: Condition
    side: str
    failed: bool | None
    why: str
    starts: int | None = None

    @property
    def demand(self) -> Demand:
        """The demand of a gate that the condition does not hold."""
        met = None if self.failed is None else not self.failed
        return Demand(f"fail if {self.condition.text} ({self.side})", met, self.why)

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return {
            "condition": self.condition.text,
            "side": self.side,
            "failed": self.failed,
            "why": self.why,
            "starts": self.starts,
        }

    def __str__(self) -> str:
        verdict = {True: "FAILED", False: "passed", None: "cannot tell"}[self.failed]
        return f"{verdict} {self.condition.text} ({self.side}): {self.why}"


@dataclass(frozen=True, repr=False)
class JudgedComparison(Comparison):
    """Candidates compared with a baseline, and what follows for each condition. `str` gives the
    report.

    Attributes:
        judgements: One for each condition and candidate: `failed` is True, False, or None if the
            runs cannot tell.
    """

    judgements: tuple[Judgement, ...] = ()

    @classmethod
    def of(
        cls, sides: Sequence[Side], *, noise: NoiseFile | None, fail_if: Iterable[str], anyway: bool
    ) -> "JudgedComparison":
        """Compare sides with the first one, and test conditions on the changes.

        Args:
            sides: Two or more.
            noise: The variation between starts, from a file.
            fail_if: Conditions, such as "ttft_p99>+5%".
            anyway: Also compare runs of different workloads.

        Raises:
            BadInput: A condition is malformed, the workloads differ, or a run is on two sides.
        """
        conditions = parse(fail_if)
        metrics = [condition.metric for condition in conditions]
        comparison = compare(sides, noise=noise, extra_metrics=metrics, anyway=anyway)
        judgements = tuple(judge(comparison, conditions))
        return cls(
            comparison.baseline,
            comparison.candidates,
            comparison.notes,
            comparison.clashes,
            judgements,
        )

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON; docs/compare.md describes its keys."""
        return json_report.as_json(self) | {
            "conditions": [judgement.to_dict() for judgement in self.judgements]
        }

    def __str__(self) -> str:
        return render(self) + "".join(f"{judgement}\n" for judgement in self.judgements)

    def __repr__(self) -> str:
        names = ", ".join(side.name for side in self.sides[1:])
        return f"<JudgedComparison of {names} with {self.baseline.name}>"


def parse(texts: Iterable[str]) -> list[Condition]:
    """Parse conditions; each text may have several, with commas between them.

    Raises:
        BadInput: A condition is malformed.
    """
    conditions: list[Condition] = []
    for text in texts:
        conditions += [_condition(part.strip()) for part in text.split(",")]
    return conditions


def judge(comparison: Comparison, conditions: Iterable[Condition]) -> list[Judgement]:
    """Test every condition on every candidate.

    Raises:
        BadInput: A side does not have the metric.
    """
    judgements: list[Judgement] = []
    for condition in conditions:
        judgements += _judge(comparison, condition)
    return judgements


def _condition(text: str) -> Condition:
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise BadInput(FLAG, f"{text!r} is not a condition on a change", _EXAMPLE)
    name, sign, number, unit = match.groups()
    metric = metric_by_name(name)
    if metric is None:
        near = similar_metric(name)
        remedy = f"write {near.name}" if near else f"write one of {NAMES_TEXT}"
        raise BadInput(FLAG, f"{text!r}: unknown metric {name!r}", remedy)
    if metric.is_share != (unit == "pp"):
        kind = "a share, whose changes are percentage points" if metric.is_share else "not a share"
        raise BadInput(
            FLAG,
            f"{text!r}: {name} is {kind}",
            f"write {name}{sign}{number}{'pp' if metric.is_share else '%'}",
        )
    try:
        return Condition(text, metric, sign == ">", float(number) / 100)
    except ValueError as error:
        raise BadInput(FLAG, f"{text!r}: {number!r} is not a number", _EXAMPLE) from error


def _judge(comparison: Comparison, condition: Condition) -> Iterator[Judgement]:
    for candidate in comparison.candidates:
        name = candidate.candidate.name
        if why := _obstacle(comparison, candidate, condition.metric):
            yield Judgement(condition, name, None, why)
            continue
        row = candidate.row(condition.metric.name)
        if row is None:
            problem = f"{condition.text!r}: not both sides have {condition.metric.name}"
            raise BadInput(FLAG, problem, "leave it out, or compare results that have it")
        if row.change is None:
            why = "the baseline is 0, so there is no relative change"
            yield Judgement(condition, name, None, why)
            continue
        yield Judgement(condition, name, *_test(row, row.change, condition))


def _obstacle(comparison: Comparison, candidate: CandidateRows, metric: Metric) -> str:
    """Say what prevents a judgement of a metric; empty if nothing does."""
    unusable = [*comparison.baseline.unusable_runs, *candidate.candidate.unusable_runs]
    if metric.of_successes and not unusable:
        if candidate.error_rates_differ:
            return candidate.error_rates_differ
        if candidate.unanswered:
            return no_success(candidate)
    return "; ".join(unusable)


def _test(
    row: Row, value: float, condition: Condition
) -> tuple[bool | None, str] | tuple[None, str, int | None]:
    is_beyond = condition.is_beyond(value)
    point = f"{change(row)} is {'' if is_beyond else 'not '}beyond the bound"
    if is_exact(row):  # a failed request is a fact, so noise is no excuse
        return is_beyond, point
    if row.interval is None or row.bounds is None:
        why = f"no interval: {row.why_no_interval}"
        if row.why_no_interval == CONSTANT:
            return is_beyond, f"{point}; {why}"
        return None, f"{point} by the point estimate alone ({why}); {REMEDY}", MIN_STARTS
    interval = f"{CONFIDENCE_TEXT} interval {bounds(row)}"
    if not row.interval.basis.is_of_starts:
        return None, f"{point}, {interval}; {UNKNOWN_NOISE}: {REMEDY}", MIN_STARTS
    ends = [condition.is_beyond(end) for end in row.bounds]
    if ends[0] == ends[1]:
        return is_beyond, f"{point}, with all of its {interval}"
    starts = _starts_to_tell(row.interval, condition)
    decides = (
        f"about {starts} starts of each side would tell, if the change stays as it is"
        if starts
        else f"no {MAX_STARTS} starts would tell: choose another bound, or a metric with less noise"
    )
    return None, f"{point}, but not all of its {interval} is; {decides}", starts


def _starts_to_tell(interval: ConfidenceInterval, condition: Condition) -> int | None:
    """Return how many starts of each side would tell; None: too many."""
    middle = (interval.low + interval.high) / 2
    assert interval.start_noise is not None
    return interval.start_noise.starts_to_tell(abs(middle - condition.scaled_bound))


def is_exact(row: Row) -> bool:
    """Tell whether a change has no noise: errors are counted, and a rate that fell to 0 counts
    nothing.
    """
    fell_to_0 = row.metric.counted is not None and not row.candidate
    return row.metric.name == ERROR_RATE or fell_to_0
