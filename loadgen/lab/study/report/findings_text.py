"""The findings of a study as text for the terminal, and as JSON.

Two texts are also parts of the report: what was done about disturbed starts of a step, and what
kept a study from its decisions when the budget was spent.
"""

import itertools
import math
import statistics
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

from loadgen.config.target import SIMULATOR
from loadgen.document import Note, Paragraph, Table, terminal_writer
from loadgen.lab.study.execute import publications
from loadgen.lab.study.execute.arm_result import ArmResult, Difference, Verdict
from loadgen.lab.study.execute.disturbance import disturbance
from loadgen.lab.study.execute.findings import BUDGET, Findings, StepResult
from loadgen.lab.study.execute.trial import Trial
from loadgen.lab.study.plan.plan import CONFIRMATION, NOISE
from loadgen.lab.study.report.answer import after_study, answer
from loadgen.lab.study.spec.study import METRICS, Study
from loadgen.lab.study.spec.workloads import loads
from loadgen.report import load_line
from loadgen.report.console import USUAL_WIDTH
from loadgen.report.sections import next_step
from loadgen.report.sections.verdict import SIMULATED
from loadgen.stats import group_sequential
from loadgen.stats.group_sequential import Plan
from loadgen.stats.variance import Noise
from loadgen.util.machine import MAX_STOLEN_SHARE, max_others_cores
from loadgen.util.number_format import brief, duration, fixed, percent, plural, value_range

TWICE = " (twice min_effect: no arm has gained more than min_effect so far)"
MEASURED = " (the largest so far)"
NOT_CONFIRMED = "not run: results of the baseline, and of the arm that the author chose"


def as_text(findings: Findings, columns: int = USUAL_WIDTH) -> Iterator[str]:
    """Yield what was studied and the findings step by step, in lines of so many columns, and the
    conclusion.
    """
    study = findings.study
    metric = f"{study.objective.metric} ({METRICS[study.objective.metric].text})"
    engines = ", ".join(study.engines)
    about = f"Study {study.name}: {metric} on the workload {study.objective.workload}; {engines}"
    opening = [Paragraph.of(about), Paragraph.of(_load(study))]
    if SIMULATOR in study.engines:
        opening.append(Paragraph.of(SIMULATED))
    yield from terminal_writer.lines(opening, columns)
    yield ""
    for step in findings.steps:
        yield from step_lines(step, study, columns, published=findings.published)
        yield ""
    yield from conclusion(findings)
    yield from terminal_writer.lines(list(next_step.blocks(after_study(findings))), sys.maxsize)


def _load(study: Study) -> str:
    """Describe the load of the workload that decides."""
    name = study.objective.workload
    return f"Load of {name}: {load_line.requested(loads(study)[name])}"


def step_lines(
    step: StepResult, study: Study, columns: int = USUAL_WIDTH, *, published: bool = False
) -> Iterator[str]:
    """Yield the arms of a step, its noise, and what was done about disturbed starts."""
    remark = step.open or (NOT_CONFIRMED if step.step.kind == CONFIRMATION and published else "")
    title = f"{step.step.name}{f' ({remark})' if remark else ''}"
    arms = Table.of(("", ""), ((arm.name, arm_line(arm, study)) for arm in step.arms))
    texts = filter(None, (*noise_lines(step), disturbance_text(step, study.objective.workload)))
    note = Note("note", title, (arms, *(Paragraph.of(text) for text in texts)))
    yield from terminal_writer.lines((note,), columns)


def arm_line(arm: ArmResult, study: Study) -> str:
    """Return the verdict and the values of an arm in one line."""
    parts = [str(arm.verdict) + (f" {arm.why}" if arm.verdict is Verdict.SAME_AS else "")]
    if gain := _gain(arm, study):
        parts.append(gain)
    if arm.values:
        middle = statistics.geometric_mean(arm.values)
        unit = METRICS[study.objective.metric].unit
        where = "a single run" if arm.published else plural(len(arm.values), "start")
        parts.append(f"{brief(middle)} {unit} in {where}")
    if arm.why and arm.verdict not in (Verdict.SAME_AS, Verdict.OPEN):
        parts.append(arm.why)
    return ", ".join(parts)


def noise_lines(step: StepResult) -> Iterator[str]:
    """Yield the noise of a step and the effect that it lets one detect."""
    if step.noise is not None and not math.isnan(step.noise.sd):
        yield (
            f"noise {percent(step.noise.sd, 2)}, the standard deviation of one start "
            f"({step.noise.df} df)"
        )
    if step.round_noise is not None:
        yield (
            f"noise {percent(step.round_noise.sd, 2)} of one round in a start "
            f"({step.round_noise.df} df)"
        )
    if step.least_effect is not None:
        yield (
            f"planned to detect effects of {percent(step.least_effect, 1)} or more, by the noise "
            "of earlier steps"
        )


def _gain(arm: ArmResult, study: Study) -> str:
    if arm.comparison is None:
        return ""
    difference = Difference.from_comparison(
        arm.comparison, more_is_better=study.objective.more_is_better
    )
    return difference.text(1) if difference else ""


def conclusion(findings: Findings) -> Iterator[str]:
    """Yield the conclusion, as far as there is one."""
    found = answer(findings)
    sentence = f"{found.text[0].upper()}{found.text[1:]}"
    rival = findings.finalist
    if findings.open:
        yield sentence
        yield from shortfall(findings)
    if findings.nothing_feasible and findings.closest is not None:
        step, arm = findings.closest
        unmet = "No arm met the limits of the study so far" if findings.open else sentence
        yield f"{unmet}; the closest is {step.step.name}/{arm.name} ({arm.why})"
    if findings.open or findings.nothing_feasible or findings.confirmation is None:
        return
    if rival is None:
        yield sentence
    elif gain := _gain(rival, findings.study):
        gained = f"{gain} over the baseline, in fresh starts of both"
        yield f"Winner {rival.name}: {gained}: {found.text}"
    elif rival.verdict is Verdict.AUTHORS_CHOICE:
        yield f"{rival.name}: {found.text}"
    else:
        why = ", ".join(filter(None, (rival.verdict, rival.why)))
        yield f"{rival.name} ({why}): {found.text}"


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
