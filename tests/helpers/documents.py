"""Documents: parts of them that a program writes, and tables in them."""

import re
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path


def between(document: Path, begin: str, text: str, end: str) -> None:
    """Put `text` between two marks of a document, in place of what is there.

    Raises:
        ValueError: It does not have the marks.
    """
    before, _, after = _parts(document, begin, end)
    document.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}")


def found_between(document: Path, begin: str, end: str) -> str:
    """What stands between two marks of a document.

    Raises:
        ValueError: It does not have the marks.
    """
    return _parts(document, begin, end)[1]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, of which `cells_of` finds the rows again."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(_escaped, line))} |" for line in lines)


def list_item(text: str, indent: str = "") -> str:
    """An item of a Markdown list in lines of 120 characters, of which none begins or ends inside
    code.
    """
    held = re.sub("`[^`]*`", lambda code: code[0].replace(" ", "\0"), text)
    first, others = f"{indent}- ", f"{indent}  "
    lines = textwrap.fill(
        held,
        120,
        initial_indent=first,
        subsequent_indent=others,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return lines.replace("\0", " ")


def cells_of(text: str) -> list[tuple[str, ...]]:
    """The cells of each row of the Markdown table in a text, its head left out."""
    lines = [line for line in text.splitlines() if line.startswith("|")][2:]
    rows = [re.split(r"(?<!\\)\|", line.strip()[1:-1]) for line in lines]
    return [tuple(cell.strip().replace("\\|", "|") for cell in row) for row in rows]


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|")


def _parts(document: Path, begin: str, end: str) -> tuple[str, str, str]:
    before, begun, rest = document.read_text().partition(begin)
    inside, ended, after = rest.partition(end)
    if not begun or not ended:
        raise ValueError(f"{document} has no lines {begin} and {end}")
    return before, inside, after
