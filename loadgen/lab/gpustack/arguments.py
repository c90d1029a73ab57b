"""The command line of benchmark-runner: flags that are used, have no effect, or are refused.

It covers all versions of benchmark-runner, from the first to the one based on guidellm 0.7. Errors
name the flags of this command line, not those of `loadgen run`.
"""

import argparse
from collections.abc import Sequence
from functools import partial
from typing import Any

from loadgen.cli.flags import json_value
from loadgen.config.load import AXES
from loadgen.errors import BadInput
from loadgen.util.argument_parser import OneLineParser, integer, number

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
PROFILES = ("synchronous", "concurrent", "throughput", "constant", "async", "poisson", "sweep")
LEAVE_OUT = "leave it out"
# No effect here: loading of prompts, samples in the report (the records have every request),
# charts.
WITHOUT_EFFECT = {
    "--data-num-workers": (),
    "--dataloader-kwargs": (),
    "--sample-requests": ("--output-sampling",),
    "--chart": (),
}
# No effect here: the search needs no estimate of the throughput beforehand.
SWITCHES_WITHOUT_EFFECT = ("--probe-saturation", "--no-probe-saturation")
LENGTH = "leave it out: a run of the search is as long as its limits need"
# Refused flags, with what to do instead.
REFUSED = {
    "--data-args": "set it in --data",
    "--data-column-mapper": "leave it out: the data sets are random text and ShareGPT",
    "--data-sampler": "leave it out: prompts are sent in the order of the data set",
    "--data-samples": "use --max-requests for the number of prompts",
    "--request-formatter-kwargs": "use the sampling flags of `loadgen run`",
    "--multiplier": LENGTH,
    "--min-requests": LENGTH,
    "--rampup": "leave it out, or use `loadgen run --ramp-up-strategy linear`",
    "--over-saturation": "use --detect-saturation",
}
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
    without_effect = set(map(name_of, (*WITHOUT_EFFECT, *SWITCHES_WITHOUT_EFFECT)))
    return {name: value for name, value in values.items() if name not in without_effect}


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
    add = parser.add_argument
    count = partial(add, type=integer, metavar="N")
    add("--target", metavar="URL", help="server, with scheme and port")
    add("--model", metavar="NAME", help="model name (the server's first)")
    add(
        "--backend",
        "--backend-type",
        choices=("openai_http", "openai_http_error_detail"),
        help="both values mean the same",
    )
    add(
        "--backend-kwargs",
        "--backend-args",
        type=_object,
        metavar="JSON",
        help="a JSON object with timeout, api_key, verify, request_handlers",
    )
    add(
        "--request-type",
        choices=("chat_completions", "text_completions"),
        help="API (chat_completions)",
    )
    add(
        "--scenario",
        "-c",
        metavar="FILE",
        help="a benchmark profile of GPUStack (YAML); FILE#NAME for one of several",
    )
    add(
        "--data",
        action="append",
        metavar="DATA",
        help="prompt_tokens=N,output_tokens=N, or a ShareGPT file",
    )
    add("--processor", metavar="PATH", help="tokenizer (--model)")
    add(
        "--processor-args",
        type=_object,
        metavar="JSON",
        help="trust_remote_code is accepted, and not needed",
    )
    count("--sharegpt-min-input-tokens", help="leave out questions with fewer tokens")
    count("--sharegpt-max-input-tokens", help="leave out questions with more tokens")
    count("--sharegpt-max-output-tokens", help="output tokens to request for every prompt")
    add("--random-seed", type=integer, metavar="SEED", help="seed of all random choices (42)")
    add(
        "--profile", "--rate-type", choices=PROFILES, help="how requests are sent; sweep is refused"
    )
    add(
        "--rate",
        action="append",
        metavar="RATE",
        help="requests per second; with --profile concurrent: requests in flight",
    )
    count("--max-concurrency", help="maximum number of requests in flight (512)")
    add(
        "--stages",
        type=json_value,
        metavar="JSON",
        help='several runs, one after the other: [{"rate": 1, "max_requests": 100}]',
    )
    add(
        "--axis",
        choices=AXES,
        help="what --stages and --auto-tune vary: requests per second, or requests in flight "
        "(rate)",
    )
    add(
        "--auto-tune",
        action="store_true",
        help="search the highest load that the server sustains within all limits",
    )
    add(
        "--lower-bound",
        type=number,
        metavar="LOAD",
        help="first and lowest load of --auto-tune (4)",
    )
    add("--upper-bound", type=number, metavar="LOAD", help="highest load of --auto-tune (8192)")
    count("--max-points", help="runs of --auto-tune (18)")
    add(
        "--max-total-seconds",
        type=number,
        metavar="S",
        help="seconds that --auto-tune may take (5400)",
    )
    for name, flags in LIMITS.items():
        about = f"limit of --auto-tune: highest {name.replace('_', ' ')}, ms"
        for spelling in flags:
            add(
                spelling,
                dest=SPELLINGS,
                type=partial(_limit, name, spelling),
                action="append",
                metavar="MS",
                help=about if spelling == flags[0] else argparse.SUPPRESS,
            )
    add(
        "--seed-increment",
        action=argparse.BooleanOptionalAction,
        help="give each run the next seed (yes)",
    )
    count("--max-requests", help="requests to send")
    add("--max-seconds", type=number, metavar="S", help="seconds during which requests are sent")
    count("--max-errors", help="stop sending after this many failed requests")
    add(
        "--max-error-rate",
        "--max-global-error-rate",
        type=number,
        metavar="SHARE",
        help="stop sending once this share of the ended requests has failed",
    )
    for flag, side in (("--warmup", "first"), ("--cooldown", "last")):
        help_text = f"{side} requests that the summary leaves out: a number, or a share below 1"
        add(flag, f"{flag}-percent", type=json_value, metavar="N|JSON", help=help_text)
    add(
        "--detect-saturation",
        "--default-over-saturation",
        action="store_true",
        help="stop sending once requests pile up",
    )
    add("--output-dir", metavar="DIR", help="folder of the summary")
    add(
        "--outputs",
        action="append",
        metavar="NAME",
        help="name of the summary; .summary_json and .dual_json become .json",
    )
    add("--output-path", metavar="PATH", help="path of the summary: folder and name")
    add("--disable-console", "--disable-console-outputs", action="store_true", help="no progress")
    add(
        "--disable-console-interactive",
        "--disable-progress",
        action="store_true",
        help="no progress bar",
    )
    add("--progress-url", metavar="URL", help="URL that receives the progress, by PATCH")
    add("--progress-auth", metavar="TOKEN", help="bearer token for --progress-url")
    add("--progress-ca-cert", metavar="FILE", help="CA certificates for --progress-url")
    add(
        "--progress-insecure-skip-tls-verify",
        action="store_true",
        help="do not verify the certificate of --progress-url",
    )
    for flag, aliases in WITHOUT_EFFECT.items():
        add(flag, *aliases, help=argparse.SUPPRESS)
    for flag in REFUSED:
        add(flag, help=argparse.SUPPRESS)
    for flag in SWITCHES_WITHOUT_EFFECT:
        add(flag, action="store_true", help=argparse.SUPPRESS)
    return parser


def _limit(name: str, spelling: str, text: str) -> tuple[str, str, float]:
    """Read a limit: its name, the flag by which it was given, and its value."""
    return name, spelling, number(text)


def _object(text: str) -> dict[str, Any]:
    value = json_value(text)
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f"{text!r} is not a JSON object")
    return value


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
