"""Groups: the tables of classes of requests, of the phases of a load profile, and of the turns of sessions."""

from collections.abc import Iterator

from loadgen.report import group_tables
from loadgen.report.group_tables import GroupTable
from loadgen.report.html import Block, Heading, Paragraph, Table
from loadgen.report.result import RunResult


def blocks(result: RunResult) -> Iterator[Block]:
    """Write a row for each class, phase and turn; nothing where a run has none of them."""
    if result.classes:
        yield Heading(2, "Classes")
        yield table(group_tables.classes(result))
    if result.phases:
        yield Heading(2, "Phases")
        yield table(group_tables.phases(result))
        yield from (Paragraph.of(f"{text}.") for text in group_tables.recoveries(result))
    if result.turns:
        yield Heading(2, "Sessions")
        yield Paragraph.of(f"{group_tables.sessions_line(result)}.")
        yield table(group_tables.turns(result))


def table(of: GroupTable) -> Table:
    """Write a row for each group."""
    head = (of.head, *of.columns, *(f"{metric.upper()} p50 / p99, ms" for metric in of.metrics))
    return Table.of(head, ((name, *cells, *latencies) for name, cells, latencies in of.rows), text_columns=1)
