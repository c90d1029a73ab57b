"""Groups: what became of the requests of each target, class, phase of a load profile, and turn
of sessions.
"""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from loadgen.document import Block, Note, Paragraph, Table
from loadgen.report.result import RunResult
from loadgen.report.result.latencies import Latencies
from loadgen.report.result.request_groups import PhaseResult, RequestGroup
from loadgen.report.sections.latencies import few_mark
from loadgen.util.number_format import duration, fixed, in_table, percent

MAX_TURNS = 20  # rows of the table of turns on the console


class GroupTable(Struct, frozen=True):
    """A table with a row for each group.

    Attributes:
        head: What the groups are.
        columns: The titles between name and latencies, each with its width on the console.
        metrics: The latencies, without a clock, such as ttft.
        rows: Of each group its name, a cell below each of these columns, and p50 / p99 of each
            latency.
    """

    head: str
    columns: Mapping[str, int]
    metrics: Sequence[str]
    rows: Sequence[tuple[str, Sequence[str], Sequence[str]]]

    def lines(self) -> Iterator[str]:
        """Write the table for the console."""
        width = max(map(len, (self.head, *(name for name, _, _ in self.rows))))
        titles = "".join(f"{title:>{wide}}" for title, wide in self.columns.items())
        yield f"{self.head:<{width}}{titles}" + "".join(
            f"{metric.upper():>20}" for metric in self.metrics
        )
        for name, cells, latencies in self.rows:
            line = "".join(
                f"{cell:>{wide}}" for cell, wide in zip(cells, self.columns.values(), strict=True)
            )
            line += "".join(
                f"{text:>20}" if text.endswith("*") else f"{text:>19} " for text in latencies
            )
            yield f"{name:<{width}}{line}".rstrip()


def tables(result: RunResult) -> Iterator[str]:
    """Write the tables for the console; nothing where a run has no groups."""
    clock = f"latencies in ms from {result.latency_from}, p50 / p99"
    if result.targets:
        differ = result.provenance.engine.differ
        if isinstance(differ, list):
            yield from (f"The targets differ in {difference}" for difference in differ)
        yield f"{len(result.targets)} targets, {result.provenance.settings.balance}; {clock}"
        yield from targets(result).lines()
        yield ""
    if result.classes:
        yield f"Classes; {clock}"
        yield from classes(result).lines()
        yield ""
    if result.phases:
        yield f"Phases; {clock}"
        yield from phases(result).lines()
        yield from _recoveries(result)
        yield ""
    if result.turns:
        yield f"Turns; {clock}"
        yield from turns(result, MAX_TURNS).lines()
        if len(result.turns) > MAX_TURNS:
            yield f"and {len(result.turns) - MAX_TURNS} more turns in the JSON (loadgen.turns)"
        yield _sessions_line(result)
        yield ""


def targets(result: RunResult) -> GroupTable:
    """Make a row for each target."""
    columns = {"requests": 9, "ok": 8, "failed": 8, "tok/s": 11, "peak": 6}
    rows = []
    for target in result.targets:
        throughput = fixed(target.output_throughput, 2)
        cells = (
            target.requests,
            target.ok,
            target.failed,
            throughput,
            target.max_concurrent_requests,
        )
        rows.append(
            (target.base_url, [*map(str, cells)], _distributions(target.latency_ms, result))
        )
    return GroupTable("target", columns, metrics(result), rows)


def classes(result: RunResult) -> GroupTable:
    """Make a row for each class, with columns of users who left and of goodput where there are
    any.
    """
    columns = {"share": 8, "requests": 9, "ok": 8, "failed": 8, "tok/s": 11}
    if any(part.left for part in result.classes):
        columns["left"] = 8
    if any(part.good_share is not None for part in result.classes):
        columns["good"] = 8
    rows = []
    for part in result.classes:
        cells: dict[str, object] = {
            "share": percent(part.share, 1),
            "requests": part.requests,
            "ok": part.ok,
            "failed": part.failed,
            "tok/s": fixed(part.output_throughput, 2),
            "left": part.left,
            "good": percent(part.good_share, 1),
        }
        rows.append(
            (
                part.name,
                [str(cells[title]) for title in columns],
                _distributions(part.latency_ms, result),
            )
        )
    return GroupTable("class", columns, metrics(result), rows)


