"""Groups: what became of the requests of each target, class, phase of a load profile, and turn
of sessions.
"""

from collections.abc import Iterator, Mapping, Sequence

from loadgen.document import Block, Items, Note, Table
from loadgen.report.result import RunResult
from loadgen.report.result.latencies import Latencies
from loadgen.report.result.request_groups import ClassResult, PhaseResult, RequestGroup, Target
from loadgen.report.sections import CLOCKS
from loadgen.report.sections.latencies import few_mark
from loadgen.util.number_format import UNKNOWN, duration, fixed, in_table, percent

MAX_TURNS = 20  # rows of a short report
# A group: its name, a cell below each heading, and p50 / p99 of each latency.
Row = tuple[str, Mapping[str, object], Sequence[str]]


def blocks(result: RunResult, most_turns: int | None = None) -> Iterator[Block]:
    """Write a row for each target, class, phase and turn; nothing where a run has none of them.

    Args:
        result: The result.
        most_turns: How many turns have a row; None: all.
    """
    if result.targets:
        differ = result.provenance.engine.differ
        about = [f"Requests are balanced: {result.provenance.settings.balance}"]
        if isinstance(differ, list):
            about += (f"The targets differ in {difference}" for difference in differ)
        yield _note("Targets", targets(result), about, result)
    if result.classes:
        yield _note("Classes", classes(result), (), result)
    if result.phases:
        named = [(phase.load, phase) for phase in result.phases]
        yield _note(
            "Phases of the load", _groups("phase", named, result), list(_recoveries(result)), result
        )
    if result.turns:
        numbered = [(str(turn.turn), turn) for turn in result.turns[:most_turns]]
        about = list(filter(None, [_sessions_text(result)]))
        if most_turns is not None and len(result.turns) > most_turns:
            left_out = len(result.turns) - most_turns
            about.append(f"and {left_out} more turns in the JSON (loadgen.turns)")
        yield _note("Turns of sessions", _groups("turn", numbered, result), about, result)


def targets(result: RunResult) -> Table:
    """Make a row for each target."""
    rows: list[Row] = []
    for target in result.targets:
        throughput = fixed(target.output_throughput, 2)
        cells = _counts(target) | {"tok/s": throughput, "peak": target.max_concurrent_requests}
        rows.append((target.base_url, cells, _distributions(target.latency_ms, result)))
    return _table("target", rows, result)


def classes(result: RunResult) -> Table:
    """Make a row for each class, with columns of users who left and of goodput where there are
    any.
    """
    rows: list[Row] = []
    left = any(part.left for part in result.classes)
    for part in result.classes:
        cells = {"share": percent(part.share, 1)} | _counts(part)
        cells |= {"tok/s": fixed(part.output_throughput, 2), "left": part.left if left else None}
        cells["good"] = _share(part.good_share)
        rows.append((part.name, cells, _distributions(part.latency_ms, result)))
    return _table("class", rows, result)


def metrics(result: RunResult) -> tuple[str, ...]:
    """Name the main latencies, without a clock: E2EL alone where answers have no tokens."""
    return ("ttft", "tpot", "e2el") if result.streams else ("e2el",)


def _note(title: str, table: Table, about: Sequence[str], result: RunResult) -> Note:
    title = f"{title}; latencies are p50 / p99 in ms from {CLOCKS[result.latency_from]}"
    return Note.fold(title, table, *([Items.of(about)] if about else ()))


def _groups(head: str, groups: Sequence[tuple[str, RequestGroup]], result: RunResult) -> Table:
    """Make a row for each group, with columns of users who left and of the cache where there are
    any.
    """
    rows: list[Row] = []
    left = any(group.left for _, group in groups)
    for name, group in groups:
        cells = _counts(group) | {"left": group.left if left else None}
        cells["cached"] = _share(group.cached_share)
        if isinstance(group, PhaseResult):
            cells["ok/s"] = fixed(group.answers_per_s, 2)
            cells["tok/s"] = fixed(group.output_throughput, 1)
        latencies = (getattr(group, f"{metric}_ms") for metric in metrics(result))
        texts = [_percentiles(latency.p50, latency.p99, latency.count) for latency in latencies]
        rows.append((name, cells, texts))
    return _table(head, rows, result)


def _counts(part: Target | ClassResult | RequestGroup) -> dict[str, object]:
    return {"requests": part.requests, "ok": part.ok, "failed": part.failed}


def _table(head: str, rows: Sequence[Row], result: RunResult) -> Table:
    """Make the table of some groups; a column that none of them has is left out."""
    titles = [
        title for title in rows[0][1] if any(cells[title] is not None for _, cells, _ in rows)
    ]
    written = []
    for name, cells, texts in rows:
        known = (UNKNOWN if cells[title] is None else str(cells[title]) for title in titles)
        written.append((name, *known, *texts))
    latencies = (metric.upper() for metric in metrics(result))
    return Table.of((head, *titles, *latencies), written, text_columns=1)


def _recoveries(result: RunResult) -> Iterator[str]:
    """Write when the backlog of each burst had gone."""
    for phase in result.phases:
        if phase.recovered_after_s is not None:
            yield (
                f"Backlog recovered {phase.recovered_after_s:.3g} s after the burst (phase "
                f"{phase.load})"
            )


def _sessions_text(result: RunResult) -> str:
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


def _share(share: float | None) -> str | None:
    return None if share is None else percent(share, 1)


def _percentiles(p50: float | None, p99: float | None, count: int) -> str:
    """Write p50 / p99, with a star if the p99 is of too few requests."""
    return f"{in_table(p50)} / {in_table(p99)}{few_mark('p99', count)}"
