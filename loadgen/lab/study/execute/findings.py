"""The findings of a study so far, step by step; they are a function of its trials alone."""

from dataclasses import dataclass
from statistics import median_low

from loadgen.lab.study.execute.arm_result import ArmResult, Verdict
from loadgen.lab.study.execute.score import distance
from loadgen.lab.study.execute.trial import Trial
from loadgen.lab.study.plan.plan import CONFIRMATION, Step
from loadgen.lab.study.spec.study import Study
from loadgen.stats.variance import Noise

NOT_YET, BUDGET = "more starts are to come", "the budget is spent"  # why a study is not over


@dataclass(frozen=True)
class StepResult:
    """The result of a step, as far as it has come.

    Attributes:
        step: The step as planned.
        arms: Results of its arms, the reference first.
        reference: Name of the arm that the others are compared with; empty: none.
        won: Names of the arms that go on, the best first; empty: the reference stays.
        noise: Noise of its trials; None: too few trials.
        round_noise: Noise of the rounds of a start; None: starts have one round.
        least_effect: Smallest effect, a share, that the noise of the steps before lets one detect; None: unknown.
        open: Why the step is not over; empty if it is.
    """

    step: Step
    arms: tuple[ArmResult, ...]
    reference: str
    won: tuple[str, ...] = ()
    noise: Noise | None = None
    round_noise: Noise | None = None
    least_effect: float | None = None
    open: str = ""

    def arm(self, name: str) -> ArmResult:
        """Return the arm of that name."""
        return next(arm for arm in self.arms if arm.name == name)


@dataclass(frozen=True)
class Findings:
    """The findings of a study.

    Attributes:
        study: The study.
        steps: Results of the steps that have begun, in order.
        open: Why the study is not over: NOT_YET, BUDGET, or what ended it early; empty if it is over.
        published: Whether all results were published by others, one run of each arm.
    """

    study: Study
    steps: tuple[StepResult, ...]
    open: str = ""
    published: bool = False

    @property
    def confirmation(self) -> StepResult | None:
        """The comparison of baseline and winner in fresh starts; None before it begins."""
        last = self.steps[-1] if self.steps else None
        return last if last is not None and last.step.kind == CONFIRMATION else None

    @property
    def finalist(self) -> ArmResult | None:
        """The arm that the confirmation compares with the baseline; None before, or if it is the baseline itself."""
        last = self.confirmation
        return next((arm for arm in last.arms if arm.name != last.reference), None) if last else None

    @property
    def confirmed(self) -> bool | None:
        """Whether fresh starts have shown the finalist to be better; None: undecided, no finalist, or published."""
        if self.open or self.finalist is None or self.finalist.verdict is Verdict.ADOPTED_BY_AUTHOR:
            return None
        return self.finalist.verdict is Verdict.ADOPTED

    @property
    def trials(self) -> list[Trial]:
        """All trials, each once; published ones belong to every step that uses them."""
        return list({trial.request: trial for step in self.steps for arm in step.arms for trial in arm.trials}.values())

    @property
    def seconds(self) -> float:
        """Time spent on trials."""
        return sum(trial.seconds for trial in self.trials)

    @property
    def nothing_feasible(self) -> bool:
        """Whether arms ran and none of them met the limits of the study."""
        ran = [arm for step in self.steps for arm in step.arms if arm.values and arm.verdict is not Verdict.FAILED]
        return bool(ran) and not any(arm.feasible for arm in ran)

    @property
    def closest(self) -> tuple[StepResult, ArmResult] | None:
        """The arm that came closest to the limits, by its median start, and its step; None if no arm ran."""
        ran = [(step, arm) for step in self.steps for arm in step.arms if self._distances(arm)]
        return min(ran, key=lambda pair: median_low(self._distances(pair[1])), default=None)

    def _distances(self, arm: ArmResult) -> list[float]:
        name = self.study.objective.workload
        return [distance(trial.runs[name]) for trial in arm.trials if trial.failure is None and name in trial.runs]
