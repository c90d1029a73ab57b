"""Serving command: how an engine was started, and which two start the same server."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from loadgen.lab.audit.engine_flags import (
    PORTS,
    EngineFlags,
    engine_flags,
    likely_engines,
    variables,
)
from loadgen.lab.audit.shell import Flaw, ShellCommand, flags_of, shell_commands

# The words with which an engine is started, longest first, and the flag that names the model where
# it is no argument.
LAUNCHES = {
    ("python3", "-m", "sglang.launch_server"): "SGLang",
    ("python", "-m", "sglang.launch_server"): "SGLang",
    ("sglang", "serve"): "SGLang",
    ("python3", "-m", "vllm.entrypoints.openai.api_server"): "vLLM",
    ("python", "-m", "vllm.entrypoints.openai.api_server"): "vLLM",
    ("vllm", "serve"): "vLLM",
    ("trtllm-serve", "serve"): "TensorRT-LLM",
    ("trtllm-serve",): "TensorRT-LLM",
    ("mindie", "serve"): "MindIE",
    ("llama-server",): "llama.cpp",
}
# Engines that serve one model, and answer a request that names another one.
ANY_MODEL = {"SGLang", "TensorRT-LLM", "llama.cpp"}
MODEL_FLAGS = ("model-path", "model", "m", "hf")
ADDRESS = ("host", "port", "served_name", "api-key")  # without effect on speed
# How the server reads requests and names what it answers: without them some models are not served
# at all.
INTERFACE = (
    *ADDRESS,
    "reasoning_parser",
    "tool-call-parser",
    "enable-auto-tool-choice",
    "chat-template",
    "tokenizer-mode",
    "tokenizer",
    "trust-remote-code",
)
WIDTHS = ("tensor_parallel", "pipeline_parallel", "data_parallel")
# With it, copies of the attention share the devices of the tensor-parallel group.
ATTENTION_DP = "enable-dp-attention"
_DEVICES = {"CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"}


@dataclass(frozen=True)
class ServingCommand:
    """One command.

    Attributes:
        engine: Its name; empty where only flags are printed.
        model: As it was given; empty where it was not.
        flags: Their values by name, without dashes before them, with dashes in them; empty for a
            switch.
        text: As printed, on one line.
        at: How far into the page it stands, in characters.
        words: What stands behind the program, as printed.
        env: Variables of the environment that it was given.
        flaws: What of it bash reads otherwise than it looks.
    """

    engine: str
    model: str
    flags: Mapping[str, str]
    text: str
    at: int
    words: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    flaws: tuple[Flaw, ...] = ()

    def __bool__(self) -> bool:
        return self.at >= 0

    @property
    def name(self) -> str:
        """The model without its owner."""
        return self.model.rstrip("/").rpartition("/")[2]

    @cached_property
    def engines(self) -> frozenset[str]:
        """The engines that it can start: its own, or those that have its flags."""
        if not self:
            return frozenset()
        return frozenset({self.engine}) if self.engine else likely_engines(self.flags)

    @cached_property
    def settings(self) -> Mapping[str, str]:
        """All that it sets but model and address, by engine-neutral names if possible."""
        settings = dict(self._known.setting(name, value) for name, value in self.flags.items())
        knobs = variables()
        settings |= {
            knobs.get(name, name): value for name, value in self.env.items() if name not in _DEVICES
        }
        return {  # without the spaces that JSON may have
            name: value.replace(" ", "") if value[:1] in ("{", "[") else value
            for name, value in settings.items()
            if name not in ADDRESS
        }

    @cached_property
    def width(self) -> int:
        """How many devices one such server takes."""
        settings = self.settings
        sizes = [
            max(1, int(value)) if (value := settings.get(name, "1")).isdecimal() else 1
            for name in WIDTHS
        ]
        return sizes[0] * sizes[1] * (1 if ATTENTION_DP in settings else sizes[2])

    @property
    def served_name(self) -> str:
        """The model's name in requests; empty where the server takes any, or nothing tells."""
        if self.engine in ANY_MODEL:
            return ""
        flags = engine_flags(self.engine)
        named = {flags.setting(name, value)[0]: value for name, value in self.flags.items()}
        return named.get("served_name", self.model)

    @property
    def port(self) -> str:
        """The port that it listens on; empty where nothing tells."""
        return self.flags.get("port", PORTS.get(self.engine, ""))

    def same_as(self, other: "ServingCommand") -> bool:
        """Whether both start the same server, as far as both tell."""
        names = self.name.lower(), other.name.lower()
        same_model = names[0] == names[1] or not all(names)
        return same_model and bool(self.engines & other.engines) and self.settings == other.settings

    def changes(self, other: "ServingCommand") -> dict[str, tuple[str | None, str | None]]:
        """The settings in which it differs: name to the other's value and its own; None: unset."""
        before = dict(other.settings)
        after = dict(self.settings)
        if self.name and other.name and self.name.lower() != other.name.lower():
            before["model"], after["model"] = other.name, self.name
        names = [*after, *(name for name in before if name not in after)]
        return {
            name: (before.get(name), after.get(name))
            for name in names
            if before.get(name) != after.get(name)
        }

    def binding(self, in_flight: float) -> "ServingCommand":
        """Without limits on running requests that this many in flight never reach."""

        def is_idle(name: str, value: str) -> bool:
            is_limit = self._known.setting(name, value)[0] == "max_seqs"
            return is_limit and value.isdigit() and int(value) >= in_flight

        return replace(
            self,
            flags={name: value for name, value in self.flags.items() if not is_idle(name, value)},
        )

    @property
    def _known(self) -> EngineFlags:
        engines = self.engines
        return engine_flags(next(iter(engines)) if len(engines) == 1 else "")

    def changed_by(self, comment: str) -> "ServingCommand":
        """With the flags that a comment names in place of its own."""
        added = next(shell_commands(comment, 0), None) if comment.startswith("-") else None
        if added is None:
            return self
        changed = flags_of(added.words)[0]
        kept = self.flags
        if (
            changed.keys() <= kept.keys()
        ):  # a comment that repeats several flags of a kind has all of them
            groups = Counter(name.partition("-")[0] for name in changed)
            kept = {
                name: value for name, value in kept.items() if groups[name.partition("-")[0]] < 2
            }
        text = self.text if comment in self.text else f"{self.text} ({comment})"
        return replace(
            self, flags={**kept, **changed}, words=(*self.words, *added.words), text=text
        )


