"""Findings: what a study has found so far, step by step: a function of its trials, for whoever shows it."""

from dataclasses import dataclass
from enum import StrEnum
from statistics import median_low

from loadgen.stats.group_sequential import Comparison
from loadgen.stats.variance import Noise
from loadgen.tuning.execute.trial import Trial
from loadgen.tuning.execute.trial_score import distance
from loadgen.tuning.plan.plan import CONFIRMATION, Planned, Step
from loadgen.tuning.spec.study import Study

NOT_YET, BUDGET = "more starts are to come", "the budget is spent"  # why a study is not over


class Verdict(StrEnum):
    """What became of an arm in its step."""

    REFERENCE = "reference"
    ADOPTED = "adopted"
    BETTER = "better"  # and yet another one goes on
    NOT_SIGNIFICANT = "not significant"
    WORSE = "worse"
    SAME_AS = "same as"
    INFEASIBLE = "infeasible"
    FAILED = "failed"
    PRUNED = "pruned"
    NOT_RUN = "not run"
    OPEN = "open"  # it has run, and nothing is decided yet
    DRAWN = "drawn"  # and tried once
    PUBLISHED = "published"  # once, by others, so that nothing is decided


@dataclass(frozen=True)
class ArmFound:
    """An arm in a step.

    Attributes:
        planned: The arm.
        verdict: What became of it.
        why: The name of the arm it is the same as; what it did not hold; the line that says why it failed; ...
        trials: Its starts, in the order in which they ended; those that failed too.
        values: What it achieved at the objective, block by block.
        misses: How many of these starts did not hold what the study demands.
        comparison: Beside the reference; None where there is none.
    """

    planned: Planned
    verdict: Verdict
    why: str = ""
    trials: tuple[Trial, ...] = ()
    values: tuple[float, ...] = ()
    misses: int = 0
    comparison: Comparison | None = None

    @property
    def name(self) -> str:
        """In the step."""
        return self.planned.name

    @property
    def feasible(self) -> bool:
        """Whether it runs, and has held what is demanded more often than not."""
        return self.verdict not in (Verdict.INFEASIBLE, Verdict.FAILED) and 2 * self.misses < len(self.values)


@dataclass(frozen=True)
class StepFound:
    """A step as far as it has come.

    Attributes:
        step: What was planned.
        arms: Its arms, the reference first.
        reference: Name of the arm that the others are held against.
        won: Names of the arms that go on, the best first; empty where the reference stays.
        noise: Of its runs; None where they are too few.
        least_effect: The least effect that was likely to be seen, a share, by the noise of the steps before; None
            where that is not known.
        open: Why it is not over; empty if it is.
    """

    step: Step
    arms: tuple[ArmFound, ...]
    reference: str
    won: tuple[str, ...] = ()
    noise: Noise | None = None
    least_effect: float | None = None
    open: str = ""

    def arm(self, name: str) -> ArmFound:
        """The arm of that name."""
        return next(arm for arm in self.arms if arm.name == name)


@dataclass(frozen=True)
class Findings:
    """What a study has found.

    Attributes:
        study: Which.
        steps: Those that have begun, in order.
        open: Why it is not over: NOT_YET, BUDGET, or what has ended it before; empty if it is over.
    """

    study: Study
    steps: tuple[StepFound, ...]
    open: str = ""

    @property
    def confirmation(self) -> StepFound | None:
        """Baseline and winner, measured afresh; None as long as it has not begun."""
        last = self.steps[-1] if self.steps else None
        return last if last is not None and last.step.kind == CONFIRMATION else None

    @property
    def finalist(self) -> ArmFound | None:
        """The arm that is measured afresh beside the baseline; None before that, or where it is the baseline itself."""
        last = self.confirmation
        return next((arm for arm in last.arms if arm.name != last.reference), None) if last else None

    @property
    def confirmed(self) -> bool | None:
        """Whether fresh starts have shown the finalist to be better; None as long as that is open, or without one."""
        return None if self.open or self.finalist is None else self.finalist.verdict is Verdict.ADOPTED

    @property
    def trials(self) -> list[Trial]:
        """All starts, each once: those that were published stand in every step that rests on them."""
        told = {trial.wanted: trial for step in self.steps for arm in step.arms for trial in arm.trials}
        return list(told.values())

    @property
    def seconds(self) -> float:
        """Time spent on trials."""
        return sum(trial.seconds for trial in self.trials)

    @property
    def nothing_feasible(self) -> bool:
        """Whether arms ran and none of them held what the study demands."""
        ran = [arm for step in self.steps for arm in step.arms if arm.values and arm.verdict is not Verdict.FAILED]
        return bool(ran) and not any(arm.feasible for arm in ran)

    @property
    def closest(self) -> tuple[StepFound, ArmFound] | None:
        """The arm that was nearest to what the study demands, by its start in the middle; None where none ran."""
        ran = [(step, arm) for step in self.steps for arm in step.arms if self._distances(arm)]
        return min(ran, key=lambda pair: median_low(self._distances(pair[1])), default=None)

    def _distances(self, arm: ArmFound) -> list[float]:
        """Of its starts that count."""
        name = self.study.objective.workload
        return [distance(trial.runs[name]) for trial in arm.trials if trial.failure is None and name in trial.runs]
