"""The console report: `vllm bench serve`'s block, the details, the verdict, and the summary line last."""

from collections.abc import Iterable, Iterator, Sequence

from loadgen.config.output import parse_percentiles
from loadgen.core.outcome import Outcome
from loadgen.report import (
    cache_lines,
    client_lines,
    departure_lines,
    efficiency_lines,
    group_tables,
    latency_table,
    load_line,
    request_lines,
    server_lines,
    sglang_block,
    token_lines,
    verdict_lines,
    vllm_block,
)
from loadgen.report.result import RunResult
from loadgen.report.result.numbers import meaning
from loadgen.report.result.outcomes import Example
from loadgen.report.summary_line import summary_line
from loadgen.util.terminal_text import PLAIN, Screen, printable, wrap

WIDTH = 80


def render(result: RunResult, *, saved: Sequence[str] = (), screen: Screen = PLAIN) -> str:
    """Render the console report of a result, with the paths of its files; nothing in it moves a terminal.

    Args:
        result: The result.
        saved: The paths of the files that were written.
        screen: Where it is shown.
    """
    rows = [
        *_block(result),
        "",
        *latency_table.rows(result),
        *_wrapped(latency_table.notes(result)),
        "",
        *group_tables.tables(result),
        *_wrapped(_details(result)),
        "",
        *_wrapped(verdict_lines.lines(result)),
        *(f"Saved: {path}" for path in saved),
        *_wrapped([f"Load: {load_line.full_text(result)}"]),
    ]
    return "\n".join([*map(printable, rows), summary_line(result, screen)]) + "\n"


def _block(result: RunResult) -> Iterator[str]:
    """Write the block of SGLang if the run was asked for it, else that of vLLM."""
    settings = result.provenance.settings
    if result.sglang is not None:
        return sglang_block.block(result.flat(), result.latency_ms.named(meaning(settings)["itl"]).max_ms)
    selected, percentiles = settings.percentile_metrics.split(","), parse_percentiles(settings.metric_percentiles)
    return vllm_block.block(result.flat(), selected, percentiles)


def _wrapped(lines: Iterable[str]) -> Iterator[str]:
    """Break lines between words; continuation lines are indented."""
    for line in map(printable, lines):
        yield from wrap(line, WIDTH, " " * (len(line) - len(line.lstrip()) + 4))


def _details(result: RunResult) -> Iterator[str]:
    yield from _outcomes(result)
    for part in (
        departure_lines.lines,
        request_lines.lines,
        token_lines.rows_left_out,
        token_lines.token_counts,
        token_lines.rates,
        efficiency_lines.lines,
        cache_lines.lines,
        client_lines.lines,
        server_lines.lines,
        server_lines.calls,
    ):
        yield from part(result)


def _outcomes(result: RunResult) -> Iterator[str]:
    """Write how the requests ended, where not all were ok, with examples."""
    if set(result.outcomes) != {Outcome.OK}:
        yield "Outcomes: " + (", ".join(f"{name} {count}" for name, count in result.outcomes.items()) or "none")
    for name, examples in result.examples.items():
        for example in examples:
            yield f"  {name}: {example_text(example, result)}"


def example_text(example: Example, result: RunResult) -> str:
    """Describe a request that failed, on one line."""
    to = f" to {result.targets[example.target].base_url}" if isinstance(example.target, int) else ""
    return f"request {example.index}{to}, {example.phase}: {one_line(example.detail)}"


def one_line(text: str) -> str:
    """Put a text of a server on one line of at most 160 characters."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return flat if len(flat) <= 160 else flat[:157] + "..."