# How a server was started that the page does not say.
NO_COMMAND = ServingCommand("", "", {}, "", -1)


def setting_text(name: str, value: str | None = "") -> str:
    """Return a setting as findings write it: a flag, or an environment variable in capitals."""
    named = name if name.isupper() else f"--{name.replace('_', '-')}"
    return f"{named} {value or ''}".strip()


def commands(text: str, at: int) -> Iterator[ServingCommand]:
    """The commands of a fence that begins at `at`: they start an engine, or are flags alone."""
    return filter(None, map(serving_command, shell_commands(text, at)))


def serving_command(line: ShellCommand) -> ServingCommand:
    """The server that a command starts, or flags that stand alone; else NO_COMMAND."""
    engine, words = (
        ("", line.words) if line.words and line.words[0].startswith("-") else _launch(line)
    )
    if not engine and not words:
        return NO_COMMAND
    flags, plain = flags_of(words)
    named = next((flags.pop(name) for name in MODEL_FLAGS if name in flags), "") if engine else ""
    model = plain[0] if plain and engine else named
    return ServingCommand(engine, model, flags, line.text, line.at, words, line.env, line.flaws)


def _launch(line: ShellCommand) -> tuple[str, tuple[str, ...]]:
    """Return the engine that a command starts and the words for it; empty: none."""
    for start in range(len(line.words) if line.wrapped else 1):
        for launch, engine in LAUNCHES.items():
            if line.words[start : start + len(launch)] == launch:
                return engine, line.words[start + len(launch) :]
        if line.wrapped and line.words[start].startswith("vllm/vllm-openai"):
            return "vLLM", line.words[start + 1 :]
    return "", ()
