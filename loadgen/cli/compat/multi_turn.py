"""Sessions of vLLM's client in Rust: `--multi-turn` and its flags, and the limit on the length of a context."""

import math
from collections.abc import Mapping
from typing import Any

from loadgen.cli.compat.tool_flags import NONE, marked, refused, renamed
from loadgen.config.data import MULTI_TURN, DataSettings, parse_ratios
from loadgen.config.load import LoadSettings
from loadgen.config.option import FROM_1, TOKENS
from loadgen.config.option import flag as spelled
from loadgen.errors import BadInput
from loadgen.util.argument_parser import integer, number

MARKER, LIMIT, FLAG = "_multi_turn", "_max_model_len", "--multi-turn"
PER_TURN = "--per-turn-input-len"
DEFAULT_SESSIONS, DEFAULT_TURNS = 1000, 3
NO_HISTORY = "turns without the history of their session are not supported"
PREFIXES = "use --dataset-name prefix_repetition, whose prompts share prefixes, in no order"
CACHE = "prompts either all share a prefix, or none does"
SHARED = "use --random-prefix-len for all, or write the prompts to a file for --dataset-name jsonl"


FLAGS = (
    marked(MARKER, FLAG, values=NONE),
    marked(MARKER, "--multi-turn-num-turns", integer),
    marked(MARKER, "--multi-turn-min-turns", integer),
    marked(MARKER, "--multi-turn-max-turns", integer),
    marked(MARKER, "--multi-turn-concurrency", integer, ("max_concurrency",)),
    marked(MARKER, "--multi-turn-delay-ms", number, ("think_time",)),
    marked(MARKER, PER_TURN, integer),
    refused("--multi-turn-prefix-global-ratio", NO_HISTORY, PREFIXES, no_op_value=0.0),
    refused("--multi-turn-prefix-conversation-ratio", NO_HISTORY, PREFIXES, no_op_value=0.0),
    refused("--random-cache-hit-fraction", CACHE, SHARED, no_op_value=0.0),
    refused("--random-cache-ratio", CACHE, SHARED, no_op_value=0.0),
    renamed("--max-model-len", LIMIT, integer),
)


def applied(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with the sessions that the flags ask for."""
    found = dict(settings)
    said, limit = found.get(MARKER, {}), found.get(LIMIT)
    if not said.get(FLAG):
        for flag, value in said.items():
            if value:
                raise BadInput(flag, f"given without {FLAG}", f"add {FLAG}, or leave it out")
        if limit is not None:
            _check_limit(limit, found)
        return found
    _check_sessions(found)
    first = found.get("random_input_len", DataSettings.random_input_len)
    further = said.get(PER_TURN) or first
    TOKENS.check(PER_TURN, further)
    low, high = _turns(said)
    if limit is not None:
        _check_turns(limit, found, low=low, high=high, first=first, further=further)
    found |= {"dataset_name": MULTI_TURN, "turns": f"{low}" if low == high else f"{low}:{high}"}
    if further != first:
        found["random_input_len"] = ",".join(map(str, (first, *(further,) * (high - 1))))
    if concurrency := said.get("--multi-turn-concurrency"):
        found["max_concurrency"] = concurrency
    if delay_ms := said.get("--multi-turn-delay-ms"):
        found["think_time"] = f"{delay_ms / 1e3:g}"
    if not found.get("ignore_eos"):  # with it, contexts would grow without bound
        least = {"min_tokens": found.get("random_output_len", DataSettings.random_output_len)}
        found["extra_body"] = least | (found.get("extra_body") or {})
    sessions = found.get("num_prompts", DEFAULT_SESSIONS)
    if sessions < 1:
        problem = f"{sessions} is out of range: with {FLAG} it is the number of sessions"
        raise BadInput("--num-prompts", problem, "give 1 or more")
    found["num_prompts"] = _requests(sessions, low, high, found)
    return found


def _check_sessions(found: Mapping[str, Any]) -> None:
    name = found.get("dataset_name", "random")
    if name != "random":
        remedy = "use --dataset-name sharegpt --turns N|all without it, where --num-prompts counts requests"
        raise BadInput(FLAG, f"not supported for the data set {name}", remedy)
    if any(_ratios(found)):
        raise BadInput("--random-range-ratio", f"has no effect with {FLAG}", "leave it out")
    if found.get("request_rate", math.inf) != LoadSettings.request_rate:
        remedy = "leave it out, or use --dataset-name multi_turn, where it is the rate of sessions"
        raise BadInput("--request-rate", f"has no effect with {FLAG}", remedy)
    for field in ("random_input_len", "random_output_len"):
        if not isinstance(found.get(field, 0), int):
            raise BadInput(spelled(field), f"{found[field]} is not one number", f"give one with {FLAG}")


def _turns(said: Mapping[str, Any]) -> tuple[int, int]:
    usual = said.get("--multi-turn-num-turns", DEFAULT_TURNS)
    FROM_1.check("--multi-turn-num-turns", usual)
    low, high = (said.get(f"--multi-turn-{end}-turns") or usual for end in ("min", "max"))
    if low < 1 or high < low:
        raise BadInput("--multi-turn-min-turns", f"{low} to {high} turns", "give 1 or more, and at most the maximum")
    return low, high


def _requests(sessions: int, low: int, high: int, found: Mapping[str, Any]) -> int:
    if low == high:
        return sessions * low
    from loadgen.workload.datasets.session import TurnCounts  # not before: it imports NumPy

    seed = found.get("seed_prompts")
    turns = TurnCounts(low, high, found.get("seed", LoadSettings.seed) if seed is None else seed)
    return sum(map(turns.of, range(sessions)))


def _check_turns(limit: int, found: Mapping[str, Any], *, low: int, high: int, first: int, further: int) -> None:
    answer = found.get("random_output_len", DataSettings.random_output_len)
    room = limit - found.get("random_prefix_len", 0) - first - answer
    fit = 1 + max(room, -1) // (further + answer)
    if fit < high:
        remedy = f"give --multi-turn-max-turns {fit}" if fit >= low else "give fewer turns, or shorter ones"
        raise BadInput("--max-model-len", f"sessions of {high} turns would have more than {limit} tokens", remedy)


def _check_limit(limit: int, found: Mapping[str, Any]) -> None:
    """Check that no request is longer than the context: none is left out."""
    name = found.get("dataset_name", "random")
    if name != "random":
        problem = f"requests of {name} that are longer are not left out"
        raise BadInput("--max-model-len", problem, "leave long rows out of the file, or limit the output tokens")
    from loadgen.workload.datasets.lengths import Lengths  # not before: it imports NumPy

    ratios = _ratios(found)
    longest = found.get("random_prefix_len", DataSettings.random_prefix_len)
    for field, ratio in zip(("random_input_len", "random_output_len"), ratios, strict=True):
        given = found.get(field, getattr(DataSettings, field))
        longest += Lengths.parse(spelled(field), given, ratio).high
    if longest > limit:
        problem = f"prompts and answers have up to {longest} tokens, and none is left out"
        raise BadInput("--max-model-len", problem, "give shorter lengths, or leave it out")


def _ratios(found: Mapping[str, Any]) -> tuple[float, float]:
    return parse_ratios(str(found.get("random_range_ratio", DataSettings.random_range_ratio)))
