"""The result of an arm in a step, what it achieved on each workload, and its difference from the
reference.
"""

import itertools
import json
import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from types import MappingProxyType
from typing import Any

from loadgen.lab.study.execute.trial import Trial, WorkloadRun
from loadgen.lab.study.plan.plan import PlannedArm
from loadgen.stats.group_sequential import Comparison
from loadgen.util import number_format
from loadgen.util.number_format import signed

BOUNDED_BY_LOAD = "max_seqs"  # a value above the number of requests in flight has no effect


class Unbounded(StrEnum):
    """Why a difference has no bounds."""

    SINGLE_RUNS = "single runs"
    FEW_BLOCKS = "too few blocks for bounds"
    DISTURBED = "too few undisturbed starts for bounds"
    APART = "not measured in the same blocks"


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of a value from the reference's, as a share of the latter.

    Attributes:
        share: Difference of the unrounded values.
        low: Lower bound at the study's confidence; None: unknown.
        high: Upper bound at the study's confidence; None: unknown.
        more_is_better: Whether an increase is a gain.
        unbounded: Why there are no bounds; None: there are some.
        other_work: How the work of the two differed; empty: they did the same.
    """

    share: float
    low: float | None
    high: float | None
    more_is_better: bool
    unbounded: Unbounded | None = None
    other_work: str = ""

    @classmethod
    def from_comparison(
        cls, comparison: Comparison, *, more_is_better: bool
    ) -> "Difference | None":
        """Convert a comparison of gains; None if it has no blocks."""
        if not comparison.blocks:
            return None
        change = comparison if more_is_better else comparison.inverted
        low = change.low if change.low > -1.0 else None
        high = change.high if math.isfinite(change.high) else None
        # A comparison in blocks has bounds, unless its blocks were disturbed too often.
        unbounded = Unbounded.DISTURBED if low is None and high is None else None
        return cls(change.effect, low, high, more_is_better, unbounded)

    @classmethod
    def without_bounds(
        cls, value: float, other: float, why: Unbounded, *, more_is_better: bool
    ) -> "Difference":
        """Compare values that have no bounds, and say why."""
        return cls(value / other - 1, None, None, more_is_better, why)

    @property
    def direction(self) -> int:
        """1 for a gain, -1 for a loss by its bounds, 0 if it may be either or has none."""
        if self.low is not None and self.low > 0:
            return 1 if self.more_is_better else -1
        if self.high is not None and self.high < 0:
            return -1 if self.more_is_better else 1
        return 0

    def bounds(self, digits: int) -> str:
        """Return the bounds in words: "+1.0% to +2.0%", "at least +1.0%"."""
        write = partial(signed, digits=digits)
        bounds = self.unbounded or number_format.bounds(
            self.low, self.high, write, "at least {}", "at most {}"
        )
        return f"{bounds}; {self.other_work}" if self.other_work else bounds

    def text(self, digits: int = 2) -> str:
        """Return difference and bounds: "+1.50% (+1.00% to +2.00%)"."""
        return f"{signed(self.share, digits)} ({self.bounds(digits)})"


class Verdict(StrEnum):
    """The outcome of an arm in its step."""

    REFERENCE = "reference"
    ADOPTED = "adopted"
    BETTER = "better"  # but another arm goes on
    NOT_SIGNIFICANT = "not significant"
    WORSE = "worse"
    SAME_AS = "same as"
    INFEASIBLE = "infeasible"
    NOT_JUDGED = "not judged"  # better, but its answers did not come in time
    FAILED = "failed"
    PRUNED = "pruned"
    NOT_RUN = "not run"
    OPEN = "open"  # it has run, and nothing is decided yet
    DRAWN = "drawn"  # by a joint stage, and tried once
    PUBLISHED = "published"  # by others, from one run, so that nothing is decided
    AUTHORS_CHOICE = "chosen by the author"  # of published results; nothing confirmed it


@dataclass(frozen=True)
class WorkloadResult:
    """The result of an arm on one workload.

    Attributes:
        runs: Runs that count, by block.
        scores: Value of the objective's metric in each block that has one.
        achieved: Geometric mean of the scores; None without any.
        total_tps: Input and output tokens/s of the box, geometric mean of the runs.
        user_tps: Output tokens/s that a user sees, 1000 / median TPOT in ms, mean of the runs.
        gpu_tps: Output tokens/s of each device in use, geometric mean of the runs.
        estimated: Whether values of the box were scaled up from a part of it.
        difference: Difference from the step's reference; None for the reference or if nothing can
            be compared.
    """

    runs: Mapping[int, WorkloadRun]
    scores: Mapping[int, float]
    achieved: float | None
    total_tps: float | None
    user_tps: float | None
    gpu_tps: float | None
    estimated: bool
    difference: Difference | None = None

    @property
    def middle(self) -> WorkloadRun:
        """The run with the median score; of two, the lower one."""
        order = sorted(self.scores, key=self.scores.__getitem__) or list(self.runs)
        return self.runs[order[(len(order) - 1) // 2]]

    @property
    def answer_tokens(self) -> float | None:
        """Mean number of tokens of an answer that succeeded; None if no run tells it."""
        counts = [
            (run.summary.get("total_output_tokens"), run.summary["completed"])
            for run in self.runs.values()
        ]
        pairs = [(tokens, answers) for tokens, answers in counts if tokens is not None and answers]
        if not pairs:
            return None
        mean: float = sum(tokens for tokens, _ in pairs) / sum(answers for _, answers in pairs)
        return mean

    def mean(self, name: str) -> float | None:
        """Return the arithmetic mean of a positive number of the summaries; None if no run has
        it.
        """
        values = positive_values(self.runs.values(), name)
        return statistics.fmean(values) if values else None


@dataclass(frozen=True)
class ArmResult:
    """The result of an arm in a step, as far as it has come.

    Attributes:
        planned: The arm.
        verdict: Its outcome.
        reason: Reason of the verdict: a limit that was missed, a failure, or the name of the arm it
            is the same as.
        trials: Its starts, failed ones included, in the order in which they ended.
        counted: Those of `trials` that count; the others failed, or were disturbed and repeated.
        values: Value of the objective, block by block.
        misses: Number of starts that missed a limit of the study.
        comparison: Comparison with the reference; None if there is none.
        notes: Further remarks by their subject: answers, bound.
        workloads: Result on each workload; filled by `loadgen.lab.study.execute.findings`.
    """

    planned: PlannedArm
    verdict: Verdict = Verdict.NOT_RUN
    reason: str = ""
    trials: tuple[Trial, ...] = ()
    counted: tuple[Trial, ...] = ()
    values: tuple[float, ...] = ()
    misses: int = 0
    comparison: Comparison | None = None
    notes: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    workloads: Mapping[str, WorkloadResult] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def name(self) -> str:
        """Name in the step."""
        return self.planned.name

    @property
    def published(self) -> bool:
        """Whether others measured it, each workload in a single run."""
        runs = itertools.chain.from_iterable(trial.runs.values() for trial in self.trials)
        return any(run.findings.published for run in runs)

    @property
    def repeated(self) -> int:
        """Number of starts that ran and do not count, because others disturbed them."""
        ran = [trial for trial in self.trials if trial.failure is None]
        return len(ran) - len(self.counted) if self.counted else 0

    @property
    def undecided(self) -> bool:
        """Whether the arm has no verdict yet."""
        return self.verdict in (Verdict.NOT_RUN, Verdict.OPEN)

    @property
    def why(self) -> str:
        """Reason and remarks in one line; of an arm that is the same as another, the name of
        that.
        """
        if self.verdict is Verdict.SAME_AS:
            return self.reason
        return "; ".join(filter(None, (self.reason, *self.notes.values())))

    @property
    def feasible(self) -> bool:
        """Whether the arm runs, and most of its starts met the limits of the study."""
        return self.verdict not in (Verdict.INFEASIBLE, Verdict.FAILED) and 2 * self.misses < len(
            self.values
        )


def positive_values(runs: Iterable[WorkloadRun], name: str) -> list[float]:
    """Return the positive values of a number in the summaries of runs."""
    numbers = (run.summary.get(name) for run in runs)
    return [float(number) for number in numbers if isinstance(number, int | float) and number > 0]


def same_config(
    arm: ArmResult, other: ArmResult, names: Mapping[str, str], in_flight: float
) -> bool:
    """Return whether the servers of two arms report the same value of every knob in which the arms
    differ.

    Args:
        arm: An arm with a trial.
        other: Another.
        names: The engine's own flag of each knob.
        in_flight: Maximum number of requests in flight.
    """
    spec = arm.planned.spec
    other_spec = other.planned.spec
    for part in ("engine", "model", "raw", "env", "replicas", "devices"):
        if getattr(spec, part) != getattr(other_spec, part):
            return False
    knobs = {*spec.knobs, *other_spec.knobs}
    differing = [
        knob for knob in knobs if _text(spec.knobs.get(knob)) != _text(other_spec.knobs.get(knob))
    ]
    for knob in differing:
        name = names.get(knob, knob).lstrip("-").replace("-", "_")
        values: list[Any] = [
            (result.trials[-1].server_config or {}).get(name) for result in (arm, other)
        ]
        if any(value is None for value in values):
            return False
        if knob == BOUNDED_BY_LOAD and all(isinstance(value, int | float) for value in values):
            values = [min(value, in_flight) for value in values]
        if _text(values[0]) != _text(values[1]):
            return False
    return bool(differing)


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
