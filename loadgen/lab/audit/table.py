"""Table: a table of a page, its cells, and the quantities in them."""

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from loadgen.lab.audit.finding import Place
from loadgen.lab.audit.number import UNKNOWN, Number
from loadgen.lab.audit.published import Published

# What cells call things -> the names of `Published`.
LABELS = {
    "total tps": "total_per_s",
    "total token throughput": "total_per_s",
    "output tps": "output_per_s",
    "output token throughput": "output_per_s",
    "success rate": "success_rate",
    "mean latency": "latency_s",
    "average latency": "latency_s",
    "avg latency": "latency_s",
} | {
    f"{statistic} {metric}": f"{statistic}_{metric}_ms"
    for statistic, metric in itertools.product(
        ("mean", "median", "p90", "p95", "p99"), ("ttft", "tpot", "itl", "e2el")
    )
}
SEPARATOR = re.compile(r"\|(?:[ \t]*:?-{2,}:?[ \t]*\|)+")
HTML = re.compile(r"(?is)<table\b.*?</table>")
HTML_ROW = re.compile(r"(?is)<tr\b.*?(?=<tr\b|</table>)")
HTML_CELL = re.compile(r"(?is)<t[dh]\b[^>]*>(.*?)(?=</?t[dhr]\b|\Z)")
TAG = re.compile(r"<[^>]*>")
MAX_HEADER = 4000  # characters before the separator in which a header is looked for
UNIT = re.compile(r"\s*\((?:ms|s|tok/s|req/s|s/req|%)\)")
QUANTITY = re.compile(
    r"(?P<label>[A-Za-z][A-Za-z0-9 /-]*?)\s*(?:\((?:ms|s|tok/s|req/s|s/req|%)\))?\s*[:=]\s*"
    r"(?P<number>\d[\d,]*(?:\.\d+)?)(?:\s?[x×]\s?(?P<times>\d+)\b(?! ?faster))?"
    r"|(?P<change>[+−-]\d[\d,]*(?:\.\d+)?)\s?%(?P<device>\s?(?:/|per)\s?(?:GPU|NPU|device|card))?"
    r"|(?<![\w.])(?P<speedup>\d+(?:\.\d+)?)\s?[x×](?= (?:faster|higher|lower|speed-?up))"
    r"|(?<![\w.])(?P<bare>\d[\d,]*(?:\.\d+)?)(?:\s?[x×]\s?(?P<bare_times>\d+)\b)?(?![\w.%])"
)
BOUNDS = re.compile(
    r"\s*[;,]?\s*\(?(?P<low>[+−-]\d+(?:\.\d+)?)\s?% to (?P<high>[+−-]\d+(?:\.\d+)?)\s?%"
)
BASELINE = re.compile(r"(?i)\W*(?:the )?baseline\b")
PER_DEVICE = re.compile(r"(?:/|\bper) ?(?:GPU|NPU|device|card)s?\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Change:
    """A change, as printed.

    Attributes:
        ratio: What it says, as a ratio: +50 % is 1.5; a speed-up is above 1 whatever it is of. A
            change with bounds need not be the ratio of the two means beside it: it agrees with what
            is no further off than they are wide.
        text: As printed, with its sign and the percent sign.
        at: How far into the page it stands, in characters.
        per_device: It is of what each device does.
        is_speedup: It says how many times as fast.
    """

    ratio: Number
    text: str
    at: int
    per_device: bool = False
    is_speedup: bool = False


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number in a cell.

    Attributes:
        name: As in `Published`; `""` where a cell holds nothing but a number; else the label in
            lower case.
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
    def is_latency(self) -> bool:
        """Whether less of it is better."""
        return self.name == "latency_s" or self.name.endswith("_ms")

    @property
    def whole(self) -> Number:
        """What all of them amount to."""
        return self.number * self.times


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell.

    The first change behind a number is its own. Further ones are others that the author quotes, or
    its bounds.

    Attributes:
        quantities: Its numbers, each with the change behind it.
        change: The first change in a cell that has no number before it; else None.
        text: As printed, on one line.
    """

    quantities: tuple[Quantity, ...]
    change: Change | None
    text: str = ""

    def get(self, name: str) -> Quantity | None:
        """The quantity of this name."""
        return next((quantity for quantity in self.quantities if quantity.name == name), None)


@dataclass(frozen=True, slots=True)
class Row:
    """A row.

    Attributes:
        name: Its first cell, unless all rows have the same.
        cells: The other cells.
        at: How far into the page it begins, in characters.
    """

    name: str
    cells: tuple[Cell, ...]
    at: int


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        columns: The names of its columns but the first.
        rows: Its rows.
        at: How far into the page it begins, in characters.
        corner: The name of its first column.
    """

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    at: int
    corner: str = ""

    @property
    def baseline(self) -> int | None:
        """The column that the others are compared with: the one that says so."""
        return next(
            (number for number, name in enumerate(self.columns) if BASELINE.match(name)), None
        )

    @property
    def changes(self) -> list[Change]:
        """The changes that its cells print."""
        cells = [cell for row in self.rows for cell in row.cells]
        printed = [cell.change for cell in cells]
        printed += [quantity.change for cell in cells for quantity in cell.quantities]
        return [change for change in printed if change is not None]

    def pairs(self) -> Iterator[tuple[Row, Cell, Cell, str]]:
        """Each row, its baseline's cell, and each other cell with the name of its column."""
        if (base := self.baseline) is None:
            return
        for row in self.rows:
            for number, cell in enumerate(row.cells):
                if number != base:
                    yield row, row.cells[base], cell, self.columns[number]


NO_TABLE = Table((), (), 0)


# The texts of the cells of a row, each with how far into the page it begins.
Texts = list[tuple[str, int]]


def tables(text: str) -> Iterator[Table]:
    """Every table of a text whose fences are blanked out, those in HTML last."""
    for separator in SEPARATOR.finditer(text):
        count = separator[0].count("|") - 1
        cells = rf"\|((?:[^|]*\|){{{count}}})"
        begin = max(0, separator.start() - MAX_HEADER)
        header = re.search(rf"{cells}\s*\Z", text[begin : separator.start()])
        if header is None:
            continue
        pattern = re.compile(rf"\s*{cells}")
        rows = []
        at = separator.end()
        while match := pattern.match(text, at):
            rows.append(_split(match[1], match.start(1)))
            at = match.end()
        yield _table(_split(header[1], begin + header.start(1)), rows, begin + header.start())
    for table in HTML.finditer(text):
        rows = [
            [(cell[1], cell.start(1)) for cell in HTML_CELL.finditer(text, *row.span())]
            for row in HTML_ROW.finditer(text, *table.span())
        ]
        rows = [row for row in rows if row]
        if rows:
            yield _table(rows[0], rows[1:], table.start())


def _split(row: str, at: int) -> Texts:
    """The cells of a row of Markdown, which ends in a bar."""
    texts = []
    for text in row.split("|")[:-1]:
        texts.append((text, at))
        at += len(text) + 1
    return texts


def _table(header: Texts, rows: list[Texts], at: int) -> Table:
    corner, *columns = (TAG.sub("", title).strip(" *\n") for title, _ in header)
    labels = [LABELS.get(UNIT.sub("", column).strip().lower(), "") for column in columns]
    read = [
        Row(
            " ".join(TAG.sub("", first).strip(" *\n").split()),
            tuple(cell(*part, label) for label, part in zip(labels, further, strict=False)),
            begin,
        )
        for (first, begin), *further in rows
    ]
    return Table(tuple(columns), _named(read), at, corner)


def _named(rows: list[Row]) -> tuple[Row, ...]:
    """Name rows that all have the same first cell by the first column that differs."""
    if len(rows) > 1 and len({row.name for row in rows}) == 1:
        for texts in zip(*([cell.text for cell in row.cells] for row in rows), strict=False):
            if len(set(texts)) == len(rows) and all(text[:1].isalpha() for text in texts):
                return tuple(replace(row, name=text) for row, text in zip(rows, texts, strict=True))
    return tuple(rows)


def cell(text: str, at: int, name: str = "") -> Cell:
    """Read a cell that begins at `at`; a number without a label has this name."""
    bare = TAG.sub(lambda tag: " " * len(tag[0]), text)
    quantities: list[Quantity] = []
    alone: Change | None = None
    for match in QUANTITY.finditer(bare):
        if change := _change(match, at):
            if quantities and quantities[-1].change is None:
                quantities[-1] = replace(quantities[-1], change=change)
            elif not quantities:
                alone = alone or change
            continue
        group = "number" if match["number"] else "bare"
        label = " ".join((match["label"] or "").lower().split())
        times = int(match["times"] or match["bare_times"] or 1)
        quantity = LABELS.get(label, label) or name
        number = Number.printed(match[group])
        quantities.append(
            Quantity(quantity, number, match[group], times, None, at + match.start(group))
        )
    return Cell(tuple(quantities), alone, " ".join(bare.split()))


def _change(match: re.Match[str], at: int) -> Change | None:
    if match["change"]:
        ratio = Number.printed(match["change"]) / 100 + 1
        if bounds := BOUNDS.match(match.string, match.end()):
            width = (
                abs(Number.printed(bounds["high"]).value - Number.printed(bounds["low"]).value)
                / 100
            )
            ratio += Number(0, -width, width)
        return Change(
            ratio, f"{match['change']}%", at + match.start("change"), bool(match["device"])
        )
    if match["speedup"]:
        ratio = Number.printed(match["speedup"])
        return Change(ratio, f"{match['speedup']}x", at + match.start("speedup"), is_speedup=True)
    return None


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
    by_column = [_number_name(title) for title in (table.corner, *table.columns)]
    by_row = [_number_name(row.name) for row in table.rows]
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
            number, at = _only_number(printed)
            if name and number:
                exact = name in ("ok", "cap")
                scale = 1000 if name.endswith(" s") else 1
                label = name.removesuffix(" s")
                numbers[label] = Number.exact(number.value) if exact else number * scale
                places[label] = place(at)
        if len(numbers) >= MIN_NAMED:
            yield Published(numbers, places, next(iter(places.values())), title)


def _number_name(title: str) -> str:
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


def _only_number(printed: Cell) -> tuple[Number, int]:
    """The number of a cell, and where it stands; unknown where it has several, such as a range."""
    quantities = printed.quantities
    is_share = len(quantities) == 2 and "/" in printed.text
    if len(quantities) == 1 or is_share:
        return quantities[0].number, quantities[0].at
    return UNKNOWN, 0
