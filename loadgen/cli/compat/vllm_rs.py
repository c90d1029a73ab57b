"""vLLM's client in Rust: the flags of `vllm-rs bench serve` that neither `vllm bench serve` nor
`loadgen run` has.

The flags of `--multi-turn`, and of the limit on the length of a context, are kept until all flags
are known.
"""

import math
from collections.abc import Mapping
from typing import Any

from loadgen.cli.compat.tool_flags import (
    NONE,
    SOME,
    Settings,
    ToolFlag,
    marked,
    one_or_several,
    other_command,
    refused,
    renamed,
    switch,
)
from loadgen.config.data import MULTI_TURN, DataSettings, parse_ratios
from loadgen.config.load import COLD, LoadSettings
from loadgen.config.option import FROM_1
from loadgen.config.option import flag as spelled
from loadgen.config.output import OutputSettings
from loadgen.errors import BadInput
from loadgen.util.argument_parser import integer, number

# Markers, which `run_settings.swept` removes.
NUM_RUNS, NUM_PROMPTS_FACTOR = "num_runs", "num_prompts_factor"
DATASET, COMPARE = "dataset", "compare"  # commands of loadgen
MARKER, LIMIT, FLAG = "_multi_turn", "_max_model_len", "--multi-turn"
PER_TURN = "--per-turn-input-len"
DEFAULT_SESSIONS, DEFAULT_TURNS = 1000, 3
NO_HISTORY = "turns without the history of their session are not supported"
PREFIXES = "use --dataset-name prefix_repetition, whose prompts share prefixes, in no order"
CACHE = "prompts either all share a prefix, or none does"
SHARED_PREFIX = (
    "use --random-prefix-len for all, or write the prompts to a file for --dataset-name jsonl"
)


