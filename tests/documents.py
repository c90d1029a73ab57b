"""Documents: parts of them that a program writes."""

from pathlib import Path


def between(document: Path, begin: str, text: str, end: str) -> None:
    """Put `text` between two marks of a document, in place of what is there.

    Raises:
        ValueError: It does not have the marks.
    """
    before, begun, rest = document.read_text().partition(begin)
    _, ended, after = rest.partition(end)
    if not begun or not ended:
        raise ValueError(f"{document} has no lines {begin} and {end}")
    document.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}")
