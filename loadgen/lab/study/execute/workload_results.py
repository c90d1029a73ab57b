"""The results of each arm of a step on each workload, compared with the step's reference."""

import statistics
from collections.abc import Mapping
from dataclasses import replace

from loadgen.lab.study.execute import score
from loadgen.lab.study.execute.arm_result import ArmResult, Difference, Unbounded, WorkloadResult, positive_values
from loadgen.lab.study.execute.findings import StepResult
from loadgen.lab.study.execute.trial import WorkloadRun
from loadgen.lab.study.spec.study import Study
from loadgen.stats import group_sequential
from loadgen.util.number_format import percent

SAME_LENGTH = 0.01  # by how much, relative, the answers of two arms may differ in length


def with_workload_results(step: StepResult, study: Study, *, published: bool) -> StepResult:
    """Fill in the results of each arm of a step on each workload.

    Args:
        step: The step.
        study: The study.
        published: Whether each arm was measured once, by others.
    """
    arms = [replace(arm, workloads=_workloads(arm, study)) for arm in step.arms]
    reference = next((arm for arm in arms if arm.name == step.reference), None)
    if reference is not None:
        arms = [arm if arm is reference else _compared(arm, reference, study, published) for arm in arms]
    return replace(step, arms=tuple(arms))


def _workloads(arm: ArmResult, study: Study) -> dict[str, WorkloadResult]:
    trials = arm.counted or [trial for trial in arm.trials if trial.failure is None]
    names = dict.fromkeys(name for trial in arm.trials for name in trial.runs)
    runs = {name: {each.request.block: each.runs[name] for each in trials if name in each.runs} for name in names}
    return {name: _result(found, arm, study) for name, found in runs.items() if found}


def _result(runs: Mapping[int, WorkloadRun], arm: ArmResult, study: Study) -> WorkloadResult:
    spec = arm.planned.spec
    values = {block: score.objective_value(run, spec, study) for block, run in runs.items()}
    scores = {block: value for block, value in values.items() if value is not None}
    copies, devices = score.copies(spec, study), score.devices_used(spec, study)
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


def _compared(arm: ArmResult, reference: ArmResult, study: Study, published: bool) -> ArmResult:
    found = {}
    for name, result in arm.workloads.items():
        other = reference.workloads.get(name)
        if other is not None:
            decides = arm.comparison is not None and name == study.objective.workload
            comparison = arm.comparison if decides else _one_look(result, other, study)
            why = Unbounded.SINGLE_RUNS if published else Unbounded.FEW_BLOCKS
            result = replace(result, difference=difference_of(result, other, comparison, study, why))
        found[name] = result
    return replace(arm, workloads=found)


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
        found = Difference.from_comparison(comparison, more_is_better=more_is_better)
    elif not result.achieved or not other.achieved:
        return None
    else:
        found = Difference.without_bounds(result.achieved, other.achieved, why, more_is_better=more_is_better)
    return replace(found, other_work=_other_work(result, other)) if found else None


def _other_work(result: WorkloadResult, other: WorkloadResult) -> str:
    """Return how much longer or shorter the answers are than those of another arm; empty if they are about as long."""
    lengths = [each.answer_tokens for each in (result, other)]
    if lengths[0] is None or not lengths[1]:
        return ""
    longer = lengths[0] / lengths[1] - 1
    if abs(longer) <= SAME_LENGTH:
        return ""
    return f"answers {percent(abs(longer), 1)} {'longer' if longer > 0 else 'shorter'}"


def _one_look(result: WorkloadResult, other: WorkloadResult, study: Study) -> group_sequential.Comparison | None:
    """Compare two results on a workload that decided nothing, as with one look at all common blocks."""
    blocks = [block for block in result.scores if block in other.scores]
    if len(blocks) < 2:
        return None
    gains = {
        name: [score.gain(scores[block], study) for block in blocks]
        for name, scores in (("reference", other.scores), ("arm", result.scores))
    }
    plan = group_sequential.Plan(study.decision.min_effect, study.decision.confidence, len(blocks), len(blocks))
    return group_sequential.compare(gains, "reference", plan)["arm"]
