"""Command lines of other tools, translated into the settings of `loadgen run`.

`loadgen run` knows all flags of `vllm bench serve`. --compat chooses a tool and its release where
tools differ in the meaning of a flag or in a default.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec import Struct

from loadgen.cli.compat import other_tools, sglang, vllm, vllm_rs
from loadgen.cli.compat.shared_data import with_dataset_name
from loadgen.cli.compat.tool_flags import MARK, Settings, ToolFlag, translated
from loadgen.workload import vllm_load


class Tool(Struct, frozen=True):
    """A tool whose command lines `loadgen run` can read.

    Attributes:
        shared: Its flags that are settings of loadgen, too.
        flags: Its flags that `loadgen run` does not have, or has with another meaning.
        defaults: Returns its defaults, given the settings of a command line.
        replaced: Settings whose flags mean something else in this tool.
        finish: Adapts all settings together at the end.
    """

    shared: frozenset[str]
    flags: tuple[ToolFlag, ...]
    defaults: Callable[[Settings], dict[str, Any]]
    replaced: tuple[str, ...] = ()
    finish: Callable[[dict[str, Any]], dict[str, Any]] = dict

    @property
    def names(self) -> frozenset[str]:
        """All its flags."""
        return self.shared.union(flag.name for flag in self.flags)


SHARED = vllm.SHARED | vllm_rs.SHARED
FLAGS = (*vllm.FLAGS, *vllm_rs.FLAGS)
NO_TOOL = Tool(
    SHARED, (*FLAGS, *vllm.SHORTENED_FLAGS), lambda settings: {}, finish=vllm.without_ignored
)
TOOLS = {
    **{
        release: Tool(SHARED, FLAGS, partial(vllm.defaults, release), finish=vllm.as_sent)
        for release in vllm_load.RELEASES
    },
    "inferencex": Tool(
        vllm.SHARED,
        vllm.INFERENCEX_FLAGS,
        vllm.inferencex_defaults,
        vllm.INFERENCEX_REPLACED,
        vllm.as_inferencex_sends,
    ),
    "sglang": Tool(sglang.SHARED, sglang.FLAGS, sglang.defaults, sglang.REPLACED, sglang.as_sent),
}
OLD_DATASET = "--dataset"  # a flag of vLLM before 2024, and of evalscope
# Tools with other flags, whose command lines `loadgen.cli.translate` translates.
TRANSLATED = ("aiperf", "genai-perf", "guidellm", "inference-perf", "evalscope", "llmperf")


def tool_of(name: str | None) -> Tool:
    """Return the tool of that name; None: the flags of vLLM with loadgen's own defaults."""
    return NO_TOOL if name is None else TOOLS[name]


def equivalent(name: str) -> str | None:
    """Describe what replaces a flag of another tool; None if no tool is known to have it."""
    if any(flag.name == name for flag in sglang.FLAGS):
        return "this is a flag of SGLang: add --compat sglang"
    if name != OLD_DATASET and any(flag.name == name for flag in vllm.INFERENCEX_FLAGS):
        return "this is a flag of InferenceX: add --compat inferencex"
    return other_tools.equivalent(name)


def apply(name: str | None, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings as a tool understands a command line: its flags translated, and its
    defaults added.

    Args:
        name: The tool, a name in TOOLS; None: the flags of vLLM with loadgen's own defaults.
        settings: The settings from flags and files.

    Raises:
        BadInput: A flag is refused, or a value is wrong.
    """
    tool = tool_of(name)
    settings = with_dataset_name(translated(settings))
    as_the_tool = {} if name is None else {"adapt": False}
    result = tool.finish(vllm_rs.with_sessions(as_the_tool | tool.defaults(settings) | settings))
    return {field: value for field, value in result.items() if not field.startswith(MARK)}
