"""vLLM's client in Rust: the flags of `vllm-rs bench serve` that neither `vllm bench serve` nor `loadgen run` has."""

from collections.abc import Callable
from typing import Any

from loadgen.cli.compat.tool_flags import SOME, Given, ToolFlag, one_or_several, other_command, renamed, switch
from loadgen.config.load import COLD
from loadgen.config.option import FROM_1
from loadgen.config.output import OutputSettings
from loadgen.util.argument_parser import integer, number

# Markers, which `run_settings.swept` removes.
NUM_RUNS, NUM_PROMPTS_FACTOR = "num_runs", "num_prompts_factor"
DATASET, COMPARE = "dataset", "compare"  # commands of loadgen


def _swept(name: str, field: str, kind: Callable[[str], Any]) -> ToolFlag:
    return renamed(name, field, one_or_several(kind))


def _counted(name: str, marker: str) -> ToolFlag:
    """Return a flag with a number from 1 that says how a series of runs is made."""

    def convert(value: int, given: Given) -> dict[str, Any]:
        FROM_1.check(name, value)
        return {marker: value}

    return ToolFlag(name, convert, type_=integer)


def _summary_percentiles(value: str, given: Given) -> dict[str, Any]:
    own = given.get("metric_percentiles", OutputSettings.metric_percentiles).split(",")
    return {"metric_percentiles": ",".join(dict.fromkeys([*own, *(each.strip() for each in value.split(","))]))}


FLAGS = (
    _swept("--sweep-max-concurrency", "max_concurrency", integer),
    _swept("--sweep-request-rate", "request_rate", number),
    _counted("--sweep-num-prompts-factor", NUM_PROMPTS_FACTOR),
    ToolFlag("--sweep-summary-percentiles", _summary_percentiles),
    _counted("--num-runs", NUM_RUNS),
    switch("--reset-prefix-cache", {"cache": COLD}),
    switch("--no-steady-state", {"steady_state_threshold": 0.0}),
    other_command("--dry-run", "shows the prompts, and nothing is sent", DATASET),
    other_command("--compare", "compares two results, and nothing is sent", COMPARE, SOME),
)

# Its flags that are settings of loadgen, and that `vllm bench serve` does not have.
SHARED = frozenset(
    (
        "--profile-batch-threshold",
        "--profile-duration",
        "--prompt-token-ids",
        "--steady-state-min-window",
        "--steady-state-threshold",
    )
)
