"""Drafted arms: the servers of a published page as the baseline of a study and its changes."""

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from loadgen.lab.audit.command import NO_COMMAND, ServingCommand
from loadgen.lab.audit.engine_flags import engine_flags
from loadgen.lab.audit.page import Page
from loadgen.lab.importer.entries import Entry
from loadgen.lab.importer.placement import server_flags
from loadgen.lab.study.plan.study_engines import StudyEngines
from loadgen.lab.study.spec.arm_spec import WIDTH, ArmSpec
from loadgen.lab.study.spec.stages import Change
from loadgen.lab.study.spec.study import EngineBase, Hardware, Objective, Study
from loadgen.lab.study.spec.study_text import given, name_of, parsed

# Engines by the names that pages have for them.
ENGINES = {
    "vLLM": "vllm",
    "SGLang": "sglang",
    "TensorRT-LLM": "trtllm",
    "MindIE": "mindie",
    "llama.cpp": "llamacpp",
}
PAGE_NAMES = {own: name for name, own in ENGINES.items()}
MINDIE = "mindie"  # it downloads nothing, and does not answer at 127.0.0.1
MINDIE_HOST = "10.0.0.1"  # an example

Flags = dict[str, tuple[str, ...]]


class DraftedArms:
    """The servers of a page.

    Args:
        page: The page.
        entries: Its results and failed commands, all with a command.
        first: The entry of the baseline.

    Attributes:
        models: Models by short names.
        engines: Settings of the engines by name, that of the baseline first.
    """

    def __init__(self, page: Page, entries: Sequence[Entry], first: Entry) -> None:
        self._base = first.command or NO_COMMAND
        self._engine = self._engine_of(self._base)
        commands = [entry.command for entry in entries if entry.command]
        names = dict.fromkeys((self._engine, *map(self._engine_of, commands)))
        self.engines = {name: _engine_settings(page, name) for name in names}
        self.models = _models(page, commands, folders=MINDIE in names)
        self._writer = StudyEngines(
            Study(
                name="draft",
                models=self.models,
                hardware=Hardware(name=""),
                engines={name: EngineBase(**base) for name, base in self.engines.items()},
                workloads={},
                objective=Objective(workload=""),
                baseline=Change(),
                stages=[],
            )
        )
        self._knobs: dict[str, Any] = {}
        self._raw: Flags = {}
        self._split()

    def baseline(self) -> dict[str, Any]:
        """Return the baseline."""
        raw = [shlex.join(words) for words in self._raw.values()]
        settings = given(knobs=self._knobs, raw=raw, env=dict(self._base.env))
        return {"engine": self._engine, "model": self._model(self._base), **settings}

    def change(self, command: ServingCommand) -> dict[str, Any] | None:
        """Return a server as a change of the baseline; None: it lacks a flag that the baseline has
        and that no change can reset.
        """
        engine = self._engine_of(command)
        flags = server_flags(command)
        model = self._model(command)
        other_model = None if model == self._model(self._base) else model
        if engine != self._engine:  # which keeps nothing of the baseline but its width
            return given(
                engine=engine,
                model=other_model,
                knobs=dict.fromkeys(name for name in self._knobs if name in WIDTH),
                raw=[shlex.join(words) for words in flags.values()],
                env=dict(command.env),
            )
        if self._raw.keys() - flags.keys():
            return None
        resets: dict[str, None] = {}
        for knob, value in self._knobs.items():
            wanted = self._normal({knob: value}, {})
            alike = [
                flag for flag, words in flags.items() if wanted == self._normal({}, {flag: words})
            ]
            flags = {flag: words for flag, words in flags.items() if flag not in alike}
            if not alike:
                resets[knob] = None
        raw = [words for flag, words in flags.items() if self._raw.get(flag) != words]
        before = self._base.env
        env: dict[str, str | None] = dict.fromkeys(before.keys() - command.env.keys())
        env |= {name: value for name, value in command.env.items() if before.get(name) != value}
        return given(model=other_model, knobs=resets, raw=list(map(shlex.join, raw)), env=env)

    def described(self, change: Mapping[str, Any]) -> str:
        """Return a name of an arm by what it changes; empty if that is too long for a name."""
        env = [f"{name} {value}" for name, value in change.get("env", {}).items()]
        words = [change.get("engine", ""), change.get("model", ""), *change.get("raw", ()), *env]
        text = " ".join(filter(None, words)) or "as the baseline"
        name = name_of(text)
        return name if len(name) == len(text) else ""

    def _engine_of(self, command: ServingCommand) -> str:
        """Return the engine of a command; flags alone have one that knows them."""
        likely = sorted(command.engines, key=list(ENGINES).index)
        return ENGINES[next(filter(None, (command.engine, self._base.engine, *likely)))]

    def _model(self, command: ServingCommand) -> str:
        model = command.model or self._base.model
        return _variant(model) if model else next(iter(self.models))

    def _normal(self, knobs: Mapping[str, Any], raw: Flags) -> object:
        """Return the normal form of a command of the baseline's engine; None: it refuses it."""
        return self._writer.normal(ArmSpec(self._engine, next(iter(self.models)), knobs, raw, {}))

    def _split(self) -> None:
        """Write flags of the baseline as knobs where possible: an arm can reset these."""
        names = engine_flags(PAGE_NAMES[self._engine])
        known = self._writer.knobs(self._engine)
        for flag, words in server_flags(self._base).items():
            value = words[0].partition("=")[2] or " ".join(words[1:])
            knob, _ = names.setting(flag.lstrip("-").replace("_", "-"), value)
            wanted = self._normal({}, {flag: words})
            values = (parsed(value) if value else True, False)
            same = [item for item in values if wanted == self._normal({knob: item}, {})]
            if knob in known and same:
                self._knobs[knob] = same[0]
            else:
                self._raw[flag] = words


def _engine_settings(page: Page, engine: str) -> dict[str, Any]:
    stated, _ = page.titled("Engine") or ("", 0)
    version = re.search(rf"{re.escape(PAGE_NAMES[engine])}\S*:?\s+v?(\d[\w.+]*)", stated)
    host = MINDIE_HOST if engine == MINDIE else None
    return given(version=version[1] if version else None, host=host)


def _models(page: Page, commands: Sequence[ServingCommand], *, folders: bool) -> dict[str, str]:
    """Return the models of the commands, or else of the page, by short names.

    Of several that differ in owner or folder alone, the first with one is kept.
    """
    models = [command.model for command in commands if command.model]
    if not models:
        stated, _ = page.titled("Model") or ("", 0)
        models = [stated.split()[-1].strip("-*`")] if stated else ["unknown"]
    variants: dict[str, str] = {}
    for model in models:
        name = _variant(model)
        if "/" not in variants.get(name, ""):
            variants[name] = f"./{model.rpartition('/')[2]}" if folders else model
    return variants


def _variant(model: str) -> str:
    return name_of(model.rstrip("/").rpartition("/")[2]).lower()
