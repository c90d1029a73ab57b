"""`loadgen search`: the highest request rate, or concurrency, at which a server meets an SLO."""

import argparse
import math
from typing import Any

from loadgen.cli import credentials, flags, run_settings
from loadgen.cli.import_guard import single_threaded
from loadgen.config.data import TRACE
from loadgen.config.load import SWEPT
from loadgen.config.option import flag
from loadgen.errors import BadInput
from loadgen.util import log_setup

TEXT = (
    "Look for the highest request rate, or concurrency, at which a server meets the SLO that --slo says, with one run "
    "after another. With no server named, loadgen's own simulator is measured."
)


def main(argv: list[str]) -> int:
    """Carry out the command; returns its exit code."""
    given = flags.run_settings(argv, parser)
    over, plot = given.pop("over", "rate"), given.pop("plot", None)
    chosen = run_settings.chosen(given)
    check(chosen, over)
    asked = run_settings.settings(given)
    if asked.dataset_name == TRACE:
        problem = "a trace says when each request is due, and a search looks for that"
        raise BadInput("--dataset-name", problem, "name another data set")
    rate = asked.request_rate if math.isfinite(asked.request_rate) else 1.0  # --duration is that of runs at some rate
    asked.replace(request_rate=rate).checked()
    log_setup.to_stderr(asked.log_level)
    credentials.warn_of_visible(given)
    with single_threaded():
        from loadgen.cli.search_runs import Search

        search = Search(asked, over, chosen, plot)
    return search.carried_out()


def parser(tool: str | None) -> argparse.ArgumentParser:
    """The flags of `loadgen run`, those of a tool among them, and --over."""
    made = flags.run_parser(tool, "loadgen search", TEXT)
    made.add_argument("--over", choices=("rate", "concurrency"), help="what is looked for (rate)")
    return made


def check(chosen: dict[str, Any], over: str) -> None:
    """Refuse what a search decides for itself.

    Args:
        chosen: The settings that are given, other than by a workload.
        over: rate or concurrency.

    Raises:
        BadInput: The first that is given.
    """
    if not chosen.get("slo"):
        raise BadInput("--slo", "missing", 'say what is to be met, as "ttft_p99<500ms,tpot_p99<50ms,error_rate<1%"')
    for name in SWEPT:
        if isinstance(chosen.get(name), tuple):
            raise BadInput(flag(name), "is several, and a search finds them itself", "give the one to begin with")
    for name in ("ramp_up_strategy", "ramp_up_start_rps", "ramp_up_end_rps"):
        if chosen.get(name) is not None:
            raise BadInput(flag(name), "given for a search, whose runs are each at one level", "leave it out")
    if "max_error_rate" in chosen:
        raise BadInput("--max-error-rate", "given for a search, which its --slo judges", "write error_rate<1% there")
    if over == "concurrency" and math.isfinite(chosen.get("request_rate", math.inf)):
        raise BadInput("--request-rate", "given beside --over concurrency", "leave one of the two out")
    if chosen.get("duration") is not None and over == "concurrency":
        problem = "given beside --over concurrency, where a run has a number of requests"
        raise BadInput("--duration", problem, "leave it out, or give --num-prompts")
    if chosen.get("duration") is not None and chosen.get("num_prompts") is not None:
        raise BadInput("--duration", "given beside --num-prompts: a run has the one or the other", "leave one out")
