"""The lines of what is printed as they were before the writer wrapped and indented them, and the
parts of a report: its sections and tables.
"""

import re
from collections.abc import Iterable, Sequence

from loadgen.document import Block, terminal_writer

BULLET = re.compile(r"(- |\d+\. )(?=\S)")
WIDTH = 100


def unwrapped(lines: Iterable[str]) -> list[str]:
    """Lines without bullets and indentation; those that go on are joined: they are indented by
    four more than the first, or by two more than a further line of an item, and no part of a table.
    """
    whole: list[str] = []
    rest = words = 0  # the indentation of what goes on, and of further lines of an item
    for line in lines:
        text = line.lstrip()
        own = len(line) - len(text)
        if whole and whole[-1] and text and own == rest and "  " not in text:
            whole[-1] += " " + text
            continue
        bullet = BULLET.match(text)
        rest = own + 2 if words and own == words else own + 4
        if bullet is not None:
            words = own + len(bullet[0])
        elif own != words:
            words = 0
        whole.append(text[bullet.end() :] if bullet else text)
    return whole


def printed(blocks: Iterable[Block]) -> list[str]:
    """Blocks as the lines of a report."""
    return unwrapped(terminal_writer.lines([*blocks], WIDTH))


def section(lines: Sequence[str], title: str) -> list[str]:
    """The lines below the one title that begins so, up to the next empty line."""
    (start,) = (number for number, line in enumerate(lines) if line.startswith(title))
    return [*lines[start + 1 : lines.index("", start)]]


def cells(line: str) -> list[str]:
    """The cells of a row of a table, or of its head; empty ones are left out."""
    return re.split(" {2,}", line.strip())


def table(lines: Sequence[str], head: str) -> dict[str, list[str]]:
    """The one table whose head begins so: the cells of each row by its first."""
    (start,) = (number for number, line in enumerate(lines) if line.startswith(head))
    columns = len(cells(lines[start]))
    rows = dict[str, list[str]]()
    for line in lines[start + 1 :]:
        first, *others = cells(line)
        if len(others) + 1 != columns:
            break
        rows[first] = others
    return rows


def report_of(out: str) -> str:
    """What a run prints, without the paths of its files."""
    return "".join(line for line in out.splitlines(keepends=True) if not line.startswith("Saved: "))


def whole(out: str) -> str:
    """What a run prints, as it was before it was wrapped."""
    return "\n".join(unwrapped(out.splitlines())) + "\n"
