"""Series: what the page of several runs at one server says: what they came to, and each of them."""

from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from loadgen.report import series
from loadgen.report.html import (
    Block,
    Drawing,
    Heading,
    Items,
    Line,
    Note,
    Paragraph,
    Span,
    Table,
    Tone,
    cell,
    line,
    prose,
)
from loadgen.report.run_page import run
from loadgen.report.run_page.load_curve import curve
from loadgen.util.number_format import plural

NAMES = [f"{name.partition('_')[0].upper()} {name.partition('_')[2]}" for name in series.SHOWN]


def title(data: Mapping[str, Any]) -> str:
    """Who was asked, and over what."""
    model = data["points"][0]["result"]["model_id"] if data["points"] else "no run"
    return f"{model}: {series.title(dict(data)).lower()}"


def date(data: Mapping[str, Any]) -> str:
    """When its first run began."""
    return run.date(data["points"][0]["result"]) if data["points"] else ""


def blocks(data: Mapping[str, Any]) -> Iterator[Block]:
    """What the runs come to, their table and picture, and what is to be known of each.

    Args:
        data: As it is saved.
    """
    whole = dict(data)
    runs = plural(len(data["points"]), "run")
    yield Paragraph(line(f"{date(data)}, {runs} at the same server."))
    for banner in series.banners(whole):
        yield Note("warning", banner, ())
    if said := [prose(each.strip()) for each in series.conclusions(whole)]:
        yield Note("info", "What they come to", (Items(tuple(said)),))
    heads, rows = series.table(whole)
    heads[4 : 4 + len(NAMES)] = NAMES
    yield Paragraph(line(f"Latencies are in ms, from {data['latency_from']}. {series.OF_FEW}."))
    yield _table(heads, rows)
    if (chart := curve(data)) is not None:
        yield Heading(2, "Throughput against latency")
        yield Drawing("curve", chart)
    yield Heading(2, "The runs")
    yield Table((data["over"], "verdict", "why", "kept in"), tuple(map(_run, data["points"])))


def _table(heads: list[str], rows: list[list[str]]) -> Table:
    """The table of the console, with its words in front: they are to be seen wherever there is no room for all."""
    words = heads.index("verdict")
    head, *cells = ([row[0], *row[words:], *row[1:words]] for row in (heads, *rows))
    told = tuple(tuple(cell(each.strip()) for each in row) for row in cells)
    return Table(tuple(map(str.strip, head)), told, words=1 + len(heads) - words)


def _run(point: Mapping[str, Any]) -> tuple[Any, ...]:
    """A run in the order in which they ran: its verdict with the reasons, and its files."""
    verdict = Span(point["verdict"], Tone.PLAIN if point["verdict"] == "VALID" else Tone.BAD)
    reasons = point["result"]["loadgen"]["reasons"]
    return cell(series.named(point["level"])), cell(verdict), cell(*reasons), cell(*map(_file, point["saved"]))


def _file(path: str) -> Line:
    """A page of a run stands beside this one, wherever both are."""
    name = PurePath(path).name
    return line(Span(name, link=name) if name.endswith(".html") else Span(path, Tone.CODE))
