"""Groups: what became of the requests of each target, class, phase of a load profile, and turn
of sessions.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from loadgen.document import Block, Items, Note, Table
from loadgen.report.result import RunResult
from loadgen.report.result.request_groups import ClassResult, RequestGroup, Target
from loadgen.report.sections import CLOCKS
from loadgen.report.sections.latencies import few_mark
from loadgen.util.number_format import UNKNOWN, duration, fixed, in_table, percent

MAX_TURNS = 20  # rows of a short report
Part = Target | ClassResult | RequestGroup
Remarks = Callable[[RunResult], Iterable[str]]
# The columns of a table: the heading of each, its field, and how it is written.
COLUMNS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "share": ("share", partial(percent, digits=1)),
    "requests": ("requests", str),
    "ok": ("ok", str),
    "failed": ("failed", str),
    "ok/s": ("answers_per_s", partial(fixed, digits=2)),
    "tok/s": ("output_throughput", partial(fixed, digits=2)),
    "left": ("left", str),
    "cached": ("cached_share", partial(percent, digits=1)),
    "good": ("good_share", partial(percent, digits=1)),
}
PEAK = {"peak": ("max_concurrent_requests", str)}  # the tables of classes have no room for it


def blocks(result: RunResult, most_turns: int | None = None) -> Iterator[Block]:
    """Write a row for each target, class, phase and turn; nothing where a run has none of them.

    Args:
        result: The result.
        most_turns: How many turns have a row; None: all.
    """
    targets = [(target.base_url, target) for target in result.targets]
    classes = [(part.name, part) for part in result.classes]
    phases = [(phase.load, phase) for phase in result.phases]
    turns = [(str(turn.turn), turn) for turn in result.turns[:most_turns]]
    tables: tuple[tuple[str, str, Sequence[tuple[str, Part]], Remarks], ...] = (
        ("Targets", "target", targets, _balance),
        ("Classes", "class", classes, lambda result: ()),
        ("Phases of the load", "phase", phases, _recoveries),
        ("Turns of sessions", "turn", turns, partial(_sessions, turns=len(turns))),
    )
    for title, head, parts, about in tables:
        if parts:
            title = f"{title}; latencies are p50 / p99 in ms from {CLOCKS[result.latency_from]}"
            items = Items.of(about(result))
            table = _table(head, parts, result)
            yield Note.fold(title, table, *([items] if items.items else ()))


def metrics(result: RunResult) -> tuple[str, ...]:
    """Name the main latencies, without a clock: E2EL alone where answers have no tokens."""
    return ("ttft", "tpot", "e2el") if result.streams else ("e2el",)


def _table(head: str, parts: Sequence[tuple[str, Part]], result: RunResult) -> Table:
    """Make a row for each part; a column that none of them has is left out, and that of users who
    left where nobody did.
    """
    columns = []
    for title, (name, write) in (COLUMNS | (PEAK if head == "target" else {})).items():
        values = [getattr(part, name, None) for _, part in parts]
        if any(values) or (name != "left" and any(value is not None for value in values)):
            cells = [UNKNOWN if value is None else write(value) for value in values]
            columns.append((title, cells))
    for metric in metrics(result):
        cells = [_percentiles(part, metric, result.latency_from) for _, part in parts]
        columns.append((metric.upper(), cells))
    titles, texts = zip(*columns, strict=True)
    rows = ((name, *row) for (name, _), *row in zip(parts, *texts, strict=True))
    return Table.of((head, *titles), rows, text_columns=1)


def _percentiles(part: Part, metric: str, clock: str) -> str:
    """Write p50 / p99 of a latency, with a star if the p99 is of too few requests."""
    if isinstance(part, RequestGroup):
        group = getattr(part, f"{metric}_ms")
        p50, p99, count = group.p50, group.p99, group.count
    else:
        latency = part.latency_ms.latency(metric, clock)
        p50, p99, count = latency.p50_ms, latency.p99_ms, latency.count
    return f"{in_table(p50)} / {in_table(p99)}{few_mark('p99', count)}"


def _balance(result: RunResult) -> Iterator[str]:
    yield f"Requests are balanced: {result.provenance.settings.balance}"
    for difference in result.provenance.saved_engine.get("differ", ()):
        yield f"The targets differ in {difference}"


def _recoveries(result: RunResult) -> Iterator[str]:
    """Write when the backlog of each burst had gone."""
    for phase in result.phases:
        if phase.recovered_after_s is not None:
            yield (
                f"Backlog recovered {phase.recovered_after_s:.3g} s after the burst (phase "
                f"{phase.load})"
            )


def _sessions(result: RunResult, turns: int) -> Iterator[str]:
    """Describe the sessions as wholes, and say how many turns have no row."""
    if (sessions := result.sessions) is not None:
        text = (
            f"{sessions.complete} of {sessions.count} sessions complete, "
            f"{sessions.turns_mean:.3g} turns planned on average"
        )
        for title, ms in (("median time", sessions.time_ms.p50), ("p99", sessions.time_ms.p99)):
            text += "" if ms is None else f", {title} of a session {duration(ms / 1000)}"
        yield text
    if left_out := len(result.turns) - turns:
        yield f"and {left_out} more turns in the JSON (loadgen.turns)"
