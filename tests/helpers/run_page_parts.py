"""Parts of the HTML page of results: its texts, blocks, charts, curves and tables."""

from typing import Any

from loadgen.document import Block, Drawing, Items, Line, Note, Table
from loadgen.document.charts.chart import Chart, Curve
from tests.helpers.html_page import Page
from tests.helpers.saved_json import document, html


def texts(*results: dict[str, Any]) -> list[str]:
    """Return the pieces of text of the HTML page of results."""
    return [text for _, text in Page(html(results)).texts]


def has(text: str, *results: dict[str, Any]) -> bool:
    """Tell whether a piece of text of the page contains `text`."""
    return any(text in each for each in texts(*results))


def blocks(*results: dict[str, Any]) -> list[Block]:
    """Return all blocks of the document of results."""
    return list(document(results).all_blocks)


def charts(result: dict[str, Any]) -> dict[str, Chart]:
    """Return the charts of the page by name."""
    return {block.name: block.chart for block in blocks(result) if isinstance(block, Drawing)}


def curves(chart: Chart) -> dict[str, Curve]:
    """Return the curves of a chart by name."""
    return {
        mark.name: mark for panel in chart.panels for mark in panel.marks if isinstance(mark, Curve)
    }


def tables(result: dict[str, Any]) -> dict[str, Table]:
    """Return the tables of the page by their first heading."""
    return {block.head[0]: block for block in blocks(result) if isinstance(block, Table)}


def rows(table: Table) -> dict[str, list[str]]:
    """Return the texts of the cells of each row by the text of its first cell."""
    said = [["; ".join(map(words, cell)) for cell in row] for row in table.rows]
    return {first: rest for first, *rest in said}


def listed(items: Items) -> list[str]:
    """Return the texts of the lines of all items of a list."""
    return [words(line) for cell in items.cells for line in cell]


def words(line: Line) -> str:
    """Return the text of a line."""
    return "".join(span.text for span in line)


def folds(result: dict[str, Any]) -> dict[str, Note]:
    """Return the folded notes by their titles."""
    return {
        block.title: block for block in blocks(result) if isinstance(block, Note) and block.folded
    }
