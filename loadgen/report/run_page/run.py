"""Run: the page of one result, from top to bottom."""

from collections.abc import Iterator

from loadgen.config.data import TRACE
from loadgen.report.html import Block, Heading, Paragraph, line
from loadgen.report.result import RunResult
from loadgen.report.result.numbers import RunNumbers
from loadgen.report.run_page import client, distributions, numbers, outcomes, over_time, reproduce, server, verdict
from loadgen.report.series import in_unit
from loadgen.util.number_format import plural


def title(result: RunResult) -> str:
    """Name the model and the load."""
    return f"{result.numbers.model_id}: {load(result)}"


def date(numbers: RunNumbers) -> str:
    """Write when a run began, by the clock of its machine."""
    day, _, time = numbers.date.partition("-")
    return f"{day[:4]}-{day[4:6]}-{day[6:]} {time[:2]}:{time[2:4]}:{time[4:]}"


def load(result: RunResult) -> str:
    """Describe the load in a few words."""
    settings, rate = result.provenance.settings, result.numbers.request_rate
    cap = result.numbers.max_concurrency
    beside = f", at most {cap} in flight" if cap is not None else ""
    if settings.ramp_up_strategy is not None:
        return f"{settings.ramp_up_start_rps:g} to {settings.ramp_up_end_rps:g} requests/s{beside}"
    if settings.dataset_name == TRACE:
        return f"a trace{beside}"
    if rate == "inf":
        return f"{plural(cap, 'request')} in flight" if cap is not None else "all requests at once"
    return f"{in_unit(rate, 'rate')}{beside}"


def blocks(result: RunResult) -> Iterator[Block]:
    """Write verdict, numbers, charts, and where they come from."""
    yield Paragraph(line(_heading(result)))
    yield from verdict.blocks(result)
    yield numbers.headline(result)
    yield from numbers.rates_and_limits(result)
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
