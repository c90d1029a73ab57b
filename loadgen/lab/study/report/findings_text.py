"""The findings of a study as text for the terminal, and as JSON."""

import math
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

from loadgen.lab.study.execute import publications
from loadgen.lab.study.execute.arm_result import ArmResult, Verdict
from loadgen.lab.study.execute.difference import Difference
from loadgen.lab.study.execute.findings import BUDGET, NOT_YET, Findings, StepResult
from loadgen.lab.study.execute.trial import Trial
from loadgen.lab.study.plan.plan import CONFIRMATION
from loadgen.lab.study.report.disturbance_text import disturbance_text
from loadgen.lab.study.report.shortfall import shortfall
from loadgen.lab.study.spec.objective import METRICS
from loadgen.lab.study.spec.study import Study
from loadgen.util.number_format import brief, duration, fixed, percent, plural

NOT_CONFIRMED = "not run: results of the baseline, and of the arm that the author adopted"
REMEDIES = {NOT_YET: "`loadgen tune run` resumes", BUDGET: "raise it in the study, and run that again"}
NEW_STORE = "mend that, and run the study in another store (--store)"


def as_text(findings: Findings) -> Iterator[str]:
    """Yield the findings step by step, and the conclusion."""
    for found in findings.steps:
        yield from step_lines(found, findings.study, published=findings.published)
        yield ""
    yield from conclusion(findings)


def step_lines(found: StepResult, study: Study, *, published: bool = False) -> Iterator[str]:
    """Yield the arms of a step, its noise, and what was done about disturbed starts."""
    remark = found.open or (NOT_CONFIRMED if found.step.kind == CONFIRMATION and published else "")
    yield f"{found.step.name}{f' ({remark})' if remark else ''}"
    widest = max((len(arm.name) for arm in found.arms), default=0)
    for arm in found.arms:
        yield f"  {arm.name:<{widest}}  {arm_line(arm, study)}"
    yield from (f"  {line}" for line in noise_lines(found))
    if disturbed := disturbance_text(found, study.objective.workload):
        yield f"  {disturbed}"


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


def noise_lines(found: StepResult) -> Iterator[str]:
    """Yield the noise of a step and the effect that it lets one detect."""
    if found.noise is not None and not math.isnan(found.noise.sd):
        yield f"noise {percent(found.noise.sd, 2)}, the standard deviation of one start ({found.noise.df} df)"
    if found.round_noise is not None:
        yield f"noise {percent(found.round_noise.sd, 2)} of one round in a start ({found.round_noise.df} df)"
    if found.least_effect is not None:
        yield f"planned to detect effects from {percent(found.least_effect, 1)}, by the noise of earlier steps"


def _gain(arm: ArmResult, study: Study) -> str:
    if arm.comparison is None:
        return ""
    difference = Difference.from_comparison(arm.comparison, more_is_better=study.objective.more_is_better)
    return difference.text(1) if difference else ""


def conclusion(findings: Findings) -> Iterator[str]:
    """Yield the conclusion, as far as there is one."""
    if findings.open:
        yield f"Not over: {findings.open}; {REMEDIES.get(findings.open, NEW_STORE)}"
        yield from shortfall(findings)
    if findings.nothing_feasible and findings.closest is not None:
        step, arm = findings.closest
        yield f"No arm met the limits of the study; the closest is {step.step.name}/{arm.name} ({arm.why})"
    if findings.open or findings.nothing_feasible or findings.confirmation is None:
        return
    rival = findings.finalist
    if rival is None:
        yield from _baseline_stays(findings)
    elif gain := _gain(rival, findings.study):
        confirmed = "is confirmed" if findings.confirmed else "is not confirmed"
        yield f"Winner {rival.name}: its gain {confirmed}, {gain} in fresh starts beside the baseline"
    elif rival.verdict is Verdict.ADOPTED_BY_AUTHOR:
        yield f"Adopted by the author, as the study expects: {rival.name}; nothing confirmed it"
    else:
        why = ", ".join(filter(None, (rival.verdict, rival.why)))
        if findings.published:
            yield f"Adopted by the author: {rival.name}, but its results do not allow that: {why}"
        else:
            yield f"Winner {rival.name} was not confirmed: {why}"


def _baseline_stays(findings: Findings) -> Iterator[str]:
    arms = [arm for found in findings.steps for arm in found.arms]
    if findings.published:
        yield "No published result is of an arm that the study expects to win"
    elif any(arm.comparison is not None for arm in arms):
        yield "No arm was better than the baseline"
    else:
        yield "No arm was compared with the baseline"


def as_json(findings: Findings, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the findings with all their trials as JSON."""
    return {
        **{name: facts[name] for name in ("study", "source", "host", "builds", "data")},
        **_values(findings, "open", "seconds"),
        "steps": [_step(found) for found in findings.steps],
    }


def _step(found: StepResult) -> dict[str, Any]:
    return {
        **_values(found.step, "name", "kind"),
        **_values(found, "reference", "won", "open", "noise", "round_noise", "least_effect"),
        "arms": [_arm(arm) for arm in found.arms],
    }


def _arm(arm: ArmResult) -> dict[str, Any]:
    return {
        **_values(arm, "name", "verdict", "why", "values", "comparison"),
        "trials": [_trial(trial) for trial in arm.trials],
    }


def _trial(trial: Trial) -> dict[str, Any]:
    return {
        **_values(trial.request, "block", "attempt"),
        **_values(trial, "build", "began", "seconds", "ready_s", "failure", "folder"),
        "answered": None if trial.answers is None else trial.answers.to_dict(),
        "runs": {name: {"path": ran.path, "summary": dict(ran.summary)} for name, ran in trial.runs.items()},
    }


def _values(part: object, *names: str) -> dict[str, Any]:
    return {name: _json(getattr(part, name)) for name in names}


def _json(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def time_spent(findings: Findings) -> str:
    """Return number and time of the starts, and GPU-hours; of published results only their number."""
    if findings.published:
        return f"{publications.counted(findings.trials)} published"
    devices = findings.study.hardware.devices
    hours = f", {fixed(findings.seconds / 3600 * devices, 2, 'GPU-hours')}" if devices else ""
    return f"{plural(len(findings.trials), 'start')}, {duration(findings.seconds)}{hours}"
