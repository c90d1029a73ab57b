"""Compat: command lines of other tools, read as `loadgen run` settings.

All flags of `vllm bench serve` are known to `loadgen run` as such. `--compat` says whose release, or whose tool, is
meant where two of them mean different things by the same words: by a flag, or by leaving it out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from loadgen.cli.compat import sglang, vllm
from loadgen.cli.compat.others import AIPERF, GUIDELLM, OLDER_VLLM
from loadgen.cli.compat.theirs import Given, Theirs, add, settled

__all__ = ["TOOLS", "Tool", "add", "completed", "known_elsewhere", "of"]

NOTHING = "nothing: "  # what is not needed here, and why, begins so


@dataclass(frozen=True, slots=True)
class Tool:
    """Whose command line it is.

    Attributes:
        flags: Those that are no flags of `loadgen run`, or not with that meaning.
        defaults: What it takes for granted, given the settings that are given.
        replaced: Settings whose flags mean something else in this tool.
        finish: What it does with all settings together.
    """

    flags: tuple[Theirs, ...]
    defaults: Callable[[Given], dict[str, Any]]
    replaced: tuple[str, ...] = ()
    finish: Callable[[dict[str, Any]], dict[str, Any]] = dict


NOBODY = Tool(vllm.FLAGS, lambda given: {}, finish=vllm.unmarked)
TOOLS = {
    "vllm-0.11": Tool(vllm.FLAGS, vllm.defaults_0_11, finish=vllm.as_sent),
    "vllm-0.32": Tool(vllm.FLAGS, vllm.defaults_0_32, finish=vllm.as_sent),
    "vllm-0.33": Tool(vllm.FLAGS, vllm.defaults_0_32, finish=vllm.as_sent),
    "sglang": Tool(sglang.FLAGS, sglang.defaults, sglang.REPLACED, sglang.ranged),
}


def of(name: str | None) -> Tool:
    """The tool of that name; without one, that which takes nothing for granted."""
    return NOBODY if name is None else TOOLS[name]


def known_elsewhere(name: str) -> str | None:
    """What to do with a flag that is another tool's, in words; None where it is nobody's."""
    if any(flag.name == name for flag in sglang.FLAGS):
        return "it is SGLang's: add --compat sglang"
    for tool, words in (("an older vLLM", OLDER_VLLM), ("guidellm", GUIDELLM), ("AIPerf", AIPERF)):
        if name in words:
            said = words[name].replace("`", "")
            if said.startswith(NOTHING):
                return f"it is {tool}'s; leave it out: {said.removeprefix(NOTHING)}"
            return f"it is {tool}'s, which here is {said}"
    return None


def completed(name: str | None, given: dict[str, Any]) -> dict[str, Any]:
    """The settings as the tool understands what is given: flags of its own, what it takes for granted, its meanings.

    Raises:
        BadInput: A flag that is not had, or a value.
    """
    tool, found = of(name), settled(given)
    return tool.finish(tool.defaults(found) | found)
