"""The findings of a study as text for the terminal, and as JSON.

Two texts are also parts of the report: what was done about disturbed starts of a step, and what
kept a study from its decisions when the budget was spent.
"""

import itertools
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

from loadgen.config.target import SIMULATOR
from loadgen.document import (
    Block,
    Cell,
    Document,
    Note,
    Paragraph,
    Table,
    cell,
    prose,
    terminal_writer,
)
from loadgen.lab.study.execute import publications
from loadgen.lab.study.execute.arm_result import ArmResult, Verdict, WorkloadResult
from loadgen.lab.study.execute.disturbance import disturbance
from loadgen.lab.study.execute.findings import (
    BUDGET,
    Findings,
    StepResult,
    with_workload_results,
)
from loadgen.lab.study.execute.trial import Trial
from loadgen.lab.study.plan.plan import CONFIRMATION, NOISE
from loadgen.lab.study.report.answer import answer, gain_text
from loadgen.lab.study.report.arm_text import changed_parameters
from loadgen.lab.study.spec.study import METRICS, Study
from loadgen.lab.study.spec.workloads import loads
from loadgen.report import load_line
from loadgen.report.sections.verdict import SIMULATED
from loadgen.stats import group_sequential
from loadgen.stats.group_sequential import Plan
from loadgen.stats.variance import Noise
from loadgen.util.machine import MAX_STOLEN_SHARE, max_others_cores
from loadgen.util.number_format import brief, duration, fixed, percent, plural, value_range
from loadgen.util.terminal_text import PLAIN, Screen

TWICE = " (twice min_effect: no arm has gained more than min_effect so far)"
MEASURED = " (the largest so far)"
NOT_CONFIRMED = "not run: results of the baseline, and of the arm that the author chose"


def as_text(findings: Findings, screen: Screen = PLAIN) -> str:
    """Write the answer of a study, the findings step by step, and what it would take to finish."""
    study = findings.study
    blocks: list[Block] = [
        step_block(step, study, published=findings.published) for step in findings.steps
    ]
    blocks += map(Paragraph.of, shortfall(findings))
    blocks += [Paragraph.of(SIMULATED)] if SIMULATOR in study.engines else []
    document = Document(title(study), tuple(blocks), (answer(findings),), about(study))
    return terminal_writer.report(document, screen)


def title(study: Study) -> str:
    """Name a study: by the title of its report, else with its metric, workload and engines."""
    objective = study.objective
    engines = f"engine{'s' if len(study.engines) > 1 else ''} {', '.join(study.engines)}"
    what = f"metric {objective.metric}, workload {objective.workload}, {engines}"
    return study.report.title or f'Study "{study.name}": {what}'


def about(study: Study) -> str:
    """Say what the metric is, and describe the load of the workload that decides."""
    objective = study.objective
    aim = "more" if objective.more_is_better else "less"
    load = load_line.requested(loads(study)[objective.workload])
    metric = f"{objective.metric}: {METRICS[objective.metric].text}; {aim} is better"
    return f"{metric}. Load of {objective.workload}: {load}"


def step_block(step: StepResult, study: Study, *, published: bool = False) -> Note:
    """List the arms of a step and what each changes, with every workload, its noise, and what was
    done about disturbed starts.
    """
    remark = step.open or (NOT_CONFIRMED if step.step.kind == CONFIRMATION and published else "")
    title = f"{step.step.name}{f' ({remark})' if remark else ''}"
    rows: list[Sequence[str | Cell]] = []
    for arm in with_workload_results(step, study, published=published).arms:
        rows.append((arm.name, cell(prose(_change(arm, step))), arm_line(arm, study)))
        rows += [
            ("", f"on {name}", _workload_line(result, arm, study))
            for name, result in arm.workloads.items()
            if name != study.objective.workload
        ]
    texts = filter(None, (*noise_lines(step), disturbance_text(step, study.objective.workload)))
    arms = Table.of(("", "", ""), rows)
    return Note("note", title, (arms, *(Paragraph.of(text) for text in texts)))


