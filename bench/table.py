"""Table: Markdown tables, and how figures stand in them."""

import statistics
from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; the first column is text, the others are figures."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


def figure(value: float | None) -> str:
    """Three significant digits, or all before the point; n/a for None."""
    if value is None:
        return "n/a"
    size = abs(value)
    digits = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3
    return f"{value:,.{digits}f}"


def median(values: Iterable[float | None]) -> str:
    """The median of the values that are known."""
    known = [value for value in values if value is not None]
    return figure(statistics.median(known) if known else None)


def spread(values: Sequence[float]) -> str:
    """The median, and in brackets the least and the most where there are several."""
    if len(values) < 2:
        return median(values)
    return f"{median(values)} ({figure(min(values))} to {figure(max(values))})"
