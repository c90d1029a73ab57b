"""Page: results as one page of HTML that needs no other file; a pure function of them as they are saved."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from loadgen.report import html as pages
from loadgen.report.html import Block, Document, Heading, Table, cell
from loadgen.report.run_page import run, series
from loadgen.report.series import is_series
from loadgen.util.number_format import four_digits, plural


def html(results: Sequence[Mapping[str, Any]]) -> str:
    """The page of a result, of a series, or of several.

    Args:
        results: One at least, as they are read again from a file.
    """
    return pages.html(document(results))


def document(results: Sequence[Mapping[str, Any]]) -> Document:
    """What the page says; of several results each in a part of its own, below a table of them all."""
    if len(results) == 1:
        return Document(_title(results[0]), tuple(_blocks(results[0])))
    blocks: list[Block] = [_table(results)]
    for number, each in enumerate(results, 1):
        blocks.append(Heading(2, f"{number}. {_title(each)}"))
        blocks += [replace(one, level=one.level + 1) if isinstance(one, Heading) else one for one in _blocks(each)]
    return Document(f"{len(results)} results", tuple(blocks))


def _title(result: Mapping[str, Any]) -> str:
    return series.title(result) if is_series(result) else run.title(result)


def _blocks(result: Mapping[str, Any]) -> Iterator[Block]:
    return series.blocks(result) if is_series(result) else run.blocks(result)


def _table(results: Sequence[Mapping[str, Any]]) -> Table:
    head = ("", "result", "date", "verdict", "req/s", "tok/s", "mean TTFT (ms)", "mean TPOT (ms)")
    rows = []
    for number, each in enumerate(results, 1):
        if is_series(each):
            said = [series.date(each), plural(len(each["points"]), "run"), *[""] * 4]
        else:
            names = ("request_throughput", "output_throughput", "mean_ttft_ms", "mean_tpot_ms")
            numbers = [four_digits(each[name]) for name in names]
            said = [run.date(each), each["loadgen"]["verdict"], *numbers]
        rows.append(tuple(map(cell, (str(number), _title(each), *said))))
    return Table(head, tuple(rows), words=4)
