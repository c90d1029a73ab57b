"""Outcomes: how the requests ended, with examples of those that failed, and the token counts."""

from collections.abc import Iterator

from loadgen.core.outcome import Outcome
from loadgen.report import console, departure_lines, token_lines
from loadgen.report.html import Block, Code, Items, Note, Paragraph, Span, Table, Tone, line
from loadgen.report.result import RunResult
from loadgen.util.number_format import percent


def requests(result: RunResult) -> Iterator[Block]:
    """Write how many requests had each outcome, with examples of those that failed."""
    if result.outcomes:
        rows = []
        for name, count in result.outcomes.items():
            outcome = Span(name, about=Outcome(name.partition("(")[0]).about)
            rows.append((outcome, str(count), percent(count / result.scheduled if result.scheduled else None, 2)))
        yield Table.of(("outcome", "requests", "share"), rows, text_columns=1)
        examples = [(name, one) for name, found in result.examples.items() for one in found]
        if examples:
            texts = ((Span(name, Tone.STRONG), f": {console.example_text(one, result)}") for name, one in examples)
            yield Items(tuple(line(*parts) for parts in texts))
    else:
        yield Paragraph.of("No request has ended.")
    if departures := list(departure_lines.lines(result)):
        yield Items.of(departures)
    if result.finish_reasons:
        reasons = ", ".join(f"{name or 'none'} {count}" for name, count in result.finish_reasons.items())
        yield Paragraph.of(f"Finish reasons of those that are ok: {reasons}.")
    if result.early_stops:
        reasons = ", ".join(f"{name} {count}" for name, count in result.early_stops.items())
        yield Paragraph.of(f"Of the requests with fewer output tokens than requested: {reasons}.")


def tokens(result: RunResult) -> Iterator[Block]:
    """Write the tokens that were planned, counted and streamed, and how they differ."""
    counted = result.tokens
    rows = {
        "input, as the data set planned it": counted.planned_input_tokens,
        "input, as the server was expected to count it": counted.predicted_server_input_tokens,
        "input, as it was counted": None if counted.unknown_input else counted.input_tokens,
        "of that, from the server's prefix cache": counted.cached_tokens if counted.cached_counted else None,
        "output, as it was asked for": counted.planned_output_tokens,
        f"output, counted by {counted.output_counted_by}": counted.output_tokens,
        "events with tokens": counted.token_events,
        "events with tokens of failed requests, not counted above": counted.lost_token_events or None,
    }
    shown = ((what, f"{count}") for what, count in rows.items() if count is not None)
    yield Table.of(("of requests that are ok", "tokens"), shown, text_columns=1)
    if differences := list(token_lines.count_differences(result)):
        yield Items.of(differences)


def console_report(result: RunResult) -> Note:
    """Quote the report as the console has it."""
    text = "\n".join(row.rstrip() for row in console.render(result).splitlines())
    return Note("note", "The report as it was printed on the console", (Code(text),), folded=True)
