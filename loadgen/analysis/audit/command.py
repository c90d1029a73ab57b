"""Command: how an engine was started, as a page prints it, and which two are the same."""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

# The words with which an engine is started, longest first, and the flag that names the model where it is no argument.
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
MODEL_FLAGS = ("model-path", "model", "m", "hf")
# Engines have one flag each for these; all of them multiply into the devices that one server takes.
WIDTHS = (
    ("tp", "tp-size", "tensor-parallel-size"),
    ("pp", "pp-size", "pipeline-parallel-size"),
    ("dp", "dp-size", "data-parallel-size"),
)
BARE_JSON = re.compile(r"(?<![^\s=])\{\S*\}(?!\S)")  # of which a shell would take the quotes
SEATS = ("max-num-seqs", "max-running-requests", "max-batch-size")  # how many requests may run at once


@dataclass(frozen=True, slots=True)
class Command:
    """One command.

    Attributes:
        engine: Its name; empty where only flags are printed.
        model: As it was given; empty where it was not.
        flags: Their values by name, without dashes before them, with dashes in them; empty for a switch.
        text: As printed, on one line.
        at: How far into the page it stands, in characters.
        words: What stands behind the program, as printed.
    """

    engine: str
    model: str
    flags: Mapping[str, str]
    text: str
    at: int
    words: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The model without its owner."""
        return self.model.rpartition("/")[2]

    @property
    def width(self) -> int:
        """How many devices one such server takes: tensor by pipeline by data parallel."""
        found = 1
        for names in WIDTHS:
            value = next((self.flags[name] for name in names if name in self.flags), "1")
            found *= int(value) if value.isdigit() else 1
        return found

    def same_as(self, other: "Command") -> bool:
        """Whether both start the same server, as far as both tell."""
        names = [(self.engine, other.engine), (self.name.lower(), other.name.lower())]
        return all(a == b or not a or not b for a, b in names) and dict(self.flags) == dict(other.flags)

    def binding(self, in_flight: float) -> "Command":
        """Without limits on running requests that this many in flight never reach."""
        idle = {name for name in SEATS if (given := self.flags.get(name, "")).isdigit() and int(given) >= in_flight}
        return replace(self, flags={name: value for name, value in self.flags.items() if name not in idle})

    def changed_by(self, comment: str) -> "Command":
        """With the flags that a comment names in place of its own; as it is where the comment names none."""
        if not comment.startswith("-"):
            return self
        added = _words(comment)
        flags, words = {**self.flags, **_flags(added)[0]}, (*self.words, *added)
        return replace(self, flags=flags, words=words, text=f"{self.text} ({comment})")


def commands(text: str, at: int) -> Iterator[Command]:
    """The commands that start an engine, or flags that stand alone, in the text of a fence that begins at `at`."""
    # A line that goes on, with or without a backslash, in as many characters as before.
    joined = re.sub(r"\n(?=\s*-)", " ", re.sub(r"\\(?=\s)", " ", text))
    for line in re.finditer(r"[^\n]+", joined):
        words = _words(line[0])
        while words and re.fullmatch(r"[A-Za-z_]\w*=\S*", words[0]):
            del words[0]  # a variable of the environment
        start = at + line.start() + len(line[0]) - len(line[0].lstrip())
        said = " ".join(line[0].split())
        if words and words[0].startswith("--"):
            yield Command("", "", _flags(words)[0], said, start, tuple(words))
            continue
        for launch, engine in LAUNCHES.items():
            if tuple(words[: len(launch)]) == launch:
                rest = words[len(launch) :]
                flags, plain = _flags(rest)
                named = next((flags.pop(name) for name in MODEL_FLAGS if name in flags), "")
                yield Command(engine, plain[0] if plain else named, flags, said, start, tuple(rest))
                break


def _words(line: str) -> list[str]:
    try:
        return shlex.split(BARE_JSON.sub(lambda found: shlex.quote(found[0]), line), comments=True)
    except ValueError:  # a quote that is never closed
        return line.split()


def _flags(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """Flags by name, and the words that belong to none."""
    flags: dict[str, str] = {}
    rest: list[str] = []
    name = ""
    for word in words:
        if word.startswith("-") and len(word) > 1:
            name, _, value = word.lstrip("-").partition("=")
            name = name.replace("_", "-")
            flags[name] = value
            name = "" if value else name
        elif name:
            flags[name], name = word, ""
        else:
            rest.append(word)
    return flags, rest
