"""`loadgen search`: find the highest request rate, or concurrency, at which a server meets an SLO."""

import math
from typing import Any

from loadgen.cli import compat, credentials, flags, run_settings
from loadgen.cli.import_guard import single_threaded
from loadgen.cli.topic_parser import TopicParser
from loadgen.config.data import TRACE
from loadgen.config.load import SWEPT
from loadgen.config.option import flag
from loadgen.errors import BadInput
from loadgen.util import log_setup

TEXT = (
    "Find the highest request rate, or concurrency, at which a server meets the limits of --slo, by a series of runs. "
    "If no server is named, loadgen's own simulator is measured."
)
MAIN_FLAGS = (
    *("--slo", "--over", "--base-url", "--rate", "--duration"),
    *("--random-input-len", "--random-output-len", "--html"),
)
EXAMPLES = (
    'loadgen search --base-url http://host:8000 --slo "ttft_p99<500ms"',
    'loadgen search --base-url http://host:8000 --slo "ttft_p90<1s,tpot_mean<50ms"',
    'loadgen search --over concurrency --slo "e2el_p95<10s" --html search.html',
)
RAMP = ("ramp_up_strategy", "ramp_up_start_rps", "ramp_up_end_rps")
# Help texts of flags that mean something else in a search; None: the search sets it itself.
TEXTS = {
    "plot": "draw the results as SVG",
    "request_rate": "first rate to try, requests per second; without it, a first run sends all its requests at once",
    "max_concurrency": "maximum requests in flight; with --over concurrency, the first level to try (16)",
    "num_prompts": "requests of each run, more where requests take long; by default as many as --slo needs",
    "duration": "length of each run, such as 30s; longer where --slo needs more requests",
    "max_error_rate": None,
    **dict.fromkeys(RAMP),
}


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code."""
    given = flags.run_settings(argv, parser)
    with compat.flags_as_written(given):
        return find(given)


def find(given: dict[str, Any]) -> int:
    """Execute the search that these settings ask for; returns the exit code.

    Args:
        given: What the flags give, by the names of settings.
    """
    over, plot = given.pop("over", "rate"), given.pop("plot", None)
    chosen = run_settings.chosen(given)
    check(chosen, over)
    requested = run_settings.settings(given)
    if requested.junit is not None:
        raise BadInput("--junit", "is for single runs: those of a search are meant to miss the limits", "leave it out")
    if requested.dataset_name == TRACE:
        problem = "a trace sets its own request rate, which a search must vary"
        raise BadInput("--dataset-name", problem, "choose another data set")
    if requested.random_batch_size > 1:
        problem = "makes --num-prompts a number of texts, and a search chooses numbers of requests"
        raise BadInput("--random-batch-size", problem, "leave it out, or measure rates with `loadgen run --rate 1,2,4`")
    rate = requested.request_rate if math.isfinite(requested.request_rate) else 1.0  # a --duration needs a finite rate
    from loadgen.workload import endpoints

    endpoints.checked(requested.replace(request_rate=rate))
    log_setup.to_stderr(requested.log_level)
    credentials.warn_of_visible(given)
    with single_threaded():
        from loadgen.cli.runs.load_search import LoadSearch

        search = LoadSearch(requested, over, chosen, plot)
    return search.execute()


def parser(tool: str | None = None) -> TopicParser:
    """Return a parser for --over, the flags of `loadgen run`, and those of the tool of --compat."""
    flag_parser = TopicParser("loadgen search", TEXT, main_flags=MAIN_FLAGS, examples=EXAMPLES)
    flag_parser.add_argument("--over", choices=("rate", "concurrency"), help="what to vary (rate)")
    flags.add_run_flags(flag_parser, tool)
    for name, text in TEXTS.items():
        flag_parser.describe(name, text)
    return flag_parser


def check(chosen: dict[str, Any], over: str) -> None:
    """Check that no flag contradicts a search.

    Args:
        chosen: The settings from flags and the config file, without the workload's.
        over: rate or concurrency.

    Raises:
        BadInput: --slo is missing, or a flag sets what the search itself varies.
    """
    if not chosen.get("slo"):
        raise BadInput(
            "--slo", "missing", 'give the limits to meet, for example "ttft_p99<500ms,tpot_p99<50ms,error_rate<1%"'
        )
    for name in SWEPT:
        if isinstance(chosen.get(name), tuple):
            raise BadInput(flag(name), "takes one value in a search", "give the first one to try")
    for name in RAMP:
        if chosen.get(name) is not None:
            raise BadInput(flag(name), "does not apply to a search: each run has a constant load", "leave it out")
    if "max_error_rate" in chosen:
        raise BadInput(
            "--max-error-rate", "does not apply to a search: --slo sets the limit", "add error_rate<1% to --slo"
        )
    if over == "concurrency" and math.isfinite(chosen.get("request_rate", math.inf)):
        raise BadInput("--request-rate", "cannot be combined with --over concurrency", "leave one of the two out")
    if chosen.get("duration") is not None and over == "concurrency":
        problem = "cannot be combined with --over concurrency, where the number of requests ends a run"
        raise BadInput("--duration", problem, "leave it out, or give --num-prompts")
    if chosen.get("duration") is not None and chosen.get("num_prompts") is not None:
        raise BadInput("--duration", "cannot be combined with --num-prompts in a search", "leave one of the two out")