def _change(arm: ArmResult, step: StepResult) -> str:
    """Say what an arm changes of the reference of its step."""
    names = [other.name for other in step.arms]
    if step.reference not in names or arm.name == step.reference:
        return ""
    return changed_parameters(arm.planned, step.arm(step.reference).planned)


def arm_line(arm: ArmResult, study: Study) -> str:
    """Return the verdict and the values of an arm in one line."""
    parts = [str(arm.verdict) + (f" {arm.why}" if arm.verdict is Verdict.SAME_AS else "")]
    if gain := gain_text(arm, study):
        parts.append(gain)
    if arm.values:
        middle = statistics.geometric_mean(arm.values)
        unit = METRICS[study.objective.metric].unit
        where = "a single run" if arm.published else plural(len(arm.values), "start")
        parts.append(f"{brief(middle)} {unit} in {where}")
    if arm.why and arm.verdict not in (Verdict.SAME_AS, Verdict.OPEN):
        parts.append(arm.why)
    return ", ".join(parts)


def _workload_line(result: WorkloadResult, arm: ArmResult, study: Study) -> str:
    """Return value and difference on a workload that does not decide; tokens/s where it has no
    value of the objective.
    """
    value = result.achieved
    if value is not None:
        text = f"{brief(value)} {METRICS[study.objective.metric].unit}"
    else:
        text = "n/a" if result.total_tps is None else f"{brief(result.total_tps)} tok/s"
    where = "a single run" if arm.published else plural(len(result.runs), "start")
    gain = [] if result.difference is None else [result.difference.text(1)]
    return ", ".join((*gain, f"{text} in {where}"))


def noise_lines(step: StepResult) -> Iterator[str]:
    """Yield the noise of a step and the effect that it lets one detect."""
    if step.noise is not None and not math.isnan(step.noise.sd):
        yield (
            f"noise {percent(step.noise.sd, 2)}, the standard deviation of one start "
            f"({plural(step.noise.df, 'degree')} of freedom)"
        )
    if step.round_noise is not None:
        yield (
            f"noise {percent(step.round_noise.sd, 2)} of one round in a start "
            f"({plural(step.round_noise.df, 'degree')} of freedom)"
        )
    if step.least_effect is not None:
        yield (
            f"planned to detect effects of {percent(step.least_effect, 1)} or more, by the noise "
            "of earlier steps"
        )


