"""The console report of a run: its state first and last."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Literal

from loadgen.config import slo
from loadgen.config.output import parse_percentiles
from loadgen.report import load_line, run_state, sglang_block, vllm_block
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
from loadgen.report.summary_line import caveats, join_parts, state_parts, summary_line
from loadgen.util.terminal_text import PLAIN, Screen, printable, wrap

# The state line; with the latencies and what failed; with the block of vLLM or SGLang, too; all.
Form = Literal["line", "brief", "block", "full"]
WIDTHS = (60, 120)  # the least and the greatest
USUAL_WIDTH = 100  # in a file
MAX_LINES = 2  # of examples, and of advice, where requests failed
TABLE = ("ttft", "ttfo", "tpot", "icl", "e2el")  # the latencies of a short report
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


def render(
    result: RunResult, *, form: Form = "full", saved: Sequence[str] = (), screen: Screen = PLAIN
) -> str:
    """Render the console report of a result; nothing in it moves a terminal.

    Args:
        result: The result.
        form: How much of it.
        saved: The paths of the files that were written.
        screen: Where it is shown.
    """
    last = summary_line(result, screen)
    if form == "line":
        return f"{last}\n"
    first = join_parts(chain(state_parts(result), caveats(result)), screen)
    rows = [*map(printable, _rows(result, form, width(screen))), *_saved(saved)]
    return "\n".join([first, *rows, last]) + "\n"


def width(screen: Screen) -> int:
    """Return how long the lines of a report may be."""
    least, most = WIDTHS
    return USUAL_WIDTH if screen.columns is None else min(max(screen.columns, least), most)


def wrapped(lines: Iterable[str], columns: int) -> Iterator[str]:
    """Break lines between words; continuation lines are indented."""
    for line in map(printable, lines):
        yield from wrap(line, columns, " " * (len(line) - len(line.lstrip()) + 4))


def _rows(result: RunResult, form: Form, columns: int) -> Iterator[str]:
    load = [f"Load: {load_line.full_text(result)}"]
    if form != "full" and not result.numbers.completed:
        why = chain(verdict.interruptions(result), _why_failed(result))
        yield from wrapped(chain(why, load), columns)
        return
    if form != "full" and run_state.state_of(result) is not run_state.State.OK:
        yield from wrapped(_why_failed(result), columns)
    if form != "brief":
        yield ""
        yield from _block(result)
        yield ""
    if form == "full":
        yield from latencies.rows(result)
        yield from wrapped(latencies.notes(result), columns)
        yield ""
        yield from groups.tables(result)
        yield from wrapped(chain.from_iterable(lines(result) for lines in DETAILS), columns)
        yield ""
        yield from wrapped(verdict.lines(result), columns)
    else:
        named = _table_rows(result)
        yield from latencies.rows(result, named)
        yield from wrapped(latencies.marks(result, named), columns)
        yield from groups.tables(result)
        short = (verdict.interruptions, verdict.slo_lines, verdict.failed_lines)
        yield from chain.from_iterable(lines(result) for lines in short)
    yield from wrapped(load, columns)


def _block(result: RunResult) -> list[str]:
    """Write the block of vLLM, or of SGLang where the run was asked for it."""
    settings = result.provenance.settings
    if result.sglang is not None:
        longest_ms = result.latency_ms.named(meaning(settings)["itl"]).max_ms
        return list(sglang_block.block(result.flat(), longest_ms))
    selected = settings.percentile_metrics.split(",")
    percentiles = parse_percentiles(settings.metric_percentiles)
    return list(vllm_block.block(result.flat(), selected, percentiles))


def _table_rows(result: RunResult) -> list[tuple[str, str]]:
    """List the latencies on the clock of the result."""
    names = {slo.distribution(metric, result.latency_from) for metric in TABLE}
    return [(name, title) for name, title in latencies.distributions(result) if name in names]


def _why_failed(result: RunResult) -> Iterator[str]:
    """Write what the servers said of requests that failed, and what to do."""
    yield from islice(outcomes.example_lines(result, 1), MAX_LINES)
    yield from (f"    -> {advice}" for advice in islice(run_state.advice(result), MAX_LINES))


def _saved(paths: Sequence[str]) -> Iterator[str]:
    yield from (f"Saved: {printable(path)}" for path in paths)
