"""Results that a table prints: one in each row or each column, if the others name numbers."""

import re
from collections.abc import Callable, Iterator

from loadgen.lab.audit.finding import Place
from loadgen.lab.audit.number import UNKNOWN, Number
from loadgen.lab.audit.published import Published
from loadgen.lab.audit.table import Cell, Table, cell

STATISTIC = r"mean|average|avg\.?|median|p\d\d(?:\.\d+)?"
LATENCY = re.compile(
    rf"(?i)(?:({STATISTIC}) )?(ttft|tpot|itl|e2el|e2e latency)(?: ({STATISTIC}))?"
    r" ?[(\[](ms|s|sec)[)\]]"
)
STATISTICS = {"average": "mean", "avg": "mean", "avg.": "mean"}
RATE = re.compile(
    r"(?i)(request|req|output(?: token)?|total(?: token)?|tput) ?(?:throughput|tput|tps)? ?"
    r"[(\[](req|requests|tok|tokens)/s(?:ec)?[)\]]"
)
COUNTS = {
    "max concurrency": "cap",
    "maximum concurrency": "cap",
    "successful requests": "ok",
    "success": "ok",
    "success / total": "ok",
    "duration (s)": "duration_s",
    "benchmark duration (s)": "duration_s",
}
MIN_NAMED = 2  # a table with fewer numbers that are known has nothing to compare


def measured(table: Table, place: Callable[[int], Place]) -> Iterator[Published]:
    """Every result of a table; none where it names no numbers of a result.

    Args:
        table: The table.
        place: What says where an offset of the page lies.
    """
    by_column = [_named(title) for title in (table.corner, *table.columns)]
    by_row = [_named(row.name) for row in table.rows]
    lines: list[tuple[str, list[str], tuple[Cell, ...]]] = []
    if len(list(filter(None, by_column))) >= MIN_NAMED:
        lines = [(row.name, by_column, (cell(row.name, row.at), *row.cells)) for row in table.rows]
    elif len(list(filter(None, by_row))) >= MIN_NAMED:
        columns = zip(*(row.cells for row in table.rows), strict=False)
        lines = [
            (title, by_row, column) for title, column in zip(table.columns, columns, strict=False)
        ]
    for title, names, cells in lines:
        numbers: dict[str, Number] = {}
        places: dict[str, Place] = {}
        for name, printed in zip(names, cells, strict=False):
            number, at = _number(printed)
            if name and number:
                exact = name in ("ok", "cap")
                scale = 1000 if name.endswith(" s") else 1
                label = name.removesuffix(" s")
                numbers[label] = Number.exact(number.value) if exact else number * scale
                places[label] = place(at)
        if len(numbers) >= MIN_NAMED:
            yield Published(numbers, places, next(iter(places.values())), title)


def _named(title: str) -> str:
    """The number that a column or row has, as `Published` calls it; " s" behind it: in seconds."""
    text = " ".join(title.replace("*", "").replace("`", "").split())
    if match := LATENCY.fullmatch(text):
        statistic = (match[1] or match[3] or "mean").lower()
        metric = match[2].lower().replace("e2e latency", "e2el")
        unit = "" if match[4].lower() == "ms" else " s"
        return f"{STATISTICS.get(statistic, statistic)}_{metric}_ms{unit}"
    if match := RATE.fullmatch(text):
        of_requests = match[2].lower().startswith("req")
        of = match[1].split()[0].lower()
        if of in ("output", "total") and not of_requests:
            return f"{of}_per_s"
        return "requests_per_s" if of_requests and of in ("request", "req", "tput") else ""
    return COUNTS.get(text.lower(), "")


def _number(printed: Cell) -> tuple[Number, int]:
    """The number of a cell, and where it stands; unknown where it has several, such as a range."""
    quantities = printed.quantities
    is_share = len(quantities) == 2 and "/" in printed.text
    if len(quantities) == 1 or is_share:
        return quantities[0].number, quantities[0].at
    return UNKNOWN, 0
