"""Writer of documents and blocks as lines for a terminal, as wide as it is; charts are left out."""

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, zip_longest

from loadgen.document import (
    SEPARATOR,
    Answer,
    Block,
    Cell,
    Code,
    Document,
    Facts,
    Heading,
    Items,
    Line,
    Note,
    Paragraph,
    Part,
    Table,
    Tone,
    without_drawings,
)
from loadgen.util.terminal_text import PLAIN, Screen, display_width, printable, wrap

GAP = "  "  # between two columns
INDENT = "    "  # of the rest of a paragraph
LEAST_WIDTH = 12  # of a column whose words are wrapped
MARKS = ("*", "~")  # behind a number; they stand right of the digits, which stay below each other
APART = (Heading, Note, Code)  # have an empty line before and after them
ALARMING = ("warning", "danger")
WIDTHS = (60, 120)  # of a report, the least and the greatest
USUAL_WIDTH = 100  # in a file
SCREEN_LINES = 24  # a longer report has its answer at its end, too


def report(document: Document, screen: Screen = PLAIN, files: Sequence[str] = ()) -> str:
    """Write a document: its title, its answer, and what to do next stand above all else.

    Args:
        document: The document.
        screen: Where it is shown.
        files: The paths of the files that were written.
    """
    columns = width(screen)
    subject = ". ".join(filter(None, (document.title, document.about)))
    written = [*wrap(printable(subject), columns, INDENT)]
    for answer in document.answers:
        written += [join_parts(answer.parts, screen)]
        written += wrap(_words(answer.following), screen.columns or sys.maxsize, INDENT)
    blocks = without_drawings(document.blocks)
    if blocks and isinstance(blocks[0], (Heading, Note)):
        written.append("")
    written += lines(blocks, columns)
    if blocks and isinstance(blocks[-1], APART):
        written.append("")
    written += (f"Saved: {printable(path)}" for path in files)
    if sum(part.count("\n") + 1 for part in written) > SCREEN_LINES:
        written += (join_parts(answer.parts, screen) for answer in document.answers)
    return "".join(f"{part}\n" for part in written)


def width(screen: Screen) -> int:
    """Return how long the lines of a report may be."""
    least, most = WIDTHS
    return USUAL_WIDTH if screen.columns is None else min(max(screen.columns, least), most)


def join_parts(parts: Iterable[Part], screen: Screen = PLAIN) -> str:
    """Join the parts of an answer; a line ends between parts or words where the screen ends, and
    nowhere in a file, from which it can be pasted.
    """
    room = screen.columns or math.inf
    shown, column = "", 0
    for text, colour in parts:
        before = SEPARATOR if shown else ""
        if shown and column + display_width(before + printable(text)) > room:
            before = f"\n{INDENT}{SEPARATOR.lstrip()}"
            column = 0
        column += display_width(before.lstrip("\n"))
        lines = [printable(text)]
        if column + display_width(lines[0]) > room:
            lines = list(wrap(lines[0], max(int(room) - len(INDENT + SEPARATOR), 1)))
            column = len(INDENT)
        column += display_width(lines[-1])
        if screen.has_colours and colour:
            lines = [f"\x1b[{colour}m{line}\x1b[0m" for line in lines]
        shown += before + f"\n{INDENT}".join(lines)
    return shown


def text(blocks: Sequence[Block], columns: int) -> str:
    """Write blocks as lines, each with its end; nothing in them moves a terminal.

    Args:
        blocks: The blocks.
        columns: How long a line may be; code and single words may be longer.
    """
    return "".join(f"{line}\n" for line in lines(blocks, columns))


def lines(blocks: Sequence[Block], columns: int) -> Iterator[str]:
    """Write blocks as lines without their ends; arguments as for `text`."""
    before: Block | None = None
    for block in without_drawings(tuple(blocks)):
        if before is not None and (isinstance(before, APART) or isinstance(block, APART)):
            yield ""
        yield from _block_lines(block, columns)
        before = block


