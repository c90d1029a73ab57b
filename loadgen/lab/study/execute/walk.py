"""A walk through a study as a function of its trials: the start that is needed next, and the
findings so far.

Its caller asks for the next start and adds the trial of it. Nothing else decides: an interrupted
study goes on when the walk is repeated with the trials in the store, and a report repeats the walk
in the same way. A joint stage draws its combinations one by one, guided by the values of those
before (`JointSearch`).
"""

from collections.abc import Callable, Generator
from dataclasses import replace
from functools import partial
from typing import Any

from loadgen.errors import BadInput
from loadgen.lab.study.execute.accuracy_gate import AccuracyGate
from loadgen.lab.study.execute.arm_result import ArmResult, Verdict
from loadgen.lab.study.execute.disturbance import attempts
from loadgen.lab.study.execute.findings import Findings, StepResult
from loadgen.lab.study.execute.score import count_trial, gain
from loadgen.lab.study.execute.step_run import Assignments, StepRun
from loadgen.lab.study.execute.trial import Answers, Trial, TrialRequest, usable_answers
from loadgen.lab.study.plan.plan import PlannedArm, Step
from loadgen.lab.study.plan.planner import Planner
from loadgen.lab.study.spec.stages import Categorical, IntRange, Joint, Log2Range
from loadgen.lab.study.spec.study import Study
from loadgen.stats.variance import Noise
from loadgen.util.number_format import percent
from loadgen.util.packages import require

STEP_NAME = "{} (drawn)"
MAX_LEAST_EFFECT = 0.5  # a study that can detect only larger effects ends
TOO_NOISY = (
    "{}: starts of the same arm differ by {}, so only effects of {} or more can be detected; "
    "use longer workloads, a quieter machine or more repeats"
)


class Walk:
    """A walk through a study.

    Args:
        study: The study, checked.
        planner: Its planner.

    Attributes:
        study: The study.
        request: The start that is needed next; None: none.
        broken: Why the study cannot go on; empty if it can.
    """

    def __init__(self, study: Study, planner: Planner) -> None:
        self.study = study
        self._planner = planner
        self._done: list[StepResult] = []
        self._running: StepRun | JointSearch | None = None
        self._nogoods: list[Assignments] = []
        self._base_answers: Answers | None = None
        self.broken = ""
        self._requests = self._run()
        self.request: TrialRequest | None = next(self._requests, None)

    @property
    def planned(self) -> PlannedArm:
        """The arm of the start that is needed next."""
        assert self.request is not None
        assert self._running is not None
        return self._running.arm(self.request.arm)

    @property
    def block(self) -> list[tuple[TrialRequest, PlannedArm]]:
        """The starts of the running block that are needed from now on, each with its arm, as far
        as it is known.
        """
        assert self.request is not None
        assert self._running is not None
        names = self._running.arms_ahead if self.request.attempt == 0 else ()
        requests = [self.request, *(replace(self.request, arm=name) for name in names)]
        return [(request, self._running.arm(request.arm)) for request in requests]

    @property
    def step(self) -> Step | None:
        """The step that is running; None if none is."""
        return self._running.step if self._running else None

    def add(self, trial: Trial) -> None:
        """Add the trial of the start that was needed."""
        try:
            self.request = self._requests.send(trial)
        except StopIteration:
            self.request = None

    def found(self, open_: str = "") -> Findings:
        """Return the findings so far.

        Args:
            open_: Why no more starts are made, if more are needed.
        """
        open_ = open_ if self.request is not None else self.broken
        running = [self._running.found(open_)] if self._running is not None else []
        return Findings(self.study, (*self._done, *running), open_)

    def _run(self) -> Generator[TrialRequest, Trial, None]:
        yield from self._run_step(self._planner.noise())
        self._base_answers = usable_answers(self._done[0].arms[0].trials)
        if self.broken:
            return
        for number, stage in enumerate(self.study.stages):
            step = self._planner.stage(number)
            self.broken = self._too_noisy(step)
            if self.broken:
                return
            if isinstance(stage, Joint):
                self._running = search = JointSearch(
                    step, number, stage, self.study, self._planner, self._base_answers
                )
                yield from search.run()
                self._running = None
                self._done.append(search.found())
                step = search.final()
            yield from self._run_step(step, number)
            if self.broken:
                return
        yield from self._run_step(self._planner.confirmation())

    def _noise(self) -> Noise | None:
        """Return the noise of all steps so far; None: unknown."""
        return Noise.pooled([result.noise for result in self._done if result.noise is not None])

    def _step_run(self, step: Step) -> StepRun:
        return StepRun(
            step, self.study, self._planner, self._nogoods, self._noise(), self._base_answers
        )

    def _too_noisy(self, step: Step) -> str:
        """Return why a stage would decide nothing; empty if it may decide something."""
        noise = self._noise()
        least_effect = self._step_run(step).least_effect
        if step.idle or noise is None or least_effect is None:
            return ""
        if least_effect <= MAX_LEAST_EFFECT:
            return ""
        return TOO_NOISY.format(step.name, percent(noise.sd, 1), percent(least_effect, 0))

    def _run_step(
        self, step: Step, number: int | None = None
    ) -> Generator[TrialRequest, Trial, None]:
        self._running = run = self._step_run(step)
        yield from run.run()
        self._running = None
        self._done.append(run.found())
        if run.broken:
            self.broken = f"{step.name}: {step.reference.name} fails, {run.broken}"
        if number is not None:
            self._planner.adopt(number, step.arms, run.winners)