def with_sessions(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with the sessions that the flags ask for.

    Raises:
        BadInput: A value is out of range, or a flag has no effect here.
    """
    result = dict(settings)
    values, limit = result.get(MARKER, {}), result.get(LIMIT)
    if not values.get(FLAG):
        for flag, value in values.items():
            if value:
                raise BadInput(flag, f"given without {FLAG}", f"add {FLAG}, or leave it out")
        if limit is not None:
            _check_limit(limit, result)
        return result
    _check_sessions(result)
    first = result.get("random_input_len", DataSettings.random_input_len)
    further = values.get(PER_TURN) or first
    FROM_1.check(PER_TURN, further)
    low, high = _turns(values)
    if limit is not None:
        _check_turns(limit, result, low=low, high=high, first=first, further=further)
    result |= {"dataset_name": MULTI_TURN, "turns": f"{low}" if low == high else f"{low}:{high}"}
    if further != first:
        result["random_input_len"] = ",".join(map(str, (first, *(further,) * (high - 1))))
    if concurrency := values.get("--multi-turn-concurrency"):
        result["max_concurrency"] = concurrency
    if delay_ms := values.get("--multi-turn-delay-ms"):
        result["think_time"] = f"{delay_ms / 1e3:g}"
    if not result.get("ignore_eos"):  # with it, contexts would grow without bound
        least = {"min_tokens": result.get("random_output_len", DataSettings.random_output_len)}
        result["extra_body"] = least | (result.get("extra_body") or {})
    sessions = result.get("num_prompts", DEFAULT_SESSIONS)
    if sessions < 1:
        problem = f"{sessions} is out of range: with {FLAG} it is the number of sessions"
        raise BadInput("--num-prompts", problem, "give 1 or more")
    result["num_prompts"] = _requests(sessions, low, high, result)
    return result


def _check_sessions(settings: Mapping[str, Any]) -> None:
    name = settings.get("dataset_name", "random")
    if name != "random":
        remedy = (
            "use --dataset-name sharegpt --turns N|all without it, where --num-prompts "
            "counts requests"
        )
        raise BadInput(FLAG, f"not supported for the data set {name}", remedy)
    if any(_ratios(settings)):
        raise BadInput("--random-range-ratio", f"has no effect with {FLAG}", "leave it out")
    if settings.get("request_rate", math.inf) != LoadSettings.request_rate:
        remedy = "leave it out, or use --dataset-name multi_turn, where it is the rate of sessions"
        raise BadInput("--request-rate", f"has no effect with {FLAG}", remedy)
    for field in ("random_input_len", "random_output_len"):
        if not isinstance(settings.get(field, 0), int):
            raise BadInput(
                spelled(field), f"{settings[field]} is not one number", f"give one with {FLAG}"
            )


def _turns(values: Mapping[str, Any]) -> tuple[int, int]:
    usual = values.get("--multi-turn-num-turns", DEFAULT_TURNS)
    FROM_1.check("--multi-turn-num-turns", usual)
    low, high = (values.get(f"--multi-turn-{end}-turns") or usual for end in ("min", "max"))
    if low < 1 or high < low:
        raise BadInput(
            "--multi-turn-min-turns",
            f"{low} to {high} turns",
            "give 1 or more, and at most the maximum",
        )
    return low, high


def _requests(sessions: int, low: int, high: int, settings: Mapping[str, Any]) -> int:
    if low == high:
        return sessions * low
    from loadgen.workload.datasets.session import TurnCounts  # not before: it imports NumPy

    seed = settings.get("seed_prompts")
    turns = TurnCounts(low, high, settings.get("seed", LoadSettings.seed) if seed is None else seed)
    return sum(map(turns.of, range(sessions)))


def _check_turns(
    limit: int, settings: Mapping[str, Any], *, low: int, high: int, first: int, further: int
) -> None:
    answer = settings.get("random_output_len", DataSettings.random_output_len)
    room = limit - settings.get("random_prefix_len", 0) - first - answer
    fit = 1 + max(room, -1) // (further + answer)
    if fit < high:
        remedy = (
            f"give --multi-turn-max-turns {fit}"
            if fit >= low
            else "give fewer turns, or shorter ones"
        )
        raise BadInput(
            "--max-model-len",
            f"sessions of {high} turns would have more than {limit} tokens",
            remedy,
        )


def _check_limit(limit: int, settings: Mapping[str, Any]) -> None:
    """Check that no request is longer than the context: none is left out."""
    name = settings.get("dataset_name", "random")
    if name != "random":
        problem = f"requests of {name} that are longer are not left out"
        raise BadInput(
            "--max-model-len",
            problem,
            "leave long rows out of the file, or limit the output tokens",
        )
    from loadgen.workload.datasets.lengths import Lengths  # not before: it imports NumPy

    ratios = _ratios(settings)
    longest = settings.get("random_prefix_len", DataSettings.random_prefix_len)
    for field, ratio in zip(("random_input_len", "random_output_len"), ratios, strict=True):
        length = settings.get(field, getattr(DataSettings, field))
        longest += Lengths.parse(spelled(field), length, ratio).high
    if longest > limit:
        problem = f"prompts and answers have up to {longest} tokens, and none is left out"
        raise BadInput("--max-model-len", problem, "give shorter lengths, or leave it out")


def _ratios(settings: Mapping[str, Any]) -> tuple[float, float]:
    return parse_ratios(str(settings.get("random_range_ratio", DataSettings.random_range_ratio)))


def _counted(name: str, marker: str) -> ToolFlag:
    """Return a flag with a number from 1 that says how a series of runs is made."""

    def convert(value: int, settings: Settings) -> dict[str, Any]:
        FROM_1.check(name, value)
        return {marker: value}

    return ToolFlag(name, convert, type_=integer)


def _summary_percentiles(value: str, settings: Settings) -> dict[str, Any]:
    percentiles = settings.get("metric_percentiles", OutputSettings.metric_percentiles).split(",")
    percentiles += (percentile.strip() for percentile in value.split(","))
    return {"metric_percentiles": ",".join(dict.fromkeys(percentiles))}


FLAGS = (
    renamed("--sweep-max-concurrency", "max_concurrency", one_or_several(integer)),
    renamed("--sweep-request-rate", "request_rate", one_or_several(number)),
    _counted("--sweep-num-prompts-factor", NUM_PROMPTS_FACTOR),
    ToolFlag("--sweep-summary-percentiles", _summary_percentiles),
    _counted("--num-runs", NUM_RUNS),
    switch("--reset-prefix-cache", {"cache": COLD}),
    switch("--no-steady-state", {"steady_state_threshold": 0.0}),
    other_command("--dry-run", "shows the prompts, and nothing is sent", DATASET),
    other_command("--compare", "compares two results, and nothing is sent", COMPARE, SOME),
    marked(MARKER, FLAG, values=NONE),
    marked(MARKER, "--multi-turn-num-turns", integer),
    marked(MARKER, "--multi-turn-min-turns", integer),
    marked(MARKER, "--multi-turn-max-turns", integer),
    marked(MARKER, "--multi-turn-concurrency", integer, ("max_concurrency",)),
    marked(MARKER, "--multi-turn-delay-ms", number, ("think_time",)),
    marked(MARKER, PER_TURN, integer),
    refused("--multi-turn-prefix-global-ratio", NO_HISTORY, PREFIXES, no_op_value=0.0),
    refused("--multi-turn-prefix-conversation-ratio", NO_HISTORY, PREFIXES, no_op_value=0.0),
    refused("--random-cache-hit-fraction", CACHE, SHARED_PREFIX, no_op_value=0.0),
    refused("--random-cache-ratio", CACHE, SHARED_PREFIX, no_op_value=0.0),
    renamed("--max-model-len", LIMIT, integer),
)

# Its flags that are settings of loadgen, and that `vllm bench serve` does not have.
SHARED = frozenset(
    (
        *("--profile-batch-threshold", "--profile-duration", "--prompt-token-ids"),
        *("--steady-state-min-window", "--steady-state-threshold"),
    )
)
