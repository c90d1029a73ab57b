"""Finds the arm of a study that a published command starts."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from loadgen.errors import BadInput
from loadgen.lab.audit.command import MODEL_FLAGS, ServingCommand, commands
from loadgen.lab.audit.study import stems
from loadgen.lab.importer.entries import Unplaced
from loadgen.lab.study.plan.plan import CONFIRMATION, NOISE, Plan, PlannedArm
from loadgen.lab.study.plan.study_engines import StudyEngines
from loadgen.lab.study.spec.arm_spec import ArmSpec
from loadgen.lab.study.spec.strict_model import suggestion

ADDRESS_FLAGS = ("host", "port")  # without effect on speed


class Arms:
    """The arms that a study would try if the expected arms won each stage.

    Args:
        plan: Its plan.

    Attributes:
        workloads: The workloads of the study.
    """

    def __init__(self, plan: Plan) -> None:
        self._study, self._engines = plan.study, StudyEngines(plan.study)
        self.loads = plan.loads
        self._arms = [arm for step in plan.steps if step.name != NOISE for arm in step.arms]
        self._by_command: dict[tuple[str, object], list[PlannedArm]] = defaultdict(list)
        self._page_names: dict[str, str] = {}  # engines of the study to their names on pages
        for arm in self._arms:
            launch, engine = arm.launches[0], arm.spec.engine
            self._by_command[engine, launch.normal or launch.argv].append(arm)
            for command in commands(" ".join(launch.shorthand or launch.argv), 0):
                self._page_names[engine] = command.engine

    @property
    def baseline(self) -> PlannedArm:
        """The baseline in the confirmation."""
        return next(arm for arm in self._arms if arm.step == CONFIRMATION)

    def named(self, text: str) -> tuple[PlannedArm, str | None]:
        """Return the arm, and the workload if given, of STEP/ARM[:WORKLOAD].

        Raises:
            BadInput: The arm or the workload is unknown.
        """
        arms = {arm.path: arm for arm in self._arms}
        path, _, workload = text.rpartition(":")
        if text in arms:
            return arms[text], None
        if path not in arms:
            remedy = suggestion(text, [*arms]) or f"name one of {', '.join([*arms][:12])}"
            raise BadInput("--as", f"unknown arm {text!r}", remedy)
        if workload not in self.loads:
            raise BadInput("--as", f"unknown workload {workload!r}", f"name one of {', '.join(self.loads)}")
        return arms[path], workload

    def names_model(self, command: ServingCommand) -> bool:
        """Return whether a command names a model of the study."""
        return _bare(command.model) in map(_bare, self._study.models.values())

    def started_by(self, command: ServingCommand, stage: str, *, similar_models: bool = True) -> tuple[PlannedArm, str]:
        """Return the arm that a command starts, and a remark; empty if there is none.

        Args:
            command: The command as printed.
            stage: Title of the stage above it; empty: none.
            similar_models: Whether a model that the study does not have may be taken for one with a similar name.

        Raises:
            Unplaced: No arm has this command, or several have.
        """
        model, note = self._model(command, similar=similar_models)
        found = self._with_command(command, model)
        if not found and (found := self._with_command(command, model, shared=True)):
            shared = ", ".join(self._study.engines[found[0].spec.engine].knobs)
            note = "; ".join(
                filter(None, (note, f"its command does not say {shared}, which every server of the study has"))
            )
        if not found:
            raise Unplaced(f"no arm has the command `{command.text}`")
        found.sort(key=lambda arm: _fit(arm, stage), reverse=True)
        best = [arm for arm in found if _fit(arm, stage) == _fit(found[0], stage)]
        if len({arm.identity for arm in best}) > 1:
            raise Unplaced(f"`{command.text}` is the command of {' and '.join(arm.path for arm in best)}")
        return best[0], note

    def _model(self, command: ServingCommand, *, similar: bool) -> tuple[str, str]:
        """Return the study's variant of a command's model, and a remark if the names are only similar.

        Raises:
            Unplaced: No variant has a similar name.
        """
        models: Mapping[str, str] = self._study.models
        if not command.model:
            return "", ""
        for of in (str, _bare):
            same = [variant for variant, model in models.items() if of(model) == of(command.model)]
            if same:
                return same[0], ""
        by_bare_name = {_bare(model): variant for variant, model in models.items()}
        near = get_close_matches(_bare(command.model), by_bare_name, 1) if similar else []
        if not near:
            raise Unplaced(f"unknown model {command.model}; the study has {', '.join(models.values())}")
        variant = by_bare_name[near[0]]
        return variant, f"its command names the unknown model {command.model}; taken for {models[variant]}"

    def _with_command(self, command: ServingCommand, model: str, *, shared: bool = False) -> list[PlannedArm]:
        """Return the arms of a command.

        Args:
            command: The command.
            model: The study's variant of its model; empty: any.
            shared: Whether to add the knobs of all servers of its engine, which pages may leave out.
        """
        found: list[PlannedArm] = []
        for engine, called in self._page_names.items():
            if command.engine in ("", called):
                knobs = self._study.engines[engine].knobs if shared else {}
                for variant in [model] if model else self._study.models:
                    found += self._by_command.get((engine, self._normal(engine, variant, command, knobs)), [])
        return found

    def _normal(self, engine: str, variant: str, command: ServingCommand, knobs: Mapping[str, Any]) -> object:
        """Return the engine's normal form of a command with these knobs; None if the engine refuses it."""
        arm = ArmSpec(engine, variant, knobs, _flags(command.words), self._study.engines[engine].env)
        try:
            launch = self._engines.launches(arm)[0]
        except BadInput:
            return None
        return launch.normal or launch.argv


def _flags(words: Iterable[str]) -> dict[str, tuple[str, ...]]:
    flags: dict[str, tuple[str, ...]] = {}
    name = ""
    for word in words:
        if word.startswith("-") and not word[1:2].isdigit():
            name = word.partition("=")[0]
            flags[name] = (word,)
        elif name:
            flags[name] += (word,)
    return {name: words for name, words in flags.items() if name.lstrip("-") not in (*MODEL_FLAGS, *ADDRESS_FLAGS)}


def _fit(arm: PlannedArm, stage: str) -> tuple[bool, bool, bool]:
    """Return how well an arm's step matches the place of a result; more is better."""
    last = arm.step == CONFIRMATION
    return last is not bool(stage), bool(stems(arm.step) & stems(stage)), not arm.start


def _bare(model: str) -> str:
    return model.rpartition("/")[2].lower()
