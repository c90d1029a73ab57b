"""Arms: those of a study by what a page prints of them: their commands, and the loads that they were given."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from loadgen.analysis.audit.command import MODEL_FLAGS, Command, commands
from loadgen.analysis.audit.published import Published
from loadgen.analysis.audit.study import stems
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput, LoadgenError
from loadgen.tuning.plan.plan import CONFIRMATION, NOISE, Plan, Planned, Step
from loadgen.tuning.plan.served import Served
from loadgen.tuning.spec.arm import Arm
from loadgen.tuning.spec.strict_model import suggestion

LISTENS = ("host", "port")  # tell nothing of how fast a server was
NEAR = 0.05  # relative: as far as the mean length of random prompts may be from what was asked
TEMPLATE = 64  # tokens that a chat template may add to each


class Unplaced(LoadgenError):
    """Something of which nothing says what it is of; it says why."""


@dataclass(frozen=True, slots=True)
class Spot:
    """An arm in its step.

    Attributes:
        step: The step.
        planned: The arm.
    """

    step: Step
    planned: Planned

    @property
    def name(self) -> str:
        """STEP/ARM."""
        return f"{self.step.name}/{self.planned.name}"


class Arms:
    """The arms that a study would try if each of its stages were won by what it expects.

    Args:
        made: Its plan.
    """

    def __init__(self, made: Plan) -> None:
        self._study, self._loads, self._served = made.study, made.loads, Served(made.study)
        self._spots = [Spot(step, arm) for step in made.steps if step.name != NOISE for arm in step.arms]
        self._by_command: dict[tuple[str, object], list[Spot]] = defaultdict(list)
        self._called: dict[str, str] = {}  # engines of the study to what pages call them
        for spot in self._spots:
            launch, engine = spot.planned.launches[0], spot.planned.arm.engine
            self._by_command[engine, launch.normal or launch.argv].append(spot)
            for command in commands(" ".join(launch.shorthand or launch.argv), 0):
                self._called[engine] = command.engine

    @property
    def baseline(self) -> Spot:
        """The baseline, in the step that compares it with the winner."""
        return next(spot for spot in self._spots if spot.step.name == CONFIRMATION)

    def named(self, text: str) -> tuple[Spot, str | None]:
        """The arm and, if it is said, the workload of STEP/ARM[:WORKLOAD].

        Raises:
            BadInput: There is no such arm, or no such workload.
        """
        spots = {spot.name: spot for spot in self._spots}
        arm, _, workload = text.rpartition(":")
        if text in spots:
            return spots[text], None
        if arm not in spots:
            remedy = suggestion(text, [*spots]) or f"name one of {', '.join([*spots][:12])}"
            raise BadInput("--as", f"{text!r} is no arm of the study", remedy)
        if workload not in self._loads:
            raise BadInput("--as", f"{workload!r} is no workload of the study", f"name one of {', '.join(self._loads)}")
        return spots[arm], workload

    def started_by(self, command: Command, stage: str) -> tuple[Spot, str]:
        """The arm that a command starts, and what there is to say of that.

        Args:
            command: As printed.
            stage: Title of the stage in which it stands; empty: none.

        Raises:
            Unplaced: No arm is started so, or several are.
        """
        model, note = self._model(command)
        found: list[Spot] = []
        for engine, called in self._called.items():
            if command.engine in ("", called):
                for variant in [model] if model else self._study.models:
                    found += self._by_command.get((engine, self._spelled(engine, variant, command)), [])
        if not found:
            raise Unplaced(f"no arm is started by `{command.text}`")
        found.sort(key=lambda spot: _fit(spot, stage), reverse=True)
        best = [spot for spot in found if _fit(spot, stage) == _fit(found[0], stage)]
        if len({spot.planned.identity for spot in best}) > 1:
            raise Unplaced(f"`{command.text}` starts {' and '.join(spot.name for spot in best)}")
        return best[0], note

    def workload(self, result: Published, near: str) -> str:
        """The workload that a result is of.

        Args:
            result: Its requests, tokens and cap.
            near: What stands above it.

        Raises:
            Unplaced: None of the study's is like it, or several are.
        """
        fitting = [name for name, load in self._loads.items() if _could_be(result, load)]
        exact = [name for name in fitting if self._loads[name].dataset_name == "random"] or fitting
        caps = {name: self._loads[name].max_concurrency or float("inf") for name in exact}
        tightest = [name for name, cap in caps.items() if cap == min(caps.values())]
        called = [name for name in tightest if stems(name) and stems(name) <= stems(near)]
        found = tightest if len(tightest) == 1 else called
        if len(found) == 1:
            return found[0]
        ok, input_tokens, output_tokens = (_value(result, name) for name in ("ok", "input_tokens", "output_tokens"))
        shape = f"{ok:g} requests, {input_tokens:g} tokens in, {output_tokens:g} out"
        if found or tightest:
            raise Unplaced(f"{shape} can be {' or '.join(found or tightest)}")
        raise Unplaced(f"no workload of the study is {shape}")

    def asked(self, workload: str) -> int:
        """How many requests a workload has; 0 where only its duration bounds them."""
        return self._loads[workload].num_prompts or 0

    def _model(self, command: Command) -> tuple[str, str]:
        """The variant that a command names, and what is to be said where its name is only like that.

        Raises:
            Unplaced: It is like none.
        """
        models: Mapping[str, str] = self._study.models
        if not command.model:
            return "", ""
        for of in (str, _bare):
            same = [variant for variant, model in models.items() if of(model) == of(command.model)]
            if same:
                return same[0], ""
        near = get_close_matches(command.model, models.values(), 1)
        if not near:
            raise Unplaced(f"{command.model} is no model of the study")
        note = f"its command names {command.model}, which is no model of the study; taken for {near[0]}"
        return next(variant for variant, model in models.items() if model == near[0]), note

    def _spelled(self, engine: str, variant: str, command: Command) -> object:
        """A command as its engine would have it; None if it would have none of it."""
        arm = Arm(engine, variant, {}, _flags(command.words), self._study.engines[engine].env)
        try:
            launch = self._served.launches(arm)[0]
        except BadInput:
            return None
        return launch.normal or launch.argv


def _flags(words: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The flags among the words of a command, those left out that name the model or say where it listens."""
    flags: dict[str, tuple[str, ...]] = {}
    name = ""
    for word in words:
        if word.startswith("-") and not word[1:2].isdigit():
            name = word.partition("=")[0]
            flags[name] = (word,)
        elif name:
            flags[name] += (word,)
    return {name: said for name, said in flags.items() if name.lstrip("-") not in (*MODEL_FLAGS, *LISTENS)}


