"""Finds the arms and workloads of a study that published commands and results belong to."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from loadgen.analysis.audit.command import MODEL_FLAGS, Command, commands
from loadgen.analysis.audit.published import Published
from loadgen.analysis.audit.study import stems
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput, LoadgenError
from loadgen.tuning.plan.plan import CONFIRMATION, NOISE, Plan, PlannedArm
from loadgen.tuning.plan.study_engines import StudyEngines
from loadgen.tuning.spec.arm_spec import ArmSpec
from loadgen.tuning.spec.strict_model import suggestion

ADDRESS_FLAGS = ("host", "port")  # without effect on speed
LENGTH_TOLERANCE = 0.05  # relative, of the mean length of random prompts
TEMPLATE_TOKENS = 64  # that a chat template may add to each prompt


class Unplaced(LoadgenError):
    """A result or command that no arm or workload of the study matches."""


class Arms:
    """The arms that a study would try if the expected arms won each stage.

    Args:
        plan: Its plan.
    """

    def __init__(self, plan: Plan) -> None:
        self._study, self._loads, self._engines = plan.study, plan.loads, StudyEngines(plan.study)
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
        if workload not in self._loads:
            raise BadInput("--as", f"unknown workload {workload!r}", f"name one of {', '.join(self._loads)}")
        return arms[path], workload

    def started_by(self, command: Command, stage: str) -> tuple[PlannedArm, str]:
        """Return the arm that a command starts, and a remark; empty if there is none.

        Args:
            command: The command as printed.
            stage: Title of the stage above it; empty: none.

        Raises:
            Unplaced: No arm has this command, or several have.
        """
        model, note = self._model(command)
        found: list[PlannedArm] = []
        for engine, called in self._page_names.items():
            if command.engine in ("", called):
                for variant in [model] if model else self._study.models:
                    found += self._by_command.get((engine, self._normal(engine, variant, command)), [])
        if not found:
            raise Unplaced(f"no arm has the command `{command.text}`")
        found.sort(key=lambda arm: _fit(arm, stage), reverse=True)
        best = [arm for arm in found if _fit(arm, stage) == _fit(found[0], stage)]
        if len({arm.identity for arm in best}) > 1:
            raise Unplaced(f"`{command.text}` is the command of {' and '.join(arm.path for arm in best)}")
        return best[0], note

    def workload(self, result: Published, near: str) -> str:
        """Return the workload of a result.

        Args:
            result: Its requests, tokens and concurrency.
            near: Text above it.

        Raises:
            Unplaced: No workload of the study matches it, or several do.
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

    def num_prompts(self, workload: str) -> int:
        """Return the number of requests of a workload; 0 if only its duration limits them."""
        return self._loads[workload].num_prompts or 0

    def _model(self, command: Command) -> tuple[str, str]:
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
        near = get_close_matches(command.model, models.values(), 1)
        if not near:
            raise Unplaced(f"unknown model {command.model}")
        note = f"its command names the unknown model {command.model}; taken for {near[0]}"
        return next(variant for variant, model in models.items() if model == near[0]), note

    def _normal(self, engine: str, variant: str, command: Command) -> object:
        """Return the engine's normal form of a command; None if the engine refuses it."""
        arm = ArmSpec(engine, variant, {}, _flags(command.words), self._study.engines[engine].env)
        try:
            launch = self._engines.launches(arm)[0]
        except BadInput:
            return None
        return launch.normal or launch.argv


def _flags(words: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the words of each flag of a command, except for model and address."""
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


def _could_be(result: Published, load: RunSettings) -> bool:
    """Return whether a run of this workload can have had this result."""
    ok, cap = _value(result, "ok"), result.get("cap")
    if not ok or ok > (load.num_prompts or float("inf")):
        return False
    if (cap.value if cap else float("inf")) > (load.max_concurrency or float("inf")):
        return False
    if load.dataset_name != "random":
        return True
    longest = 1 + LENGTH_TOLERANCE
    prompt, answer = (_value(result, name) / ok for name in ("input_tokens", "output_tokens"))
    in_len, out_len = load.random_input_len, load.random_output_len
    if isinstance(in_len, int) and prompt < (1 - LENGTH_TOLERANCE) * in_len:
        return False
    if isinstance(in_len, int) and prompt > longest * in_len + TEMPLATE_TOKENS:
        return False
    return not isinstance(out_len, int) or answer <= longest * out_len  # an answer may end early


def _value(result: Published, name: str) -> float:
    number = result.get(name)
    return number.value if number else 0.0


def _bare(model: str) -> str:
    """Return a model's name without its owner."""
    return model.rpartition("/")[2].lower()
