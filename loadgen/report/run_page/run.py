"""Run: the page of one result, from top to bottom."""

from collections.abc import Iterator

from loadgen.report import load_line
from loadgen.report.html import Block, Heading, Paragraph, Span, Tone, line
from loadgen.report.result import RunResult
from loadgen.report.result.numbers import RunNumbers
from loadgen.report.run_page import (
    badge,
    client,
    distributions,
    in_flight,
    numbers,
    outcomes,
    over_time,
    reproduce,
    server,
    verdict,
)


def title(result: RunResult) -> str:
    """Name the model and the load."""
    return f"{result.numbers.model_id}: {load_line.in_words(result)}"


def date(numbers: RunNumbers) -> str:
    """Write when a run began, by the clock of its machine."""
    day, _, time = numbers.date.partition("-")
    return f"{day[:4]}-{day[4:6]}-{day[6:]} {time[:2]}:{time[2:4]}:{time[4:]}"


def blocks(result: RunResult) -> Iterator[Block]:
    """Write the answer first, then its reasons, the details, and where the numbers come from."""
    shown = badge.badge(result)
    yield Paragraph(line(load_line.in_a_line(result)))
    yield Paragraph(line(Span(_heading(result), Tone.QUIET)))
    yield shown
    yield numbers.headline(result)
    if (drawing := in_flight.drawing(result)) is not None:
        yield drawing
    yield from numbers.rates_and_limits(result)
    yield from verdict.blocks(result, shown.kind)
    yield Heading(2, "Latencies")
    yield from numbers.latencies(result)
    if (drawing := distributions.drawing(result)) is not None:
        yield drawing
    yield Heading(2, "Over time")
    yield from over_time.blocks(result)
    yield Heading(2, "Requests")
    yield from outcomes.requests(result)
    yield Heading(2, "Tokens")
    yield from outcomes.tokens(result)
    yield Heading(2, "The server")
    yield from server.blocks(result)
    yield Heading(2, "The client")
    yield from client.blocks(result)
    yield Heading(2, "Run it again")
    yield from reproduce.again(result.provenance)
    yield Heading(2, "Where it comes from")
    yield from reproduce.settings(result.provenance)
    yield outcomes.printed(result)


def _heading(result: RunResult) -> str:
    numbers, provenance = result.numbers, result.provenance
    urls = provenance.settings.base_url
    where = " and ".join(urls) if isinstance(urls, tuple) else urls
    parts = [date(numbers), f"loadgen {provenance.versions.loadgen or 'of an unknown version'}"]
    parts += [f"labelled {numbers.label}"] if numbers.label else []
    parts += [f"at {where}"] if where else []
    return ", ".join(parts) + "."