def _fit(spot: Spot, stage: str) -> tuple[bool, bool, bool]:
    """How well an arm's step goes with the place of a result: more is better."""
    last = spot.step.name == CONFIRMATION
    return last is not bool(stage), bool(stems(spot.step.name) & stems(stage)), not spot.planned.start


def _could_be(result: Published, load: RunSettings) -> bool:
    """Whether a run of this load can have had this result."""
    ok, cap = _value(result, "ok"), result.get("cap")
    if not ok or ok > (load.num_prompts or float("inf")):
        return False
    if (cap.value if cap else float("inf")) > (load.max_concurrency or float("inf")):
        return False
    if load.dataset_name != "random":
        return True
    asked, wanted = load.random_input_len, load.random_output_len
    if (
        isinstance(asked, int)
        and not (1 - NEAR) * asked <= _value(result, "input_tokens") / ok <= (1 + NEAR) * asked + TEMPLATE
    ):
        return False
    return (
        not isinstance(wanted, int) or _value(result, "output_tokens") / ok <= (1 + NEAR) * wanted
    )  # it may end early


def _value(result: Published, name: str) -> float:
    number = result.get(name)
    return number.value if number else 0.0


def _bare(model: str) -> str:
    """A model's name without its owner."""
    return model.rpartition("/")[2].lower()