def phases(result: RunResult) -> GroupTable:
    """Make a row for each phase of a load profile."""
    return _groups(
        result, "phase", [(phase.load, phase) for phase in result.phases], {"ok/s": 9, "tok/s": 10}
    )


def turns(result: RunResult, most: int | None = None) -> GroupTable:
    """Make a row for each of the first turns of sessions, `most` of them."""
    return _groups(result, "turn", [(str(turn.turn), turn) for turn in result.turns[:most]], {})


def metrics(result: RunResult) -> tuple[str, ...]:
    """Name the main latencies, without a clock: E2EL alone where answers have no tokens."""
    return ("ttft", "tpot", "e2el") if result.streams else ("e2el",)


def blocks(result: RunResult) -> Iterator[Block]:
    """Write a row for each class, phase and turn; nothing where a run has none of them."""
    if result.classes:
        yield Note.fold("Classes: a row for each", block_table(classes(result)))
    if result.phases:
        recoveries = (Paragraph.of(f"{text}.") for text in _recoveries(result))
        table = block_table(phases(result))
        yield Note.fold("Phases of the load: a row for each", table, *recoveries)
    if result.turns:
        sessions = Paragraph.of(f"{_sessions_line(result)}.")
        yield Note.fold("Sessions: a row for each turn", sessions, block_table(turns(result)))


def block_table(of: GroupTable) -> Table:
    """Write a row for each group, as a block of a page."""
    head = (of.head, *of.columns, *(f"{metric.upper()} p50 / p99, ms" for metric in of.metrics))
    return Table.of(
        head, ((name, *cells, *latencies) for name, cells, latencies in of.rows), text_columns=1
    )


def _groups(
    result: RunResult,
    head: str,
    groups: Sequence[tuple[str, RequestGroup]],
    further: Mapping[str, int],
) -> GroupTable:
    """Make a row for each group, with columns of users who left and of the cache where there are
    any.
    """
    columns = {"requests": 9, "ok": 7, "failed": 7}
    if any(group.left for _, group in groups):
        columns["left"] = 7
    if any(group.cached_share is not None for _, group in groups):
        columns["cached"] = 8
    columns |= further
    rows = []
    for name, group in groups:
        cells: dict[str, object] = {
            "requests": group.requests,
            "ok": group.ok,
            "failed": group.failed,
            "left": group.left,
        }
        cells |= {"cached": percent(group.cached_share, 1)}
        if isinstance(group, PhaseResult):
            cells |= {
                "ok/s": fixed(group.answers_per_s, 2),
                "tok/s": fixed(group.output_throughput, 1),
            }
        latencies = (getattr(group, f"{metric}_ms") for metric in metrics(result))
        texts = [_percentiles(latency.p50, latency.p99, latency.count) for latency in latencies]
        rows.append((name, [str(cells[title]) for title in columns], texts))
    return GroupTable(head, columns, metrics(result), rows)


def _recoveries(result: RunResult) -> Iterator[str]:
    """Write when the backlog of each burst had gone."""
    for phase in result.phases:
        if phase.recovered_after_s is not None:
            yield (
                f"Backlog recovered {phase.recovered_after_s:.3g} s after the burst (phase "
                f"{phase.load})"
            )


def _sessions_line(result: RunResult) -> str:
    """Describe the sessions as wholes; empty without any."""
    sessions = result.sessions
    if sessions is None:
        return ""
    text = (
        f"{sessions.complete} of {sessions.count} sessions complete, {sessions.turns_mean:.3g} "
        "turns planned on average"
    )
    for title, ms in (("median time", sessions.time_ms.p50), ("p99", sessions.time_ms.p99)):
        text += "" if ms is None else f", {title} of a session {duration(ms / 1000)}"
    return text


def _distributions(latencies: Latencies, result: RunResult) -> list[str]:
    distributions = (latencies.latency(metric, result.latency_from) for metric in metrics(result))
    return [
        _percentiles(latency.p50_ms, latency.p99_ms, latency.count) for latency in distributions
    ]


def _percentiles(p50: float | None, p99: float | None, count: int) -> str:
    """Write p50 / p99, with a star if the p99 is of too few requests."""
    return f"{in_table(p50)} / {in_table(p99)}{few_mark('p99', count)}"
