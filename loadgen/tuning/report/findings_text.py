"""Told: what a study has found, as text for a person, and as JSON."""

import math
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from loadgen.stats.group_sequential import Comparison
from loadgen.tuning.execute.findings import BUDGET, NOT_YET, ArmFound, Findings, StepFound, Verdict
from loadgen.tuning.execute.trial import Trial
from loadgen.tuning.spec.objective import METRICS
from loadgen.tuning.spec.study import Study
from loadgen.util.number_format import duration, percent, signed

REMEDIES = {NOT_YET: "`loadgen tune run` goes on", BUDGET: "raise it in the study, and run that again"}


def as_text(findings: Findings) -> Iterator[str]:
    """The findings, step by step, and what follows from them."""
    for found in findings.steps:
        yield from step_lines(found, findings.study)
        yield ""
    yield from conclusion(findings)


def step_lines(found: StepFound, study: Study) -> Iterator[str]:
    """One step: its noise and what became of its arms."""
    yield f"{found.step.name}{f' ({found.open})' if found.open else ''}"
    widest = max((len(arm.name) for arm in found.arms), default=0)
    for arm in found.arms:
        yield f"  {arm.name:<{widest}}  {arm_line(arm, study)}"
    yield from (f"  {line}" for line in noise_lines(found))


def arm_line(arm: ArmFound, study: Study) -> str:
    """What became of an arm, in one line."""
    parts = [str(arm.verdict) + (f" {arm.why}" if arm.verdict is Verdict.SAME_AS else "")]
    if arm.comparison is not None and arm.comparison.blocks:
        parts.append(delta(arm.comparison, study))
    if arm.values:
        middle = statistics.geometric_mean(arm.values)
        parts.append(f"{number(middle)} {unit(study)} in {len(arm.values)} start{'s' * (len(arm.values) != 1)}")
    if arm.why and arm.verdict not in (Verdict.SAME_AS, Verdict.OPEN):
        parts.append(arm.why)
    return ", ".join(parts)


def noise_lines(found: StepFound) -> Iterator[str]:
    """How much starts of the same arm differ, and what that lets be seen."""
    if found.noise is not None and not math.isnan(found.noise.sd):
        yield f"noise {percent(found.noise.sd, 2)}, the standard deviation of one start ({found.noise.df} df)"
    if found.least_effect is not None:
        yield f"by the noise before it, effects from {percent(found.least_effect, 1)} are likely to be seen"


def delta(comparison: Comparison, study: Study) -> str:
    """By how much a value is another, and the bounds of that: "+5.2% (+3.1% to +7.4%)"."""
    change = comparison if study.objective.more_is_better else comparison.inverted
    low, high = ("..." if math.isinf(end) or end <= -1 else signed(end) for end in (change.low, change.high))
    return f"{signed(change.effect)} ({low} to {high})"


def conclusion(findings: Findings) -> Iterator[str]:
    """What follows, as far as it does."""
    if findings.open:
        yield "; ".join(filter(None, (f"Not over: {findings.open}", REMEDIES.get(findings.open))))
    if findings.nothing_feasible and findings.closest is not None:
        step, arm = findings.closest
        yield f"No arm held what the study demands; the closest is {step.step.name}/{arm.name} ({arm.why})"
    if findings.open or findings.confirmation is None:
        return
    rival = findings.finalist
    if rival is None:
        yield "Nothing was better than the baseline"
    elif rival.comparison is not None:
        held = "holds" if findings.confirmed else "was not confirmed"
        gain = delta(rival.comparison, findings.study)
        yield f"Winner {rival.name}: its gain {held}, {gain} in fresh starts beside the baseline"
    elif findings.confirmed:
        yield f"Published as the winner: {rival.name}; of single runs nobody can say how sure that is"
    else:
        yield f"Winner {rival.name} was not confirmed: {', '.join(filter(None, (rival.verdict, rival.why)))}"


def as_json(findings: Findings, facts: Mapping[str, Any]) -> dict[str, Any]:
    """The findings and every trial they rest on, as JSON."""
    return {
        "study": facts["study"],
        "source": facts["source"],
        "host": facts["host"],
        "builds": facts["builds"],
        "data": facts["data"],
        "open": findings.open,
        "seconds": findings.seconds,
        "steps": [_step(found) for found in findings.steps],
    }


def unit(study: Study) -> str:
    """Of the objective's metric."""
    return METRICS[study.objective.metric].unit


def number(value: float) -> str:
    """With the digits that mean something: 3,019.2; 12.35; 0.04512."""
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.4g}"


def _step(found: StepFound) -> dict[str, Any]:
    return {
        "name": found.step.name,
        "kind": found.step.kind,
        "reference": found.reference,
        "won": list(found.won),
        "open": found.open,
        "noise": None if found.noise is None else asdict(found.noise),
        "least_effect": found.least_effect,
        "arms": [_arm(arm) for arm in found.arms],
    }


def _arm(arm: ArmFound) -> dict[str, Any]:
    return {
        "name": arm.name,
        "verdict": arm.verdict,
        "why": arm.why,
        "values": list(arm.values),
        "comparison": None if arm.comparison is None else asdict(arm.comparison),
        "trials": [_trial(trial) for trial in arm.trials],
    }


def _trial(trial: Trial) -> dict[str, Any]:
    return {
        "block": trial.wanted.block,
        "attempt": trial.wanted.attempt,
        "build": trial.build,
        "began": trial.began,
        "seconds": trial.seconds,
        "ready_s": trial.ready_s,
        "failure": None if trial.failure is None else asdict(trial.failure),
        "folder": trial.folder,
        "answered": None if trial.answered is None else trial.answered.to_dict(),
        "runs": {name: {"path": ran.path, "summary": dict(ran.summary)} for name, ran in trial.runs.items()},
    }


def duration_of(findings: Findings) -> str:
    """Time that was spent on starts, and GPU-hours."""
    devices = findings.study.hardware.devices
    hours = f", {findings.seconds / 3600 * devices:.2f} GPU-hours" if devices else ""
    return f"{len(findings.trials)} starts, {duration(findings.seconds)}{hours}"
