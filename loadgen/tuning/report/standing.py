"""Standing: where an arm stands in its step: what it achieved on each workload, and beside the reference."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from loadgen.stats import group_sequential
from loadgen.tuning.execute import trial_score
from loadgen.tuning.execute.findings import ArmFound, StepFound
from loadgen.tuning.execute.trial import Ran
from loadgen.tuning.report.delta import Delta
from loadgen.tuning.spec.study import Study


@dataclass(frozen=True)
class Case:
    """An arm on a workload.

    Attributes:
        runs: Those that count, by block.
        scores: What each achieved at the objective's metric, where it tells.
        achieved: Their geometric mean; None without any.
        total_tps: Input and output tokens/s of the box, the geometric mean of the runs.
        user_tps: Output tokens/s that a user sees: 1000 / median TPOT in ms, the mean of the runs.
        gpu_tps: Output tokens/s of each device that is used, the geometric mean of the runs.
        estimated: Whether what is told of the box was measured of a part of it.
    """

    runs: Mapping[int, Ran]
    scores: Mapping[int, float]
    achieved: float | None
    total_tps: float | None
    user_tps: float | None
    gpu_tps: float | None
    estimated: bool

    @property
    def middle(self) -> Ran:
        """The run whose score is in the middle; of two, the lower."""
        order = sorted(self.scores, key=self.scores.__getitem__) or list(self.runs)
        return self.runs[order[(len(order) - 1) // 2]]

    def mean(self, name: str) -> float | None:
        """The arithmetic mean of a number of the runs' summaries; None where none has it."""
        return _mean(_values(self.runs.values(), name))


@dataclass(frozen=True)
class Standing:
    """An arm in its step.

    Attributes:
        found: The arm.
        cases: What it achieved, by workload.
        deltas: Its scores beside the reference's, by workload.
    """

    found: ArmFound
    cases: Mapping[str, Case]
    deltas: Mapping[str, Delta]

    @property
    def name(self) -> str:
        """In the step."""
        return self.found.name


def standings(step: StepFound, study: Study, *, published: bool) -> list[Standing]:
    """The arms of a step, the reference first.

    Args:
        step: Which.
        study: Whose.
        published: Whether each was measured once, and will not be measured again.
    """
    cases = {arm.name: _cases(arm, study) for arm in step.arms}
    reference = cases.get(step.reference, {})
    return [
        Standing(
            found=arm,
            cases=cases[arm.name],
            deltas={} if arm.name == step.reference else _deltas(arm, cases[arm.name], reference, study, published),
        )
        for arm in step.arms
    ]


def _cases(found: ArmFound, study: Study) -> dict[str, Case]:
    names = dict.fromkeys(name for trial in found.trials for name in trial.runs)
    cases = {}
    for name in names:
        runs = {
            trial.wanted.block: trial.runs[name]
            for trial in found.trials
            if trial.failure is None and name in trial.runs
        }
        if runs:
            cases[name] = _case(runs, found, study)
    return cases


def _case(runs: Mapping[int, Ran], found: ArmFound, study: Study) -> Case:
    arm = found.planned.arm
    scored = {block: trial_score.value(ran.summary, arm, study) for block, ran in runs.items()}
    scores = {block: score for block, score in scored.items() if score is not None}
    copies, devices = trial_score.copies(arm, study), trial_score.devices_used(arm, study)
    total, output = (_geometric(_values(runs.values(), f"{name}_throughput")) for name in ("total_token", "output"))
    return Case(
        runs=runs,
        scores=scores,
        achieved=_geometric(list(scores.values())),
        total_tps=None if total is None else total * copies,
        user_tps=_mean([1000 / tpot for tpot in _values(runs.values(), "median_tpot_ms")]),
        gpu_tps=None if output is None else output / devices,
        estimated=copies > 1,
    )


def _deltas(
    arm: ArmFound, cases: Mapping[str, Case], reference: Mapping[str, Case], study: Study, published: bool
) -> dict[str, Delta]:
    found = {}
    for name in cases.keys() & reference.keys():
        decides = arm.comparison is not None and name == study.objective.workload
        delta = _decided(arm, study) if decides else _delta(cases[name], reference[name], study, published)
        if delta is not None:
            found[name] = delta
    return found


def _decided(arm: ArmFound, study: Study) -> Delta | None:
    assert arm.comparison is not None
    return Delta.compared(arm.comparison, more_is_better=study.objective.more_is_better)


def _delta(case: Case, reference: Case, study: Study, published: bool) -> Delta | None:
    """Of a workload that decides nothing: the same comparison, as if one looked once, at all the blocks there are."""
    more_is_better = study.objective.more_is_better
    if case.achieved is None or reference.achieved is None:
        return None
    blocks = [block for block in case.scores if block in reference.scores]
    if len(blocks) < 2:
        return Delta.of_runs_apart(case.achieved, reference.achieved, more_is_better=more_is_better, single=published)
    gains = {
        name: [trial_score.gain(scores[block], study) for block in blocks]
        for name, scores in (("reference", reference.scores), ("arm", case.scores))
    }
    plan = group_sequential.Plan(study.decision.min_effect, study.decision.confidence, len(blocks), len(blocks))
    return Delta.compared(group_sequential.compare(gains, "reference", plan)["arm"], more_is_better=more_is_better)


def _values(runs: Iterable[Ran], name: str) -> list[float]:
    found = (ran.summary.get(name) for ran in runs)
    return [float(value) for value in found if isinstance(value, int | float) and value > 0]


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None


def _geometric(values: Sequence[float]) -> float | None:
    return statistics.geometric_mean(values) if values else None
