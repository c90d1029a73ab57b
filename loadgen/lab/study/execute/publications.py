"""Findings from results that others published: one run of each arm, so that nothing is tested.

In each stage, the author is taken to have adopted the arms that the study expects to win, if
results of them were published. A page measures the arm that goes on only once, so an arm gets the
runs of its configuration from any step.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace

from loadgen.lab.study.execute.arm_result import ArmResult, Verdict
from loadgen.lab.study.execute.findings import Findings, StepResult
from loadgen.lab.study.execute.score import missed_limits, objective_value
from loadgen.lab.study.execute.trial import Trial
from loadgen.lab.study.plan.plan import CONFIRMATION, PlannedArm, Step
from loadgen.lab.study.plan.planner import Planner
from loadgen.lab.study.spec.study import Study
from loadgen.util.number_format import plural

NOTHING = "no results published"


def published_findings(study: Study, trials: Iterable[Trial]) -> Findings:
    """Return the findings from published results.

    Args:
        study: The study, checked.
        trials: Trials of a store of imported results.

    Raises:
        AtFault: The study asks for something impossible after a stage without published results.
    """
    planner = Planner(study)
    trials = list(trials)
    steps = []
    for number in range(len(study.stages)):
        step = planner.stage(number)
        steps.append(_step(step, study, trials))
        by_name = {arm.name: arm for arm in step.arms}
        planner.adopt(number, step.arms, [by_name[name] for name in steps[-1].won])
    steps.append(_step(planner.confirmation(), study, trials))
    return Findings(study, tuple(steps), published=True)


def counted(trials: Sequence[Trial]) -> str:
    """Return how many results the trials have, and how many commands that failed without one."""
    results = len([trial for trial in trials if trial.runs])
    failed = len(trials) - results
    return plural(results, "result") + (
        f" and {plural(failed, 'failed command')}" if failed else ""
    )


def _step(step: Step, study: Study, trials: list[Trial]) -> StepResult:
    reference = step.reference.name
    trials_of = {}
    for arm in step.arms:
        same = [trial for trial in trials if trial.config == arm.identity]
        usable = [trial for trial in same if trial.failure or trial.runs.keys() & {*arm.workloads}]
        ran = set(itertools.chain.from_iterable(trial.runs for trial in usable))
        named = [
            trial for trial in trials if f"{trial.request.step}/{trial.request.arm}" == arm.path
        ]
        other = [
            trial for trial in named if trial.config != arm.identity and not trial.runs.keys() & ran
        ]
        trials_of[arm.name] = usable + other
    # The confirmation has only baseline and winner.
    wins = step.wins if step.kind != CONFIRMATION else tuple(trials_of)
    won = tuple(
        name
        for name in wins
        if name != reference and not all(trial.failure for trial in trials_of[name])
    )
    arms = [_result(arm, study, trials_of[arm.name], step, won) for arm in step.arms]
    return StepResult(
        step, tuple(sorted(arms, key=lambda arm: arm.name != reference)), reference, won
    )


def _result(
    planned: PlannedArm, study: Study, trials: list[Trial], step: Step, won: tuple[str, ...]
) -> ArmResult:
    planned = _as_measured(planned, study, trials)
    workload = study.objective.workload
    deciding = [trial for trial in trials if workload in trial.runs and not trial.failure]
    values = [objective_value(trial.runs[workload], planned.spec, study) for trial in deciding]
    missed = [limits for trial in deciding if (limits := missed_limits(trial, study)) is not None]
    arm = ArmResult(
        planned,
        reason=_remark(planned, trials),
        trials=tuple(trials),
        values=tuple(value for value in values if value is not None),
        misses=len(missed),
    )
    failure = next((trial.failure for trial in trials if trial.failure), None)
    if failure and all(trial.failure for trial in trials):
        return replace(arm, verdict=Verdict.FAILED, reason=str(failure))
    if planned.name == step.reference.name:
        return replace(
            arm, verdict=Verdict.REFERENCE, reason=next(filter(None, missed), arm.reason)
        )
    if not trials:
        return replace(arm, verdict=Verdict.NOT_RUN)
    if any(missed):
        return replace(arm, verdict=Verdict.INFEASIBLE, reason=next(filter(None, missed)))
    if not deciding:
        arm = replace(arm, reason=f"no results on {workload} published")
    return replace(
        arm, verdict=Verdict.AUTHORS_CHOICE if planned.name in won else Verdict.PUBLISHED
    )


def _remark(arm: PlannedArm, trials: list[Trial]) -> str:
    commands: dict[str, str | None] = {}  # of other arms, by workload
    for trial in trials:
        if trial.config != arm.identity:
            for workload, run in trial.runs.items():
                commands[workload] = (
                    run.findings.provenance.command if run.findings.provenance else None
                )
    if commands:
        texts = [f"`{command}`" for command in dict.fromkeys(commands.values())]
        return f"{', '.join(commands)}: of {' and '.join(texts)}"
    return "" if trials else NOTHING


def _as_measured(arm: PlannedArm, study: Study, trials: list[Trial]) -> PlannedArm:
    """Return the arm with the number of servers that was measured.

    One server gets its share of the box: all of it, unless the study has several replicas. Pages do
    not say how many devices were idle, so nothing more can be scaled up.
    """
    runs = itertools.chain.from_iterable(trial.runs.values() for trial in trials)
    if any(run.findings.servers > 1 for run in runs):
        return arm
    devices = arm.spec.devices or tuple(map(str, range(study.hardware.devices)))
    spec = replace(arm.spec, replicas=1, devices=devices[: len(devices) // arm.spec.replicas])
    return replace(arm, spec=spec, launches=arm.launches[:1])
