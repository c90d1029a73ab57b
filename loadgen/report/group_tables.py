"""Group tables: the phases of a rate profile, and the turns of sessions."""

from collections.abc import Iterator, Sequence

from loadgen.report.latency_table import few_mark
from loadgen.report.result import RunResult
from loadgen.report.result.request_group import GroupLatency, RequestGroup
from loadgen.util.number_format import duration, fixed, percent

COUNTS, LEFT, CACHED = (("requests", 9), ("ok", 7), ("failed", 7)), ("left", 7), ("cached", 8)
RATES = (("ok/s", 9), ("tok/s", 10))
METRICS = {"TTFT": "ttft_ms", "TPOT": "tpot_ms", "E2EL": "e2el_ms"}
MAX_TURNS = 20  # rows of the table of turns


def metrics(result: RunResult) -> dict[str, str]:
    """Return the latencies that groups of a result have: titles, and fields of a `RequestGroup`."""
    return METRICS if result.streams else {"E2EL": "e2el_ms"}


def counts(groups: Sequence[RequestGroup]) -> tuple[tuple[str, int], ...]:
    """Return the titles of the counts that groups have, each with the width of its column."""
    left = (LEFT,) if any(group.left for group in groups) else ()
    cached = (CACHED,) if any(group.cached_share is not None for group in groups) else ()
    return (*COUNTS, *left, *cached)


def count_cells(group: RequestGroup, groups: Sequence[RequestGroup]) -> list[str]:
    """Return what a group has below the titles of `counts(groups)`."""
    fields = {"cached": percent(group.cached_share, 1)}
    return [fields[title] if title in fields else str(getattr(group, title)) for title, _ in counts(groups)]


def tables(result: RunResult) -> Iterator[str]:
    """Write the tables for the console; nothing where a run has no groups."""
    if result.phases:
        names = [phase.load for phase in result.phases]
        rates = [(phase.answers_per_s, phase.output_throughput) for phase in result.phases]
        yield from _table(result, "phase", names, result.phases, rates)
        for phase in result.phases:
            if phase.recovered_after_s is not None:
                yield f"Backlog recovered {phase.recovered_after_s:.3g} s after the burst (phase {phase.load})"
        yield ""
    if result.turns:
        shown = result.turns[:MAX_TURNS]
        yield from _table(result, "turn", [str(turn.turn) for turn in shown], shown)
        if len(result.turns) > MAX_TURNS:
            yield f"and {len(result.turns) - MAX_TURNS} more turns in the JSON (loadgen.turns)"
        yield sessions_line(result)
        yield ""


def sessions_line(result: RunResult) -> str:
    """Describe the sessions as wholes; empty without any."""
    sessions = result.sessions
    if sessions is None:
        return ""
    text = (
        f"{sessions.complete} of {sessions.count} sessions complete, {sessions.turns_mean:.3g} turns planned on average"
    )
    times = (sessions.time_ms.p50, sessions.time_ms.p99)
    return text + "".join(
        f", {title} of a session {duration(ms / 1000)}"
        for title, ms in zip(("median time", "p99"), times, strict=True)
        if ms is not None
    )


def _table(
    result: RunResult,
    kind: str,
    names: Sequence[str],
    groups: Sequence[RequestGroup],
    rates: Sequence[tuple[float, float]] = (),
) -> Iterator[str]:
    width = max(map(len, (kind, *names)))
    columns = (*counts(groups), *(RATES if rates else ()))
    titles = "".join(f"{title:>{wide}}" for title, wide in columns)
    yield f"{kind.capitalize()}s; latencies in ms from {result.latency_from}, p50 / p99"
    yield f"{kind:<{width}}{titles}" + "".join(f"{name:>20}" for name in metrics(result))
    for number, (name, group) in enumerate(zip(names, groups, strict=True)):
        cells = count_cells(group, groups)
        if rates:
            cells += [fixed(rates[number][0], 2), fixed(rates[number][1], 1)]
        line = "".join(f"{cell:>{wide}}" for cell, (_, wide) in zip(cells, columns, strict=True))
        for field in metrics(result).values():
            text = percentiles(getattr(group, field))
            line += f"{text:>20}" if text.endswith("*") else f"{text:>19} "
        yield f"{name:<{width}}{line}".rstrip()


def percentiles(latency: GroupLatency) -> str:
    """Write p50 / p99, with a star if the p99 is of too few requests."""
    return f"{fixed(latency.p50, 2)} / {fixed(latency.p99, 2)}{few_mark('p99', latency.count)}"
