"""The console report: `vllm bench serve`'s block, the details, the verdict, and the summary line
last.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from loadgen.config.output import parse_percentiles
from loadgen.report import load_line, sglang_block, vllm_block
from loadgen.report.result import RunResult
from loadgen.report.result.numbers import meaning
from loadgen.report.sections import (
    client,
    groups,
    latencies,
    outcomes,
    server,
    tokens,
    user_behavior,
    verdict,
)
from loadgen.report.summary_line import summary_line
from loadgen.util.terminal_text import PLAIN, Screen, printable, wrap

WIDTH = 80
DETAILS = (
    outcomes.lines,
    outcomes.end_lines,
    user_behavior.lines,
    outcomes.body_lines,
    tokens.rows_left_out,
    tokens.token_counts,
    tokens.rates,
    tokens.efficiency,
    server.cache_lines,
    client.lines,
    server.metric_lines,
    server.call_lines,
)


def render(result: RunResult, *, saved: Sequence[str] = (), screen: Screen = PLAIN) -> str:
    """Render the console report of a result, with the paths of its files; nothing in it moves a
    terminal.

    Args:
        result: The result.
        saved: The paths of the files that were written.
        screen: Where it is shown.
    """
    settings = result.provenance.settings
    if result.sglang is not None:  # the run was asked for SGLang's block
        block = sglang_block.block(
            result.flat(), result.latency_ms.named(meaning(settings)["itl"]).max_ms
        )
    else:
        selected = settings.percentile_metrics.split(",")
        percentiles = parse_percentiles(settings.metric_percentiles)
        block = vllm_block.block(result.flat(), selected, percentiles)
    rows = [
        *block,
        "",
        *latencies.rows(result),
        *_wrapped(latencies.notes(result)),
        "",
        *groups.tables(result),
        *_wrapped(chain.from_iterable(lines(result) for lines in DETAILS)),
        "",
        *_wrapped(verdict.lines(result)),
        *(f"Saved: {path}" for path in saved),
        *_wrapped([f"Load: {load_line.full_text(result)}"]),
    ]
    return "\n".join([*map(printable, rows), summary_line(result, screen)]) + "\n"


def _wrapped(lines: Iterable[str]) -> Iterator[str]:
    """Break lines between words; continuation lines are indented."""
    for line in map(printable, lines):
        yield from wrap(line, WIDTH, " " * (len(line) - len(line.lstrip()) + 4))
