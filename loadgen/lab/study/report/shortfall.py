"""What kept a study from its decisions when the budget was spent, and how much more it would take."""

from collections.abc import Iterator, Sequence

from loadgen.lab.study.execute.findings import BUDGET, Findings, StepResult
from loadgen.lab.study.execute.start_attempts import disturbance
from loadgen.lab.study.execute.trial import Trial
from loadgen.lab.study.plan.plan import NOISE
from loadgen.stats import group_sequential
from loadgen.stats.group_sequential import Plan
from loadgen.stats.variance import Noise
from loadgen.util.machine import MAX_STOLEN_SHARE
from loadgen.util.number_format import duration, percent, value_range

TWICE, MEASURED = " (twice min_effect: no arm has gained more than min_effect so far)", " (the largest so far)"


def shortfall(findings: Findings) -> Iterator[str]:
    """Yield why the last step is not decided, and how much more it needs; nothing unless the budget is spent."""
    step = findings.steps[-1] if findings.steps else None
    if findings.open != BUDGET or step is None or not step.open or step.step.kind == NOISE:
        return
    before = Noise.pooled([each.noise for each in findings.steps[:-1] if each.noise is not None])
    noise = before if step.noise is None else step.noise.with_prior(before)
    reasons = [] if noise is None else [f"noise {percent(noise.sd, 1)} of one start"]
    reasons += _disturbances([trial for arm in step.arms for trial in arm.trials], findings.study.objective.workload)
    if reasons:
        yield f"{step.step.name}: {'; '.join(reasons)}"
    if noise is not None:
        yield from _need(findings, step, noise)


def _disturbances(trials: Sequence[Trial], workload: str) -> Iterator[str]:
    found = [disturbance(trial, workload) for trial in trials if workload in trial.runs]
    others = sorted(each.others_cores for each in found if each.others_cores > each.max_others_cores)
    stolen = sorted(each.stolen_share for each in found if each.stolen_share > MAX_STOLEN_SHARE)
    if others:
        cores = value_range(f"{others[0]:.1f}", f"{others[-1]:.1f}")
        yield f"in {len(others)} of {len(found)} runs other processes used {cores} cores"
    if stolen:
        shares = value_range(percent(stolen[0], 0), percent(stolen[-1], 0))
        yield f"in {len(stolen)} of {len(found)} runs the hypervisor took {shares} of the time"


def _need(findings: Findings, step: StepResult, noise: Noise) -> Iterator[str]:
    decision, rivals = findings.study.decision, [arm for arm in step.arms if arm.name != step.reference]
    plan = Plan(decision.min_effect, decision.confidence, step.step.min_starts, step.step.max_starts)
    compared = [arm.comparison for arm in rivals if arm.undecided and arm.comparison and arm.comparison.blocks]
    effect = max((0.0, *(comparison.effect for comparison in compared)))
    assumed = effect <= plan.least_effect  # so far no arm has gained more
    if assumed:
        effect = 2 * plan.least_effect
    blocks = group_sequential.blocks_needed(effect, noise, max(1, len(rivals)), plan)
    if blocks is None:
        return
    going = [arm for arm in step.arms if arm.undecided or arm.name == step.reference]
    done = min((len(arm.values) for arm in going), default=0)
    block_s = sum(sum(trial.seconds for trial in arm.trials) / max(1, len(arm.values)) for arm in going)
    left_s = max(0, blocks - done) * block_s  # with repeated starts
    which = TWICE if assumed else MEASURED
    text = f"{step.step.name}: at this noise a gain of {percent(effect, 1)}{which} needs about {blocks} blocks, "
    text += f"{duration(left_s)} more"
    yield text + (f"; repeats allows {plan.last}" if blocks > plan.last else "")