def _block_lines(block: Block, columns: int) -> Iterator[str]:
    match block:
        case Heading(text=words) | Paragraph(text=words):
            yield from wrap(_words(words), columns, INDENT)
        case Answer():
            yield from wrap(printable(block.text), columns, INDENT)
            yield from wrap(_words(block.following), columns, INDENT)
        case Items():
            for number, item in enumerate(block.cells, 1):
                yield from _item(item, f"{number}. " if block.numbered else "- ", columns)
        case Code():
            yield from map(printable, block.text.rstrip("\n").split("\n"))
        case Table():
            yield from _table(block, columns)
        case Facts():
            rows = ((fact.name.text, fact.value, fact.beside) for fact in block.facts)
            yield from _table(Table.of(("", "", ""), rows), columns)
        case Note():
            alarm = "! " if block.folded is None and block.kind in ALARMING else ""
            yield from wrap(alarm + printable(block.title), columns, INDENT)
            for line in lines(block.blocks, columns - len(GAP)):
                yield GAP + line


def _words(words: Line | str, *, in_table: bool = False) -> str:
    """Write a line; code is marked where it stands between words."""
    if isinstance(words, str):
        return printable(words)
    return "".join(
        f"`{printable(span.text)}`"
        if span.tone is Tone.CODE and not in_table
        else printable(span.text)
        for span in words
    )


def _item(item: Cell, bullet: str, columns: int) -> Iterator[str]:
    """Write an item: its bullet stands before the first line alone."""
    before = bullet
    for line in item:
        for part in wrap(_words(line), columns - len(bullet), GAP):
            yield before + part
            before = " " * len(bullet)


def _table(table: Table, columns: int) -> Iterator[str]:
    """Write a table; where it is too wide, words are wrapped, then the rest stands below."""
    head = [[printable(name)] for name in table.head]
    rows = [[[_words(line, in_table=True) for line in cell] for cell in row] for row in table.rows]
    for column, has_numbers in enumerate(table.numbers):
        cells = [*(row[column] for row in rows), head[column]]
        if has_numbers and any(line.endswith(MARKS) for cell in cells for line in cell):
            for cell in cells:
                cell[:] = [line if line.endswith(MARKS) else f"{line} " for line in cell]
    shown = [head, *rows] if any(table.head) else rows
    texts = [list(chain.from_iterable(row[at] for row in shown)) for at in range(len(head))]
    widths = list(map(_widest, texts))
    least = [
        width if has_numbers else max(_widest(" ".join(lines).split()), LEAST_WIDTH)
        for lines, width, has_numbers in zip(texts, widths, table.numbers, strict=True)
    ]
    widths = _narrowed(widths, least, columns)
    for part in _parts(widths, columns):
        for row in shown:
            placed = [(row[at], widths[at], table.numbers[at]) for at in part]
            yield from _row(placed)


def _widest(texts: Iterable[str]) -> int:
    return max(map(display_width, texts), default=0)


def _narrowed(widths: Sequence[int], least: Sequence[int], columns: int) -> list[int]:
    """Take width from the widest columns until the table fits; no word is broken."""
    narrow = list(widths)
    while sum(narrow) + len(GAP) * (len(narrow) - 1) > columns:
        wide = [at for at, width in enumerate(narrow) if width > least[at]]
        if not wide:
            break
        narrow[max(wide, key=narrow.__getitem__)] -= 1
    return narrow


def _parts(widths: Sequence[int], columns: int) -> Iterator[list[int]]:
    """Divide the columns into parts that fit; each begins with the first column."""
    part, used = [0], widths[0] if widths else 0
    for at, width in enumerate(widths[1:], 1):
        if used + len(GAP) + width > columns and len(part) > 1:
            yield part
            part, used = [0], widths[0]
        part.append(at)
        used += len(GAP) + width
    yield part


def _row(cells: Sequence[tuple[Sequence[str], int, bool]]) -> Iterator[str]:
    """Write a row as lines.

    Args:
        cells: Of each cell its lines, its width, and whether it is a number.
    """
    columns = [
        [*cell] if has_numbers else [part for line in cell for part in wrap(line, width)]
        for cell, width, has_numbers in cells
    ]
    for parts in zip_longest(*columns, fillvalue=""):
        aligned = []
        for part, (_, width, has_numbers) in zip(parts, cells, strict=True):
            room = " " * (width - display_width(part))
            aligned.append(room + part if has_numbers else part + room)
        yield GAP.join(aligned).rstrip()
