"""The findings of a study so far, step by step; they are a function of its trials alone.

`with_workload_results` adds the results of each arm on each workload, compared with the step's
reference.
"""

import itertools
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import median_low

from loadgen.lab.study.execute import score
from loadgen.lab.study.execute.arm_result import (
    ArmResult,
    Difference,
    Unbounded,
    Verdict,
    WorkloadResult,
    positive_values,
)
from loadgen.lab.study.execute.score import distance
from loadgen.lab.study.execute.trial import Trial, TrialRequest, WorkloadRun
from loadgen.lab.study.plan.plan import CONFIRMATION, Step
from loadgen.lab.study.spec.study import Study
from loadgen.stats import group_sequential
from loadgen.stats.variance import Noise
from loadgen.util.number_format import percent

SAME_LENGTH = 0.01  # by how much, relative, the answers of two arms may differ in length
# Why a study is not over.
NOT_YET = "starts are missing"
BUDGET = "the budget is spent"


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
        least_effect: Smallest effect, a share, that the noise of the steps before lets one detect;
            None: unknown.
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
        open: Why the study is not over: NOT_YET, BUDGET, or what ended it early; empty if it is
            over.
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
        """The arm that the confirmation compares with the baseline; None before, or if it is the
        baseline itself.
        """
        last = self.confirmation
        return (
            next((arm for arm in last.arms if arm.name != last.reference), None) if last else None
        )

    @property
    def confirmed(self) -> bool | None:
        """Whether fresh starts have shown the finalist to be better; None: undecided, no
        finalist, or published.
        """
        if self.open or self.finalist is None or self.finalist.verdict is Verdict.AUTHORS_CHOICE:
            return None
        return self.finalist.verdict is Verdict.ADOPTED

    @property
    def trials(self) -> list[Trial]:
        """All trials, each once; published ones belong to every step that uses them."""
        trials: dict[TrialRequest, Trial] = {}
        for arm in self._arms:
            trials |= {trial.request: trial for trial in arm.trials}
        return list(trials.values())

    @property
    def seconds(self) -> float:
        """Time spent on trials."""
        return sum(trial.seconds for trial in self.trials)

    @property
    def nothing_feasible(self) -> bool:
        """Whether arms ran and none of them met the limits of the study."""
        ran = [arm for arm in self._arms if arm.values and arm.verdict is not Verdict.FAILED]
        return bool(ran) and not any(arm.feasible for arm in ran)

    @property
    def closest(self) -> tuple[StepResult, ArmResult] | None:
        """The arm that came closest to the limits, by its median start, and its step; None if no
        arm ran.
        """
        ran: list[tuple[StepResult, ArmResult]] = []
        for step in self.steps:
            ran += [(step, arm) for arm in step.arms if self._distances(arm)]
        return min(ran, key=lambda pair: median_low(self._distances(pair[1])), default=None)

    @property
    def _arms(self) -> list[ArmResult]:
        """The results of the arms of all steps."""
        return list(itertools.chain.from_iterable(step.arms for step in self.steps))

    def _distances(self, arm: ArmResult) -> list[float]:
        name = self.study.objective.workload
        return [
            distance(trial.runs[name])
            for trial in arm.trials
            if trial.failure is None and name in trial.runs
        ]


def with_workload_results(step: StepResult, study: Study, *, published: bool) -> StepResult:
    """Fill in the results of each arm of a step on each workload.

    Args:
        step: The step.
        study: The study.
        published: Whether each arm was measured once, by others.
    """
    arms = []
    for arm in step.arms:
        trials = arm.counted or [trial for trial in arm.trials if trial.failure is None]
        runs: dict[str, dict[int, WorkloadRun]] = {}
        for trial in arm.trials:
            for name in trial.runs:
                runs.setdefault(name, {})
        for trial in trials:
            for name, run in trial.runs.items():
                runs[name][trial.request.block] = run
        results = {name: _result(blocks, arm, study) for name, blocks in runs.items() if blocks}
        arms.append(replace(arm, workloads=results))
    reference = next((arm for arm in arms if arm.name == step.reference), None)
    if reference is None:
        return replace(step, arms=tuple(arms))
    why = Unbounded.SINGLE_RUNS if published else Unbounded.FEW_BLOCKS
    compared = []
    for arm in arms:
        results = dict(arm.workloads)
        for name, result in arm.workloads.items():
            other = reference.workloads.get(name)
            if other is not None and arm is not reference:
                decides = arm.comparison is not None and name == study.objective.workload
                comparison = arm.comparison if decides else _one_look(result, other, study)
                difference = difference_of(result, other, comparison, study, why)
                results[name] = replace(result, difference=difference)
        compared.append(replace(arm, workloads=results))
    return replace(step, arms=tuple(compared))


def _result(runs: Mapping[int, WorkloadRun], arm: ArmResult, study: Study) -> WorkloadResult:
    spec = arm.planned.spec
    values = {block: score.objective_value(run, spec, study) for block, run in runs.items()}
    scores = {block: value for block, value in values.items() if value is not None}
    copies = score.copies(spec, study)
    devices = score.devices_used(spec, study)
    total, output, tpot = (
        positive_values(runs.values(), name)
        for name in ("total_token_throughput", "output_throughput", "median_tpot_ms")
    )
    return WorkloadResult(
        runs=runs,
        scores=scores,
        achieved=statistics.geometric_mean(scores.values()) if scores else None,
        total_tps=None if not total else statistics.geometric_mean(total) * copies,
        user_tps=statistics.fmean([1000 / value for value in tpot]) if tpot else None,
        gpu_tps=None if not output else statistics.geometric_mean(output) / devices,
        estimated=copies > 1,
    )


def difference_of(
    result: WorkloadResult,
    other: WorkloadResult,
    comparison: group_sequential.Comparison | None,
    study: Study,
    why: Unbounded,
) -> Difference | None:
    """Return the difference of two results on a workload; None if one has no value.

    Args:
        result: Result of an arm.
        other: Result to compare with.
        comparison: Their comparison in common blocks; None: there is none.
        study: The study.
        why: Why there are no bounds if there is no comparison.
    """
    more_is_better = study.objective.more_is_better
    if comparison is not None:
        difference = Difference.from_comparison(comparison, more_is_better=more_is_better)
    elif not result.achieved or not other.achieved:
        return None
    else:
        difference = Difference.without_bounds(
            result.achieved, other.achieved, why, more_is_better=more_is_better
        )
    length = result.answer_tokens
    other_length = other.answer_tokens
    if difference is None or length is None or not other_length:
        return difference
    change = length / other_length - 1
    if abs(change) <= SAME_LENGTH:
        return difference
    other_work = f"answers {percent(abs(change), 1)} {'longer' if change > 0 else 'shorter'}"
    return replace(difference, other_work=other_work)


def _one_look(
    result: WorkloadResult, other: WorkloadResult, study: Study
) -> group_sequential.Comparison | None:
    """Compare two results on a workload that decided nothing, as with one look at all common
    blocks.
    """
    blocks = [block for block in result.scores if block in other.scores]
    if len(blocks) < 2:
        return None
    gains = {
        name: [score.gain(scores[block], study) for block in blocks]
        for name, scores in (("reference", other.scores), ("arm", result.scores))
    }
    plan = group_sequential.Plan(
        study.decision.min_effect, study.decision.confidence, len(blocks), len(blocks)
    )
    return group_sequential.compare(gains, "reference", plan)["arm"]
