"""The command line of benchmark-runner: flags that are used, that have no effect, and that are refused.

It covers all versions of benchmark-runner, from the first to the one based on guidellm 0.7.
"""

import argparse
from collections.abc import Sequence
from typing import Any

from loadgen.cli.flags import json_value
from loadgen.errors import BadInput
from loadgen.util.argument_parser import OneLineParser, integer, number

PROG = "loadgen benchmark-runner benchmark run"
PROFILES = ("synchronous", "concurrent", "throughput", "constant", "async", "poisson", "sweep")
AXES = ("rate", "concurrency")
LEAVE_OUT = "leave it out"
NO_SEARCH = "run single rates with --profile and --rate, or use `loadgen search`"

# No effect here: loading of prompts, samples in the report (the records have every request), charts.
WITHOUT_EFFECT = {
    "--data-num-workers": (),
    "--dataloader-kwargs": (),
    "--sample-requests": ("--output-sampling",),
    "--chart": (),
}
WARMUP = "leave it out: every request counts; `loadgen run --num-warmups` sends warm-ups"
COOLDOWN = "leave it out: every request counts; the report has a rate without ramp and tail"
OVERLOADED = "leave it out: the report says OVERLOADED if requests pile up"
# Refused flags, with what to do instead.
REFUSED = {
    "--data-args": "set it in --data",
    "--data-column-mapper": "leave it out: the data sets are random text and ShareGPT",
    "--data-sampler": "leave it out: prompts are sent in the order of the data set",
    "--data-samples": "use --max-requests for the number of prompts",
    "--request-formatter-kwargs": "use the sampling flags of `loadgen run`",
    "--sharegpt-min-input-tokens": "remove conversations from the file instead",
    "--sharegpt-max-input-tokens": "remove conversations from the file instead",
    "--warmup": WARMUP,
    "--warmup-percent": WARMUP,
    "--cooldown": COOLDOWN,
    "--cooldown-percent": COOLDOWN,
    "--rampup": "leave it out, or use `loadgen run --ramp-up-strategy linear`",
    "--over-saturation": OVERLOADED,
}
REFUSED_SWITCHES = {"--detect-saturation": OVERLOADED, "--default-over-saturation": OVERLOADED}
# Flags of the search, which is refused.
SEARCH = ("--lower-bound", "--upper-bound", "--multiplier", "--min-requests", "--max-points", "--max-total-seconds")
SEARCH_SWITCHES = ("--probe-saturation", "--no-probe-saturation")
LIMITS = tuple(
    f"--slo-{of}-{metric}-ms" for metric in ("ttft", "itl", "tpot", "latency") for of in ("avg", "p95", "p99")
)


def parse(argv: Sequence[str]) -> dict[str, Any]:
    """Parse `argv` into values by flag name, with underscores; flags that are not given are left out.

    Raises:
        BadInput: A flag is unknown or refused, or a value is wrong.
    """
    given = vars(_parser().parse_args(list(argv)))
    for flag, remedy in (REFUSED | REFUSED_SWITCHES).items():
        if _dest(flag) in given:
            raise BadInput(flag, "not supported", remedy)
    if given.get("auto_tune"):
        raise BadInput("--auto-tune", "searches are not supported", NO_SEARCH)
    for flag in (*SEARCH, *SEARCH_SWITCHES, *LIMITS):
        if _dest(flag) in given:
            raise BadInput(flag, "searches are not supported", NO_SEARCH)
    return {name: value for name, value in given.items() if name not in map(_dest, WITHOUT_EFFECT)}


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        PROG,
        description="Measure a server as GPUStack's benchmark-runner does, and write the summary that GPUStack reads.",
        argument_default=argparse.SUPPRESS,
    )
    add = parser.add_argument
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
    add("--request-type", choices=("chat_completions", "text_completions"), help="API (chat_completions)")
    add("--scenario", "-c", metavar="FILE", help="a benchmark profile of GPUStack (YAML); FILE#NAME for one of several")
    add("--data", action="append", metavar="DATA", help="prompt_tokens=N,output_tokens=N, or a ShareGPT file")
    add("--processor", metavar="PATH", help="tokenizer (--model)")
    add("--processor-args", type=_object, metavar="JSON", help="trust_remote_code is accepted, and not needed")
    add("--sharegpt-max-output-tokens", type=integer, metavar="N", help="output tokens to request of every prompt")
    add("--random-seed", type=integer, metavar="SEED", help="seed of all random choices (42)")
    add("--profile", "--rate-type", choices=PROFILES, help="how requests are sent; sweep is refused")
    add(
        "--rate",
        action="append",
        metavar="RATE",
        help="requests per second; with --profile concurrent: requests in flight",
    )
    add("--max-concurrency", type=integer, metavar="N", help="maximum number of requests in flight (512)")
    add(
        "--stages",
        type=json_value,
        metavar="JSON",
        help='several runs, one after the other: [{"rate": 1, "max_requests": 100}]',
    )
    add(
        "--axis",
        choices=AXES,
        help="the meaning of the rate of a stage: requests per second, or requests in flight (rate)",
    )
    add("--seed-increment", action=argparse.BooleanOptionalAction, help="give each stage the next seed (yes)")
    add("--max-requests", type=integer, metavar="N", help="requests to send")
    add("--max-seconds", type=number, metavar="S", help="seconds during which requests are sent")
    add("--max-errors", type=integer, metavar="N", help="stop sending after this many failed requests")
    add(
        "--max-error-rate",
        "--max-global-error-rate",
        type=number,
        metavar="SHARE",
        help="stop sending once this share of the ended requests has failed",
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
    add("--disable-console-interactive", "--disable-progress", action="store_true", help="no progress bar")
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
    for flag in (*REFUSED, *SEARCH, *LIMITS):
        add(flag, help=argparse.SUPPRESS)
    for flag in ("--auto-tune", *REFUSED_SWITCHES, *SEARCH_SWITCHES):
        add(flag, action="store_true", help=argparse.SUPPRESS)
    return parser


def _dest(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")


def _object(text: str) -> dict[str, Any]:
    found = json_value(text)
    if not isinstance(found, dict):
        raise argparse.ArgumentTypeError(f"{text!r} is not a JSON object")
    return found