def as_json(findings: Findings, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the findings with all their trials as JSON."""
    return {
        **{name: facts[name] for name in ("study", "source", "host", "builds", "data")},
        **_values(findings, "open", "seconds"),
        "steps": [
            {
                **_values(step.step, "name", "kind"),
                **_values(step, "reference", "won", "open", "noise", "round_noise", "least_effect"),
                "arms": [
                    _values(arm, "name", "verdict", "why", "values", "comparison")
                    | {"trials": [_trial(trial) for trial in arm.trials]}
                    for arm in step.arms
                ],
            }
            for step in findings.steps
        ],
    }


def _trial(trial: Trial) -> dict[str, Any]:
    return {
        **_values(trial.request, "block", "attempt"),
        **_values(trial, "build", "began", "seconds", "ready_s", "failure", "folder"),
        "answered": None if trial.answers is None else trial.answers.to_dict(),
        "runs": {
            name: {"path": ran.path, "summary": dict(ran.summary)}
            for name, ran in trial.runs.items()
        },
    }


def _values(part: object, *names: str) -> dict[str, Any]:
    values = {}
    for name in names:
        value = getattr(part, name)
        if isinstance(value, tuple):
            value = list(value)
        elif is_dataclass(value) and not isinstance(value, type):
            value = asdict(value)
        values[name] = value
    return values


def time_spent(findings: Findings) -> str:
    """Return number and time of the starts, and GPU-hours; of published results only their
    number.
    """
    if findings.published:
        return f"{publications.counted(findings.trials)} published"
    devices = findings.study.hardware.devices
    hours = f", {fixed(findings.seconds / 3600 * devices, 2, 'GPU-hours')}" if devices else ""
    return f"{plural(len(findings.trials), 'start')}, {duration(findings.seconds)}{hours}"


def shortfall(findings: Findings) -> Iterator[str]:
    """Yield why the last step is not decided, and how much more it needs; nothing unless the
    budget is spent.
    """
    step = findings.steps[-1] if findings.steps else None
    if findings.open != BUDGET or step is None or not step.open or step.step.kind == NOISE:
        return
    before = Noise.pooled(
        [earlier.noise for earlier in findings.steps[:-1] if earlier.noise is not None]
    )
    noise = before if step.noise is None else step.noise.with_prior(before)
    reasons = [] if noise is None else [f"noise {percent(noise.sd, 1)} of one start"]
    trials = list(itertools.chain.from_iterable(arm.trials for arm in step.arms))
    workload = findings.study.objective.workload
    parts = [disturbance(trial, workload) for trial in trials if workload in trial.runs]
    others = sorted(
        part.others_cores for part in parts if part.others_cores > max_others_cores(part.cores)
    )
    if others:
        cores = value_range(f"{others[0]:.1f}", f"{others[-1]:.1f}")
        reasons.append(f"in {len(others)} of {len(parts)} runs other processes used {cores} cores")
    stolen = sorted(part.stolen_share for part in parts if part.stolen_share > MAX_STOLEN_SHARE)
    if stolen:
        shares = value_range(percent(stolen[0], 0), percent(stolen[-1], 0))
        reasons.append(
            f"in {len(stolen)} of {len(parts)} runs the hypervisor took {shares} of the time"
        )
    if reasons:
        yield f"{step.step.name}: {'; '.join(reasons)}"
    if noise is not None:
        yield from _need(findings, step, noise)


def _need(findings: Findings, step: StepResult, noise: Noise) -> Iterator[str]:
    decision = findings.study.decision
    rivals = [arm for arm in step.arms if arm.name != step.reference]
    plan = Plan(
        decision.min_effect, decision.confidence, step.step.min_starts, step.step.max_starts
    )
    compared = [
        arm.comparison
        for arm in rivals
        if arm.undecided and arm.comparison and arm.comparison.blocks
    ]
    effect = max((0.0, *(comparison.effect for comparison in compared)))
    assumed = effect <= plan.least_effect  # so far no arm has gained more
    if assumed:
        effect = 2 * plan.least_effect
    blocks = group_sequential.blocks_needed(effect, noise, max(1, len(rivals)), plan)
    if blocks is None:
        return
    running = [arm for arm in step.arms if arm.undecided or arm.name == step.reference]
    done = min((len(arm.values) for arm in running), default=0)
    block_s = sum(
        sum(trial.seconds for trial in arm.trials) / max(1, len(arm.values)) for arm in running
    )
    left_s = max(0, blocks - done) * block_s  # with repeated starts
    which = TWICE if assumed else MEASURED
    text = (
        f"{step.step.name}: at this noise a gain of {percent(effect, 1)}{which} needs about "
        f"{blocks} blocks, "
    )
    text += f"{duration(left_s)} more"
    yield text + (f"; repeats allows {plan.last}" if blocks > plan.last else "")


def disturbance_text(step: StepResult, workload: str) -> str:
    """Return what was done about disturbed starts in a step; empty if nothing is known of
    disturbances.

    Args:
        step: The step.
        workload: The workload that decides.
    """
    starts: list[Trial] = []
    for arm in step.arms:
        starts += [trial for trial in arm.counted if workload in trial.runs]
    disturbances = [trial.runs[workload].findings.disturbance for trial in starts]
    if all(part is None for part in disturbances):
        return ""
    disturbed = len([part for part in disturbances if part is not None and part.disturbed])
    if not disturbed:
        return "no start that counts was disturbed by other programs"
    count = (
        f"other programs disturbed {disturbed} of {plural(len(starts), 'start')}, "
        "which were not repeated"
    )
    if step.step.kind == NOISE and step.noise and step.noise.df + 1 < len(step.arms[0].values):
        return f"{count}; the noise is that of the others"
    if any(arm.comparison is not None and arm.comparison.disturbed for arm in step.arms):
        return (
            f"{count}; they count as they are, so bounds are wider, and one is missing where an "
            "arm and the reference were disturbed unequally often"
        )
    return count
