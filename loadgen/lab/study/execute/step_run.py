"""The run of one step: starts its arms block by block until each of them is decided."""

import itertools
import json
import math
from collections.abc import Generator, Iterable
from dataclasses import replace
from functools import partial

import numpy as np

from loadgen.lab.study.execute.accuracy_gate import AccuracyGate
from loadgen.lab.study.execute.arm_result import ArmResult, Verdict, same_config
from loadgen.lab.study.execute.disturbance import attempts, disturbance
from loadgen.lab.study.execute.findings import StepResult
from loadgen.lab.study.execute.score import count_trial, gain, objective_value
from loadgen.lab.study.execute.trial import Answers, Trial, TrialRequest, usable_answers
from loadgen.lab.study.plan.plan import CONFIRMATION, NOISE, NOISE_STARTS, PlannedArm, Step
from loadgen.lab.study.plan.planner import Planner
from loadgen.lab.study.spec.arm_spec import ArmSpec
from loadgen.lab.study.spec.study import Study
from loadgen.stats import group_sequential
from loadgen.stats.group_sequential import Comparison, Decision
from loadgen.stats.variance import Noise
from loadgen.util.number_format import percent

Assignments = frozenset[tuple[str, ...]]  # all settings of an arm
_COMPARABLE = (
    Verdict.BETTER,
    Verdict.NOT_SIGNIFICANT,
    Verdict.WORSE,
    Verdict.NOT_RUN,
    Verdict.OPEN,
)


