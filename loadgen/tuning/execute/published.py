"""Published: what a study has found, of results that others published: one run of each arm, so that nothing is tested.

Each stage is taken to be won by the arm that it expects, where anything of that was published. A page measures what
goes on from stage to stage once, so the runs of an arm are those of its configuration, in whatever step they stand.
"""

from collections.abc import Iterable
from dataclasses import replace

from loadgen.tuning.execute import trial_score
from loadgen.tuning.execute.findings import ArmFound, Findings, StepFound, Verdict
from loadgen.tuning.execute.trial import Trial
from loadgen.tuning.plan.plan import CONFIRMATION, Planned, Step
from loadgen.tuning.plan.planner import Planner
from loadgen.tuning.spec.study import Study

NOTHING = "nothing of it is published"


def found(study: Study, trials: Iterable[Trial]) -> Findings:
    """What published results come to.

    Args:
        study: Which; it has been checked.
        trials: Of a store that results were imported into.

    Raises:
        AtFault: The study asks for what cannot be, once a stage of which nothing is published was won by nobody.
    """
    planner, trials, steps = Planner(study), list(trials), []
    for number in range(len(study.stages)):
        step = planner.stage(number)
        steps.append(_step(step, study, trials))
        by_name = {arm.name: arm for arm in step.arms}
        planner.adopt(number, step.arms, [by_name[name] for name in steps[-1].won])
    steps.append(_step(planner.confirmation(), study, trials))
    return Findings(study, tuple(steps))


def _step(step: Step, study: Study, trials: list[Trial]) -> StepFound:
    reference = step.reference.name
    mine = {arm.name: _of(arm, step, trials) for arm in step.arms}
    wins = step.wins if step.kind != CONFIRMATION else tuple(mine)  # there it is what all stages come to
    won = tuple(name for name in wins if name != reference and not all(trial.failure for trial in mine[name]))
    arms = [_arm(arm, study, mine[arm.name], step, won) for arm in step.arms]
    return StepFound(step, tuple(sorted(arms, key=lambda arm: arm.name != reference)), reference, won)


def _of(arm: Planned, step: Step, trials: list[Trial]) -> list[Trial]:
    """The trials of an arm: of its configuration with a workload of the step, else those that were given to it."""
    same = [trial for trial in trials if trial.config == arm.identity]
    own = [trial for trial in same if trial.failure or trial.runs.keys() & {*arm.workloads}]
    ran = {workload for trial in own for workload in trial.runs}
    given = [trial for trial in trials if (trial.wanted.step, trial.wanted.arm) == (step.name, arm.name)]
    return own + [trial for trial in given if trial.config != arm.identity and not trial.runs.keys() & ran]


def _arm(arm: Planned, study: Study, trials: list[Trial], step: Step, won: tuple[str, ...]) -> ArmFound:
    arm = _measured(arm, study, trials)
    decisive = [trial for trial in trials if study.objective.workload in trial.runs and not trial.failure]
    achieved = [trial_score.value(trial.runs[study.objective.workload].summary, arm.arm, study) for trial in decisive]
    verdict, why = _verdict(arm, study, trials, decisive, step, won)
    misses = sum(trial_score.unmet(trial, study) is not None for trial in decisive)
    return ArmFound(arm, verdict, why, tuple(trials), tuple(value for value in achieved if value is not None), misses)


def _verdict(
    arm: Planned, study: Study, trials: list[Trial], decisive: list[Trial], step: Step, won: tuple[str, ...]
) -> tuple[Verdict, str]:
    failure = next((trial.failure for trial in trials if trial.failure), None)
    missed = next(filter(None, (trial_score.unmet(trial, study) for trial in decisive)), "")
    if failure and all(trial.failure for trial in trials):
        return Verdict.FAILED, f"{failure.kind}: {failure.cause}"
    if arm.name == step.reference.name:
        return Verdict.REFERENCE, missed or _why(arm, trials)
    if not trials:
        return Verdict.NOT_RUN, NOTHING
    if missed:
        return Verdict.INFEASIBLE, missed
    why = _why(arm, trials) if decisive else f"nothing of {study.objective.workload} is published"
    return (Verdict.ADOPTED if arm.name in won else Verdict.PUBLISHED), why


def _why(arm: Planned, trials: list[Trial]) -> str:
    """What is to be known of the runs of an arm: that there are none, or which are of another command."""
    other = {
        workload: ran.summary["loadgen"]["provenance"]["command"]
        for trial in trials
        for workload, ran in trial.runs.items()
        if trial.config != arm.identity
    }
    if other:
        return f"{', '.join(other)}: of {' and '.join(f'`{command}`' for command in dict.fromkeys(other.values()))}"
    return "" if trials else NOTHING


def _measured(arm: Planned, study: Study, trials: list[Trial]) -> Planned:
    """The arm as it was measured.

    Where that was one server, it is taken to have had its share of the box, all of it unless the study has several
    replicas: nobody tells what else stood idle, and so what more could have been served.
    """
    if any(ran.summary["loadgen"]["servers"] > 1 for trial in trials for ran in trial.runs.values()):
        return arm
    devices = arm.arm.devices or tuple(map(str, range(study.hardware.devices)))
    one = replace(arm.arm, replicas=1, devices=devices[: len(devices) // arm.arm.replicas])
    return replace(arm, candidate=replace(arm.candidate, arm=one), launches=arm.launches[:1])
