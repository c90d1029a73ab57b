"""The command line of benchmark-runner: what of it is used, what has no effect here, and what cannot be had.

The flags are those of all its versions, from the first one up to the one on guidellm 0.7.
"""

import argparse
import json
from collections.abc import Sequence
from typing import Any

from loadgen.errors import BadInput
from loadgen.util.argument_parser import OneLineParser, integer, number

PROG = "loadgen benchmark-runner benchmark run"
PROFILES = ("synchronous", "concurrent", "throughput", "constant", "async", "poisson", "sweep")
AXES = ("rate", "concurrency")
LEAVE_OUT = "leave it out"
SEARCHED = "run single rates with --profile and --rate, or use `loadgen search`"

# Nothing depends on them here: the loader of prompts, samples in the report (records hold every request), drawings.
WITHOUT_EFFECT = {
    "--data-num-workers": (),
    "--dataloader-kwargs": (),
    "--sample-requests": ("--output-sampling",),
    "--chart": (),
}
WARMUP = "leave it out: every request counts, and `loadgen run --num-warmups` sends some beforehand"
COOLDOWN = "leave it out: every request counts, and the report has rates without ramp and tail"
OVERLOADED = "leave it out: the report says OVERLOADED when requests pile up"
# Refused wherever they are given, with what to do instead.
REFUSED = {
    "--data-args": "say it in --data",
    "--data-column-mapper": "leave it out: the data sets are random text and ShareGPT",
    "--data-sampler": "leave it out: prompts are sent in the order of the data set",
    "--data-samples": "say with --max-requests how many prompts there are",
    "--request-formatter-kwargs": "put sampling settings into the flags of `loadgen run`",
    "--sharegpt-min-input-tokens": "cut the file down instead",
    "--sharegpt-max-input-tokens": "cut the file down instead",
    "--warmup": WARMUP,
    "--warmup-percent": WARMUP,
    "--cooldown": COOLDOWN,
    "--cooldown-percent": COOLDOWN,
    "--rampup": "leave it out, or use `loadgen run --ramp-up-strategy linear`",
    "--over-saturation": OVERLOADED,
}
REFUSED_SWITCHES = {"--detect-saturation": OVERLOADED, "--default-over-saturation": OVERLOADED}
# They belong to the search, which is refused as a whole.
SEARCH = ("--lower-bound", "--upper-bound", "--multiplier", "--min-requests", "--max-points", "--max-total-seconds")
SEARCH_SWITCHES = ("--probe-saturation", "--no-probe-saturation")
LIMITS = tuple(
    f"--slo-{of}-{metric}-ms" for metric in ("ttft", "itl", "tpot", "latency") for of in ("avg", "p95", "p99")
)


def parse(argv: Sequence[str]) -> dict[str, Any]:
    """What `argv` gives, by the names of its flags with underscores; what it does not give is left out.

    Raises:
        BadInput: A flag that is unknown or cannot be had, or a value that cannot be read.
    """
    given = vars(_parser().parse_args(list(argv)))
    for flag, remedy in (REFUSED | REFUSED_SWITCHES).items():
        if _dest(flag) in given:
            raise BadInput(flag, "is not to be had here", remedy)
    if given.get("auto_tune"):
        raise BadInput("--auto-tune", "is a search, and this is one run", SEARCHED)
    for flag in (*SEARCH, *SEARCH_SWITCHES, *LIMITS):
        if _dest(flag) in given:
            raise BadInput(flag, "is of --auto-tune, which is not to be had here", SEARCHED)
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
    add("--backend", "--backend-type", choices=("openai_http", "openai_http_error_detail"), help="both are the same")
    add("--backend-kwargs", "--backend-args", type=_object, metavar="JSON", help="timeout, api_key, verify, handlers")
    add("--request-type", choices=("chat_completions", "text_completions"), help="API (chat_completions)")
    add(
        "--scenario", "-c", metavar="FILE", help="a benchmark profile of GPUStack's, in YAML; FILE#NAME for one of many"
    )
    add("--data", action="append", metavar="DATA", help="prompt_tokens=N,output_tokens=N, or a ShareGPT file")
    add("--processor", metavar="PATH", help="tokenizer (--model)")
    add("--processor-args", type=_object, metavar="JSON", help="trust_remote_code, which is not needed")
    add("--sharegpt-max-output-tokens", type=integer, metavar="N", help="ask this many tokens of every answer")
    add("--random-seed", type=integer, metavar="SEED", help="seed of everything drawn (42)")
    add("--profile", "--rate-type", choices=PROFILES, help="how requests are sent; sweep is refused")
    add("--rate", action="append", metavar="RATE", help="requests per second, or streams of the profile concurrent")
    add("--max-concurrency", type=integer, metavar="N", help="most requests in flight (512)")
    add("--stages", type=_json, metavar="JSON", help='runs, one after the other: [{"rate": 1, "max_requests": 100}]')
    add("--axis", choices=AXES, help="what the rate of a stage is: requests per second, or streams (rate)")
    add("--seed-increment", action=argparse.BooleanOptionalAction, help="each stage has the next seed (yes)")
    add("--max-requests", type=integer, metavar="N", help="requests to send")
    add("--max-seconds", type=number, metavar="S", help="seconds during which requests become due")
    add("--max-errors", type=integer, metavar="N", help="send nothing more once so many have failed")
    add(
        "--max-error-rate",
        "--max-global-error-rate",
        type=number,
        metavar="SHARE",
        help="the same, of those that ended",
    )
    add("--output-dir", metavar="DIR", help="folder of the summary")
    add("--outputs", action="append", metavar="NAME", help="its name; .summary_json and .dual_json become .json")
    add("--output-path", metavar="PATH", help="both at once")
    add("--disable-console", "--disable-console-outputs", action="store_true", help="no progress")
    add("--disable-console-interactive", "--disable-progress", action="store_true", help="no progress bar")
    add("--progress-url", metavar="URL", help="where progress is told, by PATCH")
    add("--progress-auth", metavar="TOKEN", help="bearer token for it")
    add("--progress-ca-cert", metavar="FILE", help="certificates by which it is verified")
    add("--progress-insecure-skip-tls-verify", action="store_true", help="do not verify it")
    for flag, aliases in WITHOUT_EFFECT.items():
        add(flag, *aliases, help=argparse.SUPPRESS)
    for flag in (*REFUSED, *SEARCH, *LIMITS):
        add(flag, help=argparse.SUPPRESS)
    for flag in ("--auto-tune", *REFUSED_SWITCHES, *SEARCH_SWITCHES):
        add(flag, action="store_true", help=argparse.SUPPRESS)
    return parser


def _dest(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no JSON") from error


def _object(text: str) -> dict[str, Any]:
    found = _json(text)
    if not isinstance(found, dict):
        raise argparse.ArgumentTypeError(f"{text!r} is no JSON object")
    return found
