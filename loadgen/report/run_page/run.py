"""Run: the page of one result, from top to bottom."""

from collections.abc import Iterator

from loadgen.report import load_line
from loadgen.report.html import Block, Heading, Paragraph, Span, Tone
from loadgen.report.result import RunResult
from loadgen.report.result.numbers import RunNumbers
from loadgen.report.run_page import (
    badge,
    client,
    distributions,
    groups,
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
    return f"{result.numbers.model_id}: {load_line.text_of_settings(result.provenance.settings)}"


def date(numbers: RunNumbers) -> str:
    """Write when a run began, by the clock of its machine."""
    day, _, time = numbers.date.partition("-")
    return f"{day[:4]}-{day[4:6]}-{day[6:]} {time[:2]}:{time[2:4]}:{time[4:]}"


def target_urls(result: RunResult) -> str:
    """Name the servers by their URLs; empty if none is known."""
    urls = result.provenance.settings.base_url or ""
    return " and ".join(urls) if isinstance(urls, tuple) else urls


def loadgen_version(result: RunResult) -> str:
    """Name the version of loadgen that measured."""
    return f"loadgen {result.provenance.versions.loadgen or 'of an unknown version'}"


def blocks(result: RunResult) -> Iterator[Block]:
    """Write the answer first, then its reasons, the details, and where the numbers come from."""
    shown = badge.badge(result)
    yield Paragraph.of(load_line.full_text(result))
    yield Paragraph.of(Span(_heading(result), Tone.QUIET))
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
    yield from groups.blocks(result)
    yield Heading(2, "Requests")
    yield from outcomes.requests(result)
    yield Heading(2, "Tokens")
    yield from outcomes.tokens(result)
    yield Heading(2, "The server")
    yield from server.blocks(result)
    yield Heading(2, "The client")
    yield from client.blocks(result)
    yield Heading(2, "Run it again")
    yield from reproduce.command_block(result.provenance)
    yield Heading(2, "Where it comes from")
    yield from reproduce.provenance_tables(result.provenance)
    yield outcomes.console_report(result)


def _heading(result: RunResult) -> str:
    label, urls = result.numbers.label, target_urls(result)
    parts = [date(result.numbers), loadgen_version(result)]
    parts += [f"labelled {label}"] if label else []
    parts += [f"at {urls}"] if urls else []
    return ", ".join(parts) + "."
