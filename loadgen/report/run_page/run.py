"""Run: what the page of one result says, from above."""

from collections.abc import Iterator, Mapping
from typing import Any

from loadgen.config.data import TRACE
from loadgen.report.html import Block, Heading, Paragraph, line
from loadgen.report.run_page import client, distributions, numbers, outcomes, over_time, reproduce, server, verdict
from loadgen.report.series import in_unit
from loadgen.util.number_format import plural


def title(result: Mapping[str, Any]) -> str:
    """Who was asked, and how much."""
    return f"{result['model_id']}: {load(result)}"


def date(result: Mapping[str, Any]) -> str:
    """When it began, by the clock of its machine."""
    day, _, time = result["date"].partition("-")
    return f"{day[:4]}-{day[4:6]}-{day[6:]} {time[:2]}:{time[2:4]}:{time[4:]}"


def load(result: Mapping[str, Any]) -> str:
    """How many requests it sent when, in a few words."""
    settings = result["loadgen"]["provenance"]["settings"]
    cap = result["max_concurrency"]
    beside = f", at most {cap} in flight" if cap is not None else ""
    if settings["ramp_up_strategy"] is not None:
        return f"{settings['ramp_up_start_rps']:g} to {settings['ramp_up_end_rps']:g} requests/s{beside}"
    if settings["dataset_name"] == TRACE:
        return f"a trace{beside}"
    if result["request_rate"] == "inf":
        return f"{plural(cap, 'request')} in flight" if cap is not None else "all requests at once"
    return f"{in_unit(result['request_rate'], 'rate')}{beside}"


def blocks(result: Mapping[str, Any]) -> Iterator[Block]:
    """Verdict, numbers, charts, and where they come from.

    Args:
        result: As it is saved.
    """
    whole = dict(result)
    own, provenance = whole["loadgen"], whole["loadgen"]["provenance"]
    yield Paragraph(line(_heading(result)))
    yield from verdict.blocks(result)
    yield numbers.headline(result)
    yield from numbers.demanded(own)
    yield Heading(2, "Latencies")
    yield from numbers.latencies(own)
    if (drawing := distributions.drawing(own)) is not None:
        yield drawing
    yield Heading(2, "Over time")
    yield from over_time.blocks(own)
    yield Heading(2, "Requests")
    yield from outcomes.requests(whole)
    yield Heading(2, "Tokens")
    yield from outcomes.tokens(own)
    yield Heading(2, "The server")
    yield from server.blocks(own)
    yield Heading(2, "The client")
    yield from client.blocks(own)
    yield Heading(2, "Run it again")
    yield from reproduce.again(provenance)
    yield Heading(2, "Where it comes from")
    yield from reproduce.settings(provenance)
    yield outcomes.printed(whole)


def _heading(result: Mapping[str, Any]) -> str:
    provenance = result["loadgen"]["provenance"]
    settings = provenance["settings"]
    urls = settings["base_url"]
    where = " and ".join(urls) if isinstance(urls, list) else urls
    parts = [date(result), f"loadgen {provenance['versions'].get('loadgen') or 'of an unknown version'}"]
    parts += [f"labelled {result['label']}"] if result["label"] else []
    parts += [f"at {where}"] if where else []
    return ", ".join(parts) + "."
