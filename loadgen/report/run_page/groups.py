"""Groups: the tables of classes of requests, of the phases of a rate profile, and of the turns of sessions."""

from collections.abc import Iterator, Sequence

from loadgen.report import class_table, targets
from loadgen.report.group_tables import count_cells, counts, metrics, percentiles, sessions_line
from loadgen.report.html import Block, Heading, Paragraph, Table, cell, line
from loadgen.report.result import RunResult
from loadgen.report.result.request_group import RequestGroup
from loadgen.util.number_format import fixed


def blocks(result: RunResult) -> Iterator[Block]:
    """Write a row for each class, phase and turn; nothing where a run has none of them."""
    if result.classes:
        yield Heading(2, "Classes")
        yield from _classes(result)
    if result.phases:
        yield Heading(2, "Phases")
        head = ("phase", *_titles(result, result.phases), "ok/s", "tok/s", "recovered after, s")
        rows = []
        for phase in result.phases:
            recovered = "" if phase.recovered_after_s is None else fixed(phase.recovered_after_s, 2)
            rates = (fixed(phase.answers_per_s, 2), fixed(phase.output_throughput, 1), recovered)
            rows.append(tuple(map(cell, (phase.load, *_cells(result, phase, result.phases), *rates))))
        yield Table(head, tuple(rows), text_columns=1)
    if result.turns:
        yield Heading(2, "Sessions")
        yield Paragraph(line(f"{sessions_line(result)}."))
        rows = [tuple(map(cell, (str(turn.turn), *_cells(result, turn, result.turns)))) for turn in result.turns]
        yield Table(("turn", *_titles(result, result.turns)), tuple(rows), text_columns=1)


def _classes(result: RunResult) -> Iterator[Block]:
    clock, rows = result.latency_from, []
    latencies = targets.METRICS if result.streams else {"E2EL": "e2el"}
    for one in result.classes:
        values = (targets.percentiles(one.latency_ms.latency(metric, clock)).strip() for metric in latencies.values())
        rows.append(tuple(map(cell, (one.name, *class_table.cells(result, one), *values))))
    titles = [title for title, _ in class_table.titles(result)]
    yield Table(("class", *titles, *(f"{name} p50 / p99, ms" for name in latencies)), tuple(rows), text_columns=1)


def _titles(result: RunResult, groups: Sequence[RequestGroup]) -> tuple[str, ...]:
    return (*(name for name, _ in counts(groups)), *(f"{name} p50 / p99, ms" for name in metrics(result)))


def _cells(result: RunResult, group: RequestGroup, groups: Sequence[RequestGroup]) -> tuple[str, ...]:
    latencies = (percentiles(getattr(group, field)) for field in metrics(result).values())
    return (*count_cells(group, groups), *latencies)