class JointSearch:
    """Draws combinations of a joint stage and tries each of them once.

    Args:
        step: The stage as planned.
        number: Index of the stage.
        stage: The stage in the study file.
        study: The study.
        planner: Its planner, which makes arms of combinations.
        base_answers: Answers of the baseline to the gate's questions; None if it was not asked.

    Attributes:
        step: The search as a step.
        arms_ahead: Empty: the next arm is unknown until the arm that is running has ended.
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
        self._final = step
        self._number = number
        self._stage = stage
        self._study = study
        self._planner = planner
        self.step = replace(
            step, name=STEP_NAME.format(step.name), kind="drawn", arms=(step.reference,), trials=0
        )
        self._arms: dict[str, ArmResult] = {}
        self._drawn: dict[str, PlannedArm] = {}
        self._over = False
        self.arms_ahead: tuple[str, ...] = ()

    def arm(self, name: str) -> PlannedArm:
        """Return the arm of that name."""
        return self._drawn[name]

    def run(self) -> Generator[TrialRequest, Trial, None]:
        """Yield the starts that are needed; each expects its trial to be sent."""
        draws = _sampler(self._stage, self._study.decision.seed)
        for number in range(self._stage.trials):
            draw = draws.ask()
            values = {
                name: _value(draw, name, values) for name, values in self._stage.joint.items()
            }
            try:
                planned = self._planner.drawn(self._number, values)
            except BadInput:  # an impossible combination: the sampler learns that it failed
                draws.tell(draw, state=_failed())
                continue
            same = (
                tried for tried in self._arms.values() if tried.planned.identity == planned.identity
            )
            arm = next(same, None)
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
        feasible = [
            arm for arm in self._arms.values() if arm.verdict is Verdict.DRAWN and arm.values
        ]
        return max(feasible, key=lambda arm: gain(arm.values[0], self._study), default=None)

    def _start(self, planned: PlannedArm, number: int) -> Generator[TrialRequest, Trial, ArmResult]:
        request = TrialRequest(self.step.name, number, planned.name)
        trial = yield from attempts(
            request, self._study.objective.workload, partial(self._add, planned)
        )
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
        "tpe": lambda: optuna.samplers.TPESampler(
            seed=seed, n_startup_trials=min(10, stage.trials // 2)
        ),
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
    # Optuna takes no lists as values
    return values.choice[draw.suggest_categorical(name, range(len(values.choice)))]


def _failed() -> Any:
    from optuna.trial import TrialState

    return TrialState.FAIL
