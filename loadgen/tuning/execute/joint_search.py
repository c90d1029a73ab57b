"""Drawing: the search of a joint stage: combinations drawn one by one, by what those before have achieved."""

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loadgen.errors import BadInput
from loadgen.tuning.execute import trial_score
from loadgen.tuning.execute.accuracy_gate import Gate
from loadgen.tuning.execute.findings import ArmFound, StepFound, Verdict
from loadgen.tuning.execute.trial import Answered, Trial, Wanted
from loadgen.tuning.plan.plan import Planned, Step
from loadgen.tuning.plan.planner import Planner
from loadgen.tuning.spec.stages import Joint, Log2, Whole, Words
from loadgen.tuning.spec.study import Study
from loadgen.util.packages import require

if TYPE_CHECKING:
    from optuna import Trial as Draw

NAME = "{} (drawn)"  # of the step


class Drawing:
    """Combinations of a joint stage, each tried once.

    Args:
        step: The stage as it is laid out.
        number: Of the stage.
        stage: What it says.
        study: Whose.
        planner: Makes arms of combinations.
        answered: What the baseline answered to questions; None where it was not asked.
    """

    def __init__(
        self,
        step: Step,
        number: int,
        stage: Joint,
        study: Study,
        planner: Planner,
        answered: Answered | None,
    ) -> None:
        self._gate = Gate(study, answered)
        self._final, self._number, self._stage, self._study, self._planner = step, number, stage, study, planner
        self.step = replace(step, name=NAME.format(step.name), kind="drawn", arms=(step.reference,), trials=0)
        self._found: dict[str, ArmFound] = {}
        self._drawn: dict[str, Planned] = {}
        self._over = False

    def arm(self, name: str) -> Planned:
        """The arm of that name."""
        return self._drawn[name]

    def run(self) -> Generator[Wanted, Trial, None]:
        """The starts that are wanted; of each, what came of it is to be sent."""
        draws = _sampling(self._stage, self._study.decision.seed)
        for number in range(self._stage.trials):
            draw = draws.ask()
            values = {name: _value(draw, name, values) for name, values in self._stage.joint.items()}
            try:
                planned = self._planner.drawn(self._number, values)
            except BadInput:  # no arm can be that, and the sampler learns it
                draws.tell(draw, state=_failed())
                continue
            known = next((one for one in self._found.values() if one.planned.identity == planned.identity), None)
            if known is None:
                self._drawn[planned.name] = planned
                trial = yield Wanted(self.step.name, number, planned.name)
                known = self._found[planned.name] = self._judged(planned, trial)
            if known.values and known.verdict is Verdict.DRAWN:
                draws.tell(draw, trial_score.gain(known.values[0], self._study))
            else:
                draws.tell(draw, state=_failed())
        self._over = True

    def found(self, open_: str = "") -> StepFound:
        """The search as far as it has come.

        Args:
            open_: Why it goes no further now.
        """
        best = self._best()
        return StepFound(
            step=replace(self.step, arms=tuple(one.planned for one in self._found.values())),
            arms=tuple(self._found.values()),
            reference="",
            won=(best.name,) if best and self._over else (),
            open="" if self._over else open_,
        )

    def final(self) -> Step:
        """The stage with the best that was drawn as its only rival."""
        beside = tuple(arm for arm in self._final.arms if arm.start)
        best = self._best()
        if best is None or any(arm.identity == best.planned.identity for arm in beside):
            return replace(self._final, arms=beside, trials=0)
        return replace(self._final, arms=(*beside, best.planned), trials=0)

    def _best(self) -> ArmFound | None:
        able = [one for one in self._found.values() if one.verdict is Verdict.DRAWN]
        return max(able, key=lambda one: trial_score.gain(one.values[0], self._study), default=None)

    def _judged(self, planned: Planned, trial: Trial) -> ArmFound:
        if trial.failure is not None:
            return ArmFound(planned, Verdict.FAILED, f"{trial.failure.kind}: {trial.failure.cause}", (trial,))
        score = trial_score.score(planned.arm, [trial], self._study, self._gate)
        values = () if score.value is None else (score.value,)
        if score.missed:
            return ArmFound(planned, Verdict.INFEASIBLE, score.missed, (trial,), values, 1)
        return ArmFound(planned, Verdict.DRAWN, "; ".join(score.notes.values()), (trial,), values)


def refuse_missing(stage: Joint) -> None:
    """Look whether all is installed that draws the combinations of a stage.

    Raises:
        BadInput: Something is not.
    """
    packages = ("optuna", "scipy", "torch") if stage.sampler == "gp" else ("optuna",)
    require(f"sampler {stage.sampler}", "drawing arms", *packages)


def _sampling(stage: Joint, seed: int) -> Any:
    """Whoever draws.

    Raises:
        BadInput: Something is not installed.
    """
    refuse_missing(stage)
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    samplers: dict[str, Callable[[], Any]] = {
        "tpe": lambda: optuna.samplers.TPESampler(seed=seed, n_startup_trials=min(10, stage.trials // 2)),
        "gp": lambda: optuna.samplers.GPSampler(seed=seed),
        "random": lambda: optuna.samplers.RandomSampler(seed=seed),
    }
    return optuna.create_study(direction="maximize", sampler=samplers[stage.sampler]())


def _value(draw: "Draw", name: str, values: Log2 | Whole | Words) -> Any:
    if isinstance(values, Log2):
        least, most = (number.bit_length() - 1 for number in values.log2)
        return 1 << draw.suggest_int(name, least, most)
    if isinstance(values, Whole):
        least, most = values.ends()
        return draw.suggest_int(name, least, most, step=values.step)
    return values.choice[draw.suggest_categorical(name, range(len(values.choice)))]  # Optuna takes no lists as values


def _failed() -> Any:
    from optuna.trial import TrialState

    return TrialState.FAIL