class StepRun:
    """Runs a step: yields the starts it needs, and decides from their trials.

    Args:
        step: The step.
        study: The study.
        planner: Its planner, for engines and workloads.
        nogoods: Settings that made an arm fail; the run adds those of its own arms.
        noise_before: Noise of the steps before; None: unknown.
        base_answers: Answers of the baseline to the gate's questions; None if it was not asked.

    Attributes:
        least_effect: Smallest effect, a share, that the step can detect; None: unknown.
        over: Whether the step has ended.
        broken: Why the reference cannot be measured; empty if it can.
        arms_ahead: Names of the arms that the running block starts after the one that is started
            now.
    """

    def __init__(
        self,
        step: Step,
        study: Study,
        planner: Planner,
        nogoods: list[Assignments],
        noise_before: Noise | None,
        base_answers: Answers | None,
    ) -> None:
        self.step = step
        self._study = study
        self._planner = planner
        self._nogoods = nogoods
        self._noise_before = noise_before
        self._gate = AccuracyGate(study, base_answers)
        self._base = step.reference.name  # name of the reference
        self._arms = {arm.name: ArmResult(arm) for arm in step.arms}
        self._update(self._base, verdict=Verdict.REFERENCE)
        decision = study.decision
        self._plan = group_sequential.Plan(
            decision.min_effect, decision.confidence, step.min_starts, step.max_starts
        )
        rivals = max(1, len(self._arms) - 1)
        self.least_effect = (
            group_sequential.detectable_effect(noise_before, rivals, self._plan)
            if noise_before
            else None
        )
        self.over = False
        self.broken = ""
        self.arms_ahead: tuple[str, ...] = ()
        self._reference_unmeasured = (
            False  # it ran without a value, so that it is not started again
        )

    def run(self) -> Generator[TrialRequest, Trial, None]:
        """Yield the starts that are needed; each expects its trial to be sent."""
        for arm in self._rivals():
            nogood = next(
                (bad for bad in self._nogoods if bad <= _assignments(arm.planned.spec)), None
            )
            if nogood is not None:
                shown = " ".join(
                    "=".join(part) for part in sorted(nogood) if part != ("replicas", "1")
                )
                reason = f"its settings contain those of an arm that failed: {shown}"
                self._update(arm.name, verdict=Verdict.PRUNED, reason=reason)
        alone = self.step.kind not in (NOISE, CONFIRMATION) and self._decided(self.step.min_starts)
        for block in range(0 if alone else self.step.max_starts):
            order = self.step.order(self._study.decision.seed, block)
            for place, name in enumerate(order):
                if self._is_open(name) and not self.broken:
                    self.arms_ahead = tuple(
                        later for later in order[place + 1 :] if self._is_open(later)
                    )
                    yield from self._start(name, block)
            if block == 0:
                self._find_same_arms()
            self._compare(block + 1)
            if self._decided(block + 1):
                break
        self.over = True
        self._adopt()

    def found(self, open_: str = "") -> StepResult:
        """Return the result of the step so far.

        Args:
            open_: Why the step does not go on now.
        """
        open_ = "" if self.over else open_
        arms = sorted(self._arms.values(), key=lambda arm: arm.name != self._base)
        return StepResult(
            step=self.step,
            arms=tuple(
                replace(arm, reason=open_) if arm.undecided and not self.broken else arm
                for arm in arms
            ),
            reference=self._base,
            won=tuple(arm.name for arm in self._winners()) if self.over else (),
            noise=self._noise(),
            round_noise=self._round_noise(),
            least_effect=self.least_effect,
            open=open_,
        )

    def arm(self, name: str) -> PlannedArm:
        """Return the arm of that name."""
        return self._arms[name].planned

    @property
    def winners(self) -> list[PlannedArm]:
        """The arms that go on, the best first; empty: the reference stays."""
        return [arm.planned for arm in self._winners()]

    @property
    def _reference(self) -> ArmResult:
        return self._arms[self._base]

    def _rivals(self) -> list[ArmResult]:
        return [arm for arm in self._arms.values() if arm.name != self._base]

    def _update(self, name: str, **changes: object) -> None:
        self._arms[name] = replace(self._arms[name], **changes)  # type: ignore[arg-type]

    def _is_open(self, name: str) -> bool:
        return not self._reference_unmeasured if name == self._base else self._arms[name].undecided

    def _start(self, name: str, block: int) -> Generator[TrialRequest, Trial, None]:
        request = TrialRequest(self.step.name, block, name)
        trial = yield from attempts(
            request, self._study.objective.workload, partial(self._add, name)
        )
        failure = trial.failure
        if failure is None:
            before = self._arms[name]
            arm = count_trial(
                before, trial, self._study, self._gate, max_misses=self.step.min_starts
            )
            if name == self._base:
                self._reference_unmeasured = len(arm.values) == len(before.values)
                arm = replace(arm, verdict=Verdict.REFERENCE)
            self._arms[name] = arm
            answers = usable_answers(self._reference.trials)
            asks_again = answers is not None and answers.unjudged and block + 1 < NOISE_STARTS
            if self.step.kind == NOISE and not asks_again:
                self._break(self._gate.baseline_unusable_reason(answers))
            return
        if name == self._base:
            self._break(str(failure))
            return
        self._update(name, verdict=Verdict.FAILED, reason=str(failure))
        if not failure.transient:
            self._nogoods.append(_assignments(self.arm(name).spec))

    def _break(self, reason: str) -> None:
        self.broken = reason
        if reason:
            self._update(self._base, verdict=Verdict.FAILED, reason=reason)

    def _add(self, name: str, trial: Trial) -> None:
        arm = self._arms[name]
        verdict = Verdict.OPEN if arm.undecided else arm.verdict
        self._update(name, trials=(*arm.trials, trial), verdict=verdict)

    def _find_same_arms(self) -> None:
        if self.step.kind == CONFIRMATION:
            return
        names = [self._base, *(arm.name for arm in self._rivals())]
        in_flight = 0.0
        for name in self.step.arms[0].workloads:
            load = self._planner.loads[name]
            bounds = [bound for bound in (load.max_concurrency, load.num_prompts) if bound]
            in_flight = max(in_flight, min(bounds, default=math.inf))
        for before, name in itertools.combinations(names, 2):
            other = self._arms[before]
            arm = self._arms[name]
            ran = (
                arm.values and other.values and Verdict.SAME_AS not in (arm.verdict, other.verdict)
            )
            if ran and same_config(
                other, arm, self._planner.engines.knobs(arm.planned.spec.engine), in_flight
            ):
                self._update(name, verdict=Verdict.SAME_AS, reason=other.name)

    def _compare(self, blocks: int) -> None:
        if (
            blocks < self.step.min_starts
            or len(self._reference.values) < blocks
            or self.step.kind == NOISE
        ):
            return
        compared = [arm for arm in self._rivals() if len(arm.values) >= self.step.min_starts]
        if not compared:
            return
        rows = (self._reference, *compared)
        gains = {
            arm.name: [gain(value, self._study) for value in arm.values[:blocks]] for arm in rows
        }
        comparisons = group_sequential.compare(
            gains, self._base, self._plan, self._noise_before, self._disturbances(rows, blocks)
        )
        for name, comparison in comparisons.items():
            self._update(name, comparison=comparison)
            if self._arms[name].undecided and comparison.decision is not Decision.OPEN:
                if comparison.decision is Decision.BETTER:
                    self._update(name, verdict=Verdict.BETTER, reason="")
                else:
                    self._reject(name, comparison)
        winners = [arm for arm in self._winners() if arm.feasible]
        if len(winners) < self._study.keep:
            return
        last = min(winners, key=self._level)
        for arm in self._rivals():
            bounds = arm.comparison
            if arm.undecided and bounds is not None and 1 + bounds.high < self._level(last):
                self._reject(arm.name, bounds, f"{last.name} is better")

    def _reject(self, name: str, comparison: Comparison, why: str = "") -> None:
        if comparison.high < 0:
            self._update(name, verdict=Verdict.WORSE, reason="")
            return
        least_effect = self._plan.least_effect
        least = percent(least_effect, 1)
        if comparison.low > 0:
            reason = f"a gain below {least} is not ruled out"
        elif comparison.high < least_effect:
            reason = f"a gain of {least} is ruled out"
        else:
            reason = f"a gain of {least} is neither shown nor ruled out"
            if comparison.disturbed:
                reason = f"{reason}: the machine was too busy"
        self._update(
            name, verdict=Verdict.NOT_SIGNIFICANT, reason=f"{reason}; {why}" if why else reason
        )

    def _disturbances(self, arms: Iterable[ArmResult], blocks: int) -> dict[str, list[float]]:
        """Return how much each start that counts was disturbed, as a multiple of the limit; 0 if
        it was not.
        """
        excesses: dict[str, list[float]] = {}
        for arm in arms:
            trials = arm.counted[: min(len(arm.values), blocks)]
            parts = [disturbance(trial, self._study.objective.workload) for trial in trials]
            excesses[arm.name] = [part.excess if part.disturbed else 0.0 for part in parts]
        return excesses

    def _decided(self, blocks: int) -> bool:
        if self.broken:
            return True
        if self.step.kind == NOISE or blocks < self.step.min_starts:
            return False
        return self._reference_unmeasured or not any(arm.undecided for arm in self._rivals())

    def _adopt(self) -> None:
        for arm in self._rivals():
            if arm.undecided and self.broken:
                reason = f"the arm to compare with failed: {self.broken}"
                self._update(arm.name, verdict=Verdict.NOT_RUN, reason=reason)
            elif (arm.undecided or arm.verdict is Verdict.BETTER) and not arm.feasible:
                self._update(arm.name, verdict=Verdict.INFEASIBLE)
        if not self._reference.feasible and not self.broken:
            for arm in self._rivals():
                if arm.feasible and arm.verdict in _COMPARABLE:
                    reason = f"it meets limits that {self._base} misses"
                    self._update(arm.name, verdict=Verdict.BETTER, reason=reason)
        for arm in self._rivals():
            if arm.verdict is Verdict.BETTER and self._gate.leaves_open(
                arm.planned.spec, arm.trials
            ):
                self._update(arm.name, verdict=Verdict.NOT_JUDGED)
        for arm in self._winners():
            self._update(arm.name, verdict=Verdict.ADOPTED)

    def _winners(self) -> list[ArmResult]:
        """Return the arms that go on, the best first; of two equally good ones the one with
        fewer settings.
        """
        won = [arm for arm in self._rivals() if arm.verdict in (Verdict.BETTER, Verdict.ADOPTED)]
        won.sort(key=self._level, reverse=True)
        if won:
            floor = self._level(won[0]) / (1 + self._study.decision.min_effect)
            tied = [arm for arm in won if self._level(arm) >= floor]
            first = min(tied, key=lambda arm: arm.planned.spec.overrides)
            won = [first, *(arm for arm in won if arm is not first)]
        return won[: self._study.keep]

    def _level(self, arm: ArmResult) -> float:
        """Return the ratio of an arm's gain to the reference's, in common blocks; more is
        better.
        """
        if arm.comparison is not None:
            return 1 + arm.comparison.effect
        values = self._reference.values
        return gain(arm.values[0], self._study) / (gain(values[0], self._study) if values else 1.0)

    def _noise(self) -> Noise | None:
        """Estimate the noise from all arms with two values.

        If only one arm has them, its starts are used, without those that were disturbed if two
        others are left.
        """
        arms = [arm for arm in self._arms.values() if len(arm.values) >= 2]
        if not arms:
            return None
        if len(arms) == 1:
            workload = self._study.objective.workload
            pairs = zip(arms[0].values, arms[0].counted, strict=False)
            quiet = [value for value, trial in pairs if not disturbance(trial, workload).disturbed]
            return Noise.of_replicates(np.log(quiet if len(quiet) >= 2 else arms[0].values))
        values = group_sequential.table({arm.name: arm.values for arm in arms})
        return Noise.of_layout(np.log(values))

    def _round_noise(self) -> Noise | None:
        blocks: dict[int, list[list[float]]] = {}
        for arm in self._arms.values():
            for trial in arm.counted:
                rounds = trial.runs[self._study.objective.workload].rounds
                values = [objective_value(run, arm.planned.spec, self._study) for run in rounds]
                logs = [math.log(value) for value in values if value is not None]
                if len(logs) == self._study.decision.rounds > 1:
                    blocks.setdefault(trial.request.block, []).append(logs)
        tables = [np.array(rows) for rows in blocks.values()]
        return Noise.pooled(
            [
                Noise.of_layout(rows) if len(rows) > 1 else Noise.of_replicates(rows[0])
                for rows in tables
            ]
        )


def _assignments(arm: ArmSpec) -> Assignments:
    return frozenset(
        [
            *(("engine", arm.engine), ("model", arm.model), ("replicas", str(arm.replicas))),
            *([("devices", *arm.devices)] if arm.devices else []),
            *((name, json.dumps(value, sort_keys=True)) for name, value in arm.knobs.items()),
            *((name, *words) for name, words in arm.raw.items()),
            *((f"${name}", value) for name, value in arm.env.items()),
        ]
    )
