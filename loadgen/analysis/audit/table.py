"""Table: a Markdown table, its cells, and the quantities in them; also where all of it stands on one line."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from loadgen.analysis.audit.number import Number

# What cells call things -> the names of `Published`.
LABELS = {
    "total tps": "total_per_s",
    "total token throughput": "total_per_s",
    "output tps": "output_per_s",
    "output token throughput": "output_per_s",
    "success rate": "success_rate",
} | {
    f"{statistic} {label}": f"{statistic}_{metric}_ms"
    for statistic in ("mean", "median", "p90", "p95", "p99")
    for label, metric in (("ttft", "ttft"), ("tpot", "tpot"), ("itl", "itl"), ("e2el", "e2el"))
}
SEPARATOR = re.compile(r"\|(?:[ \t]*:?-{3,}:?[ \t]*\|)+")
MAX_HEADER = 4000  # characters before the separator in which a header is looked for
QUANTITY = re.compile(
    r"(?P<label>[A-Za-z][A-Za-z0-9 /-]*?)\s*(?:\((?:ms|s|tok/s|%)\))?\s*[:=]\s*"
    r"(?P<number>\d[\d,]*(?:\.\d+)?)(?:\s?x\s?(?P<times>\d+)\b)?"
    r"|(?P<change>[+−-]\d+(?:\.\d+)?)\s?%"
    r"|(?<![\w.])(?P<bare>\d[\d,]*(?:\.\d+)?)(?:\s?x\s?(?P<bare_times>\d+)\b)?(?![\w.%])"
)


@dataclass(frozen=True, slots=True)
class Change:
    """A change in percent, as printed.

    Attributes:
        ratio: What it says, as a ratio: +50 % is 1.5.
        text: As printed, with its sign and the percent sign.
        at: How far into the page it stands, in characters.
    """

    ratio: Number
    text: str
    at: int


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number in a cell.

    Attributes:
        name: As in `Published`; `""` where a cell holds nothing but a number; else the label in lower case.
        number: What is printed.
        text: As printed, without what multiplies it.
        times: How many of it there are: 2 for "3019.19x2".
        change: The change printed behind it.
        at: How far into the page it stands, in characters.
    """

    name: str
    number: Number
    text: str
    times: int
    change: Change | None
    at: int

    @property
    def whole(self) -> Number:
        """What all of them amount to."""
        return self.number * self.times


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: its quantities, and a change that belongs to none of them."""

    quantities: tuple[Quantity, ...]
    change: Change | None

    def get(self, name: str) -> Quantity | None:
        """The quantity of this name."""
        return next((found for found in self.quantities if found.name == name), None)


@dataclass(frozen=True, slots=True)
class Row:
    """A row: its name, which is its first cell, and the others."""

    name: str
    cells: tuple[Cell, ...]
    at: int


@dataclass(frozen=True, slots=True)
class Table:
    """A table: the names of its columns but the first, and its rows."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    at: int

    @property
    def baseline(self) -> int | None:
        """The column that the others are compared with: the one that says so."""
        return next((number for number, name in enumerate(self.columns) if "baseline" in name.lower()), None)

    def pairs(self) -> Iterator[tuple[Row, Cell, Cell, str]]:
        """Each row, its cell of the baseline, and each other cell of it with the name of its column."""
        base = self.baseline
        for row in self.rows if base is not None else ():
            for number, cell in enumerate(row.cells):
                if base is not None and number != base:
                    yield row, row.cells[base], cell, self.columns[number]


def tables(text: str) -> Iterator[Table]:
    """Every table of a text whose fences are blanked out."""
    for separator in SEPARATOR.finditer(text):
        count = separator[0].count("|") - 1
        cells = rf"\|((?:[^|]*\|){{{count}}})"
        begin = max(0, separator.start() - MAX_HEADER)
        header = re.search(rf"{cells}\s*\Z", text[begin : separator.start()])
        if header is None:
            continue
        row = re.compile(rf"\s*{cells}")
        rows, at = [], separator.end()
        while found := row.match(text, at):
            rows.append(_row(found[1], found.start(1)))
            at = found.end()
        columns = tuple(cell.strip(" *\n") for cell in header[1].split("|")[1:-1])
        yield Table(columns, tuple(rows), begin + header.start())


def _row(text: str, at: int) -> Row:
    first, *others = text.split("|")[:-1]
    cells, start = [], at + len(first) + 1
    for other in others:
        cells.append(cell(other, start))
        start += len(other) + 1
    return Row(" ".join(first.strip(" *\n").split()), tuple(cells), at)


def cell(text: str, at: int) -> Cell:
    """Read a cell that begins at `at`."""
    bare = re.sub(r"<[^>]*>", lambda tag: " " * len(tag[0]), text)
    quantities: list[Quantity] = []
    alone: Change | None = None
    for found in QUANTITY.finditer(bare):
        if found["change"]:
            ratio = Number.printed(found["change"]) / 100 + 1
            change = Change(ratio, f"{found['change']}%", at + found.start("change"))
            if quantities and quantities[-1].change is None:
                last = quantities[-1]
                quantities[-1] = Quantity(last.name, last.number, last.text, last.times, change, last.at)
            else:
                alone = change
            continue
        group = "number" if found["number"] else "bare"
        label = " ".join((found["label"] or "").lower().split())
        times = int(found["times"] or found["bare_times"] or 1)
        name = LABELS.get(label, label)
        number = Number.printed(found[group])
        quantities.append(Quantity(name, number, found[group], times, None, at + found.start(group)))
    return Cell(tuple(quantities), alone)
