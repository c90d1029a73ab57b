"""`loadgen search`: find the highest request rate, or concurrency, at which a server meets an
SLO.
"""

from typing import Any

from loadgen.analysis.search import search_check
from loadgen.cli import flags, run_settings
from loadgen.cli.compat.tool_flags import places
from loadgen.cli.import_guard import single_threaded
from loadgen.cli.topic_parser import TopicParser
from loadgen.config.load import AXES
from loadgen.config.option import EVERYDAY, FIRST
from loadgen.errors import written_as
from loadgen.util import terminal_text

TEXT = "Find the highest request rate, or concurrency, that meets the limits of --slo."
EXAMPLES = ('loadgen search --base-url http://host:8000 --slo "ttft_p90<1s,tpot_mean<50ms"',)
# Help texts of flags that mean something else in a search; None: the search sets it itself.
TEXTS = {
    "plot": "draw the results as SVG",
    "request_rate": "first rate to try, requests per second; without it, a first run sends all "
    "its requests at once",
    "max_concurrency": "maximum requests in flight; with --over concurrency, the first level to "
    "try (16)",
    "num_prompts": "requests of each run, more if requests take long; by default as many as "
    "--slo needs",
    "duration": "length of each run, such as 30s; longer if --slo needs more requests",
    "max_error_rate": None,
    **dict.fromkeys(search_check.OF_SINGLE_RUNS),
}


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code."""
    flag_values = flags.run_settings(argv, parser)
    with written_as(places(flag_values)):
        return find(flag_values)


def find(flag_values: dict[str, Any]) -> int:
    """Execute the search that these settings ask for; returns the exit code.

    Args:
        flag_values: What the flags give, by the names of settings.
    """
    over, plot = flag_values.pop("over", "rate"), flag_values.pop("plot", None)
    chosen = run_settings.chosen(flag_values)
    search_check.check_chosen(chosen, over)
    requested = run_settings.settings(flag_values)
    search_check.check_requested(requested)
    terminal_text.log_to_stderr(requested.log_level)
    run_settings.warn_of_visible(flag_values)
    with single_threaded():
        from loadgen.cli.runs.run_series import SearchSeries

        search = SearchSeries(requested, over, chosen, plot)
    return search.execute()


def parser(tool: str | None = None) -> TopicParser:
    """Return a parser for --over, the flags of `loadgen run`, and those of the tool of --compat."""
    needed = "--base-url URL --slo LIMITS"
    flag_parser = TopicParser("loadgen search", needed, TEXT, examples=EXAMPLES)
    flag_parser.add_argument("--over", choices=AXES, help="what to vary (rate)")
    flags.add_run_flags(flag_parser, tool)
    flag_parser.tiers |= {"over": FIRST, "num_prompts": EVERYDAY}
    for name, text in TEXTS.items():
        flag_parser.describe(name, text)
    return flag_parser
