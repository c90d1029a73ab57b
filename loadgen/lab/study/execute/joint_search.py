"""The search of a joint stage: draws combinations one by one, guided by the values of those before."""

from collections.abc import Callable, Generator
from dataclasses import replace
from functools import partial
from typing import Any

from loadgen.errors import BadInput
from loadgen.lab.study.execute.accuracy_gate import AccuracyGate
from loadgen.lab.study.execute.arm_result import ArmResult, Verdict
from loadgen.lab.study.execute.findings import StepResult
from loadgen.lab.study.execute.score import count_trial, gain
from loadgen.lab.study.execute.start_attempts import attempts
from loadgen.lab.study.execute.trial import Answers, Trial, TrialRequest
from loadgen.lab.study.plan.plan import PlannedArm, Step
from loadgen.lab.study.plan.planner import Planner
from loadgen.lab.study.spec.stages import Categorical, IntRange, Joint, Log2Range
from loadgen.lab.study.spec.study import Study
from loadgen.util.packages import require

STEP_NAME = "{} (drawn)"


class JointSearch:
    """Draws combinations of a joint stage and tries each of them once.

    Attributes:
        arms_ahead: Unknown before the arm that is running has ended.
    """

    def __init__(
        self,
        step: Step,
        number: int,
        stage: Joint,
        study: Study,
        planner: Planner,
        base_answers: Answers | None,
    ) -> None:
        self._gate = AccuracyGate(study, base_answers)
        self._final, self._number, self._stage, self._study, self._planner = step, number, stage, study, planner
        self.step = replace(step, name=STEP_NAME.format(step.name), kind="drawn", arms=(step.reference,), trials=0)
        self._arms: dict[str, ArmResult] = {}
        self._drawn: dict[str, PlannedArm] = {}
        self._over = False

    arms_ahead: tuple[str, ...] = ()

    def arm(self, name: str) -> PlannedArm:
        """Return the arm of that name."""
        return self._drawn[name]

    def run(self) -> Generator[TrialRequest, Trial, None]:
        """Yield the starts that are needed; each expects its trial to be sent."""
        draws = _sampler(self._stage, self._study.decision.seed)
        for number in range(self._stage.trials):
            draw = draws.ask()
            values = {name: _value(draw, name, values) for name, values in self._stage.joint.items()}
            try:
                planned = self._planner.drawn(self._number, values)
            except BadInput:  # an impossible combination: the sampler learns that it failed
                draws.tell(draw, state=_failed())
                continue
            arm = next((one for one in self._arms.values() if one.planned.identity == planned.identity), None)
            if arm is None:
                self._drawn[planned.name] = planned
                arm = yield from self._start(planned, number)
            if arm.values and arm.verdict is Verdict.DRAWN:
                draws.tell(draw, gain(arm.values[0], self._study))
            else:
                draws.tell(draw, state=_failed())
        self._over = True

    def found(self, open_: str = "") -> StepResult:
        """Return the result of the search so far.

        Args:
            open_: Why the search does not go on now.
        """
        best = self._best()
        return StepResult(
            step=replace(self.step, arms=tuple(arm.planned for arm in self._arms.values())),
            arms=tuple(self._arms.values()),
            reference="",
            won=(best.name,) if best and self._over else (),
            open="" if self._over else open_,
        )

    def final(self) -> Step:
        """Return the stage with the best drawn arm as its only rival."""
        starts = tuple(arm for arm in self._final.arms if arm.start)
        best = self._best()
        if best is None or any(arm.identity == best.planned.identity for arm in starts):
            return replace(self._final, arms=starts, trials=0)
        return replace(self._final, arms=(*starts, best.planned), trials=0)

    def _best(self) -> ArmResult | None:
        able = [arm for arm in self._arms.values() if arm.verdict is Verdict.DRAWN and arm.values]
        return max(able, key=lambda arm: gain(arm.values[0], self._study), default=None)

    def _start(self, planned: PlannedArm, number: int) -> Generator[TrialRequest, Trial, ArmResult]:
        request = TrialRequest(self.step.name, number, planned.name)
        trial = yield from attempts(request, self._study.objective.workload, partial(self._add, planned))
        arm = self._arms[planned.name]
        if trial.failure is not None:
            arm = replace(arm, verdict=Verdict.FAILED, reason=str(trial.failure))
        else:
            arm = count_trial(arm, trial, self._study, self._gate, max_misses=1)
        self._arms[planned.name] = arm
        return arm

    def _add(self, planned: PlannedArm, trial: Trial) -> None:
        arm = self._arms.get(planned.name, ArmResult(planned, Verdict.DRAWN))
        self._arms[planned.name] = replace(arm, trials=(*arm.trials, trial))


def require_sampler(stage: Joint) -> None:
    """Check that the packages of a stage's sampler are installed.

    Raises:
        BadInput: A package is missing.
    """
    packages = ("optuna", "scipy", "torch") if stage.sampler == "gp" else ("optuna",)
    require(f"sampler {stage.sampler}", "drawing arms", *packages)


def _sampler(stage: Joint, seed: int) -> Any:
    """Return Optuna's study that draws the combinations.

    Raises:
        BadInput: A package is missing.
    """
    require_sampler(stage)
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    samplers: dict[str, Callable[[], Any]] = {
        "tpe": lambda: optuna.samplers.TPESampler(seed=seed, n_startup_trials=min(10, stage.trials // 2)),
        "gp": lambda: optuna.samplers.GPSampler(seed=seed),
        "random": lambda: optuna.samplers.RandomSampler(seed=seed),
    }
    return optuna.create_study(direction="maximize", sampler=samplers[stage.sampler]())


def _value(draw: Any, name: str, values: Log2Range | IntRange | Categorical) -> Any:
    if isinstance(values, Log2Range):
        low, high = (number.bit_length() - 1 for number in values.log2)
        return 1 << draw.suggest_int(name, low, high)
    if isinstance(values, IntRange):
        low, high = values.ends()
        return draw.suggest_int(name, low, high, step=values.step)
    return values.choice[draw.suggest_categorical(name, range(len(values.choice)))]  # Optuna takes no lists as values


def _failed() -> Any:
    from optuna.trial import TrialState

    return TrialState.FAIL
