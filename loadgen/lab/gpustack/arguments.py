"""The command line of benchmark-runner: flags that are used, have no effect, or are refused.

It covers all versions of benchmark-runner, from the first to the one based on guidellm 0.7. Errors
name the flags of this command line, not those of `loadgen run`.
"""

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from loadgen.cli.flags import json_value
from loadgen.errors import BadInput
from loadgen.util.argument_parser import OneLineParser, integer, number
from loadgen.util.files import table_rows

FLAG_NAMES = {  # of settings, by their names
    "base_url": "--target",
    "tokenizer": "--processor",
    "api_key": "--backend-kwargs api_key",
    "first_token_timeout": "--backend-kwargs timeout",
    "stall_timeout": "--backend-kwargs timeout",
    "request_rate": "--rate",
    "num_prompts": "--max-requests",
    "duration": "--max-seconds",
    "dataset_path": "--data",
    "dataset_rule": "--data",
    "random_input_len": "--data prompt_tokens",
    "random_output_len": "--data output_tokens",
    "turns": "--data turns",
    "prefix_buckets": "--data prefix_buckets",
    "sharegpt_output_len": "--sharegpt-max-output-tokens",
    "sharegpt_input_len": "--sharegpt-min-input-tokens",
    "seed": "--random-seed",
    "records": "--output-dir",
    "workload": "--scenario",
}
PROG = "loadgen benchmark-runner benchmark run"
LEAVE_OUT = "leave it out"
# Limits of the search: the words of a flag, and the latency and the statistic of an SLO. GPUStack
# writes "sla" until 2.2 and "slo" from 2.3 on, and calls the time per token "tpot" until 2.2 and
# "itl" from 2.3 on.
LATENCIES = {"ttft": ("ttft",), "tpot": ("itl", "tpot"), "e2el": ("latency",)}
STATISTICS = {"mean": "avg", "p95": "p95", "p99": "p99"}
LIMITS = {
    f"{metric}_{statistic}": tuple(
        f"--{prefix}-{STATISTICS[statistic]}-{word}-ms"
        for prefix in ("slo", "sla")
        for word in words
    )
    for metric, words in LATENCIES.items()
    for statistic in STATISTICS
}
SPELLINGS = "limit_flags"
IDLE, REFUSES = ("idle", "idle switch"), "refused"
FLAGS = [*table_rows(Path(__file__).with_name("flags.txt"))]
# Refused flags, with what to do instead.
REFUSED = {spellings: cells[1] for spellings, *cells in FLAGS if cells[:1] == [REFUSES]}


def parse(argv: Sequence[str]) -> dict[str, Any]:
    """Parse `argv` into values by flag name, with underscores; flags that are not given are left
    out.

    Args:
        argv: The arguments after `benchmark run`.

    Raises:
        BadInput: A flag is unknown or refused, or a value is wrong.
    """
    values = vars(_parser().parse_args(list(argv)))
    for name, spelling, limit in values.pop(SPELLINGS, ()):
        values[name] = limit
        values.setdefault(SPELLINGS, {})[name] = spelling
    for flag, remedy in REFUSED.items():
        if name_of(flag) in values:
            raise BadInput(flag, "not supported", remedy)
    idle = {name_of(spellings.split()[0]) for spellings, *cells in FLAGS if {*cells} & {*IDLE}}
    return {name: value for name, value in values.items() if name not in idle}


def name_of(flag: str) -> str:
    """Return the name under which `parse` returns a flag."""
    return flag.removeprefix("--").replace("-", "_")


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        PROG,
        description="Measure a server as GPUStack's benchmark-runner does, and write the summary "
        "that GPUStack reads.",
        argument_default=argparse.SUPPRESS,
    )
    parser.not_suggested = frozenset(REFUSED)
    for spellings, *cells in FLAGS:
        if cells:
            parser.add_argument(*spellings.split(), **_options(*cells))
        else:
            _add_limits(parser)
    return parser


def _options(kind: str, *cells: str) -> dict[str, Any]:
    """Return the options of `add_argument` for a row of the table."""
    if kind in (REFUSES, *IDLE):
        action = {"action": "store_true"} if kind == IDLE[1] else {}
        return {"help": argparse.SUPPRESS, **action}
    *names, text = cells
    options: dict[str, Any] = {"help": text}
    if kind == "choice":
        return options | {"choices": tuple(names[0].split(","))}
    if kind in ACTIONS:
        options["action"] = ACTIONS[kind]
    if kind in TYPES:
        options["type"] = TYPES[kind]
    metavar = METAVARS.get(kind) or next(iter(names), None)
    return options | ({"metavar": metavar} if metavar else {})


def _add_limits(parser: argparse.ArgumentParser) -> None:
    for name, flags in LIMITS.items():
        about = f"limit of --auto-tune: highest {name.replace('_', ' ')}, ms"
        for spelling in flags:
            parser.add_argument(
                spelling,
                dest=SPELLINGS,
                type=partial(_limit, name, spelling),
                action="append",
                metavar="MS",
                help=about if spelling == flags[0] else argparse.SUPPRESS,
            )


def _limit(name: str, spelling: str, text: str) -> tuple[str, str, float]:
    """Read a limit: its name, the flag by which it was given, and its value."""
    return name, spelling, number(text)


def _object(text: str) -> dict[str, Any]:
    value = json_value(text)
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f"{text!r} is not a JSON object")
    return value


ACTIONS = {
    "switch": "store_true",
    "texts": "append",
    "yes/no": argparse.BooleanOptionalAction,
}
TYPES = {
    "count": integer,
    "integer": integer,
    "number": number,
    "JSON": json_value,
    "object": _object,
}
METAVARS = {"count": "N", "object": "JSON"}


def read_number(value: Any, field: str) -> float:
    """Read a number.

    Raises:
        BadInput: It is none.
    """
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise BadInput(field, f"{value!r} is not a number", "give a number") from error


def read_whole_number(value: Any, field: str) -> int:
    """Read a whole number.

    Raises:
        BadInput: It is none.
    """
    whole = read_number(value, field)
    if not whole.is_integer():
        raise BadInput(field, f"{value!r} is not a whole number", "give a whole number")
    return int(whole)
