"""The console reports: what a terminal shows of a run, and of a series."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Literal

from loadgen.checks import PAST_THE_END
from loadgen.config import slo
from loadgen.document import Block, Cell, Document, Items, Line, Paragraph, line, terminal_writer
from loadgen.report import load_line, run_state
from loadgen.report.result import RunResult
from loadgen.report.result.series import Series
from loadgen.report.sections import groups, latencies, legend, next_step, outcomes, verdict
from loadgen.report.summary_line import answer
from loadgen.report.tool_block import tool_block
from loadgen.util.terminal_text import PLAIN, Screen

# The answer; with the latencies and what failed; with the block of vLLM or SGLang, too; all.
Form = Literal["line", "brief", "block", "full"]
MAX_LINES = 2  # of examples, and of advice, where requests failed


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
    if form == "line":
        return f"{terminal_writer.join_parts(answer(result).parts, screen)}\n"
    blocks = tuple(_full(result) if form == "full" else _short(result, form))
    about = load_line.full_text(result)
    if form != "brief" and result.numbers.completed:
        clock = "is" if result.latency_from == "sent" else "counts from the actual send,"
        about += f" The block {clock} over the whole run."
    document = Document(load_line.title(result), blocks, (answer(result),), about)
    return terminal_writer.report(document, screen, saved)


def render_series(
    runs: Series, *, is_brief: bool = False, saved: Sequence[str] = (), screen: Screen = PLAIN
) -> str:
    """Render the console report of a series; nothing in it moves a terminal.

    Args:
        runs: The runs.
        is_brief: Whether only the table and the answer are written.
        saved: The paths of the files that were written.
        screen: Where it is shown.
    """
    from loadgen.report.run_page import series

    return terminal_writer.report(series.short(runs, is_brief=is_brief), screen, saved)


def _full(result: RunResult) -> Iterator[Block]:
    """Write all that is known of a run: what is on its page, without charts and settings."""
    from loadgen.report.run_page import run  # has charts, which take 0.02 s to import

    yield tool_block(result)
    yield from run.sections(result, has_charts=False)


def _short(result: RunResult, form: Form) -> Iterator[Block]:
    interruptions = list(map(line, verdict.interruptions(result)))
    if not result.numbers.completed:
        yield from _items(chain(interruptions, _why_failed(result)))
        return
    if run_state.state_of(result) is not run_state.State.OK:
        yield from _items(_why_failed(result))
    titles = {
        slo.distribution(of, result.latency_from): latencies.MAIN[of] for of in latencies.MAIN
    }
    named = [(name, titles[name]) for name, _ in latencies.distributions(result) if name in titles]
    if form == "brief":  # the headers of the block say it, too
        yield Paragraph.of(legend({name.partition("_")[0] for name, _ in named}))
    else:
        yield tool_block(result)
    yield latencies.table(result, named)
    yield from map(Paragraph.of, latencies.marks(result, named))
    yield from groups.blocks(result, groups.MAX_TURNS)
    limits = map(line, verdict.slo_lines(result))
    checks = verdict.failed(result, said=next_step.after_run(result))
    yield from _items(chain(interruptions, limits, checks))


def _items(items: Iterable[Line | Cell]) -> Iterator[Items]:
    """Write a list; nothing where it has no items."""
    if shown := tuple(items):
        yield Items(shown)


def _why_failed(result: RunResult) -> Iterator[Cell]:
    """Write what else is wrong, what the servers said of requests that failed, and what to do as
    far as the next step does not say it.
    """
    said = next_step.after_run(result)
    told = next_step.PROBLEMS.get(run_state.state_of(result), (PAST_THE_END,))
    for check in result.checks:
        if check.name in told and check.ok is False:
            yield verdict.finding_cell(check, said)
    examples = list(islice(outcomes.examples(result, 1), MAX_LINES))
    advice = [next_step.advice_on(name) for name, _ in examples]
    for (_, example), text, following in zip(examples, advice, [*advice[1:], ""], strict=False):
        yield (example, *(verdict.advice_lines(text, said) if text != following else ()))
