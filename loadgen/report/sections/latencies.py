"""Latencies: the table of latencies, its columns, marks and notes."""

from collections.abc import Iterator, Sequence

from loadgen.checks.distortion import GAPS_BELOW_50_US, READ_TOGETHER, allowed_ms
from loadgen.checks.workload import TOKENS_PER_EVENT
from loadgen.config.slo import LATENCY_METRICS
from loadgen.document import Block, Items, Span, Table
from loadgen.metrics.snapshot import DISTRIBUTIONS, LATENCIES, requests_of
from loadgen.metrics.statistic import NO_BOUND
from loadgen.report.result import RunResult
from loadgen.report.result.latencies import Errors
from loadgen.report.sections import CLOCKS, term
from loadgen.stats.percentile_confidence_interval import least_samples
from loadgen.util.number_format import bounds, four_digits, in_table

TITLES = {metric: metric.upper() for metric in LATENCY_METRICS}
TOKEN_ROWS = {"ttft", "ttfo", "tpot", "itl", "icl"}  # rows that answers in one piece do not have
# The checks that find several tokens in one event, or several events sent at once.
BUNDLING = (TOKENS_PER_EVENT, GAPS_BELOW_50_US, READ_TOGETHER)
FEW, INEXACT = "*", "~"  # the marks of a number, and of a row
FEW_REQUESTS = f"{FEW} too few requests"
HEADLINE_COLUMNS = ("p50", "p99")  # columns that are seen where there is no room for all
# The latencies of a short report, with titles that explain themselves.
MAIN = {metric: metric.upper() for metric in ("ttft", "ttfo", "tpot", "icl", "e2el")}
MAIN["icl"] += " (chunk to chunk)"
WAITS = {"lag": "Lag", "pool_wait": "Wait for a slot", "connect": "Connect"}


def blocks(result: RunResult) -> Iterator[Block]:
    """Write every latency with the number of its values, what its marks mean, the intervals of
    percentiles of few values, and what ICL is.
    """
    yield table(result)
    notes = list(marks(result))
    if intervals := [
        text
        for name, title in distributions(result)
        for text in _interval_texts(name, title, result)
    ]:
        notes.append(f"99 % confidence intervals, in ms: {', '.join(intervals)}")
    if result.streams:
        notes += _icl_notes(result)
    if notes:
        yield Items.of(notes)


def table(result: RunResult, named: Sequence[tuple[str, str]] = ()) -> Table:
    """Make the table.

    Args:
        result: The result.
        named: The names and titles of its rows; empty: all that apply, each with the number of its
            values.
    """
    columns = statistics(result)
    rows = list[list[Span | str]]()
    for name, title in named or distributions(result):
        distribution = result.latency_ms.named(name)
        requests = request_count(name, result)
        cells = [in_table(distribution[column]) + few_mark(column, requests) for column in columns]
        counts = [] if named else [str(distribution.count)]
        moved = f" {INEXACT}" if large_client_errors(name, result, columns) else ""
        rows.append([term(name, title + moved), *cells, *counts])
    counted = () if named else ("count",)
    clock = f", from {CLOCKS[result.latency_from]}" if named else ""
    return Table.of((f"Latency (ms){clock}", *columns, *counted), rows, text_columns=1)


def marks(result: RunResult, named: Sequence[tuple[str, str]] = ()) -> Iterator[str]:
    """Write what the marks of the table mean; of which rows as for `table`."""
    columns = statistics(result)
    rows = named or list(distributions(result))
    for name, title in rows:
        if error := large_client_errors(name, result, columns):
            yield f"{INEXACT} {title}: {error}"
    counts = [request_count(name, result) for name, _ in rows]
    if needs := [
        f"{column} needs {least_samples(float(column[1:])):,}"
        for column in columns
        if any(few_mark(column, count) for count in counts)
    ]:
        yield f"{FEW_REQUESTS}: {', '.join(needs)}"


def _icl_notes(result: RunResult) -> Iterator[str]:
    """Say what ICL is, and where it is not the time of a token."""
    yield (
        "ICL: inter-chunk latency, from one event with tokens to the next; vLLM's block calls it "
        "ITL"
    )
    # Gaps between events are no gaps between tokens where an event has several.
    tokens = result.tokens
    bundled = tokens.output_tokens - tokens.hidden_tokens > tokens.token_events
    values = {check.name: check.value for check in result.checks if check.ok is False}
    if reasons := [
        values[name]
        for name in BUNDLING
        if name in values and (bundled or name != TOKENS_PER_EVENT)
    ]:
        yield (
            "ICL is between groups of tokens here; 1000 / ICL is not the tok/s of a user: "
            f"{'; '.join(reasons)}"
        )


def statistics(result: RunResult) -> list[str]:
    """List the columns of the table: mean, percentiles, maximum."""
    percentiles = sorted(result.latency_ms.ttft_due.percentiles_ms, key=lambda p: float(p[1:]))
    return ["mean", *percentiles, "max"]


def distributions(result: RunResult) -> Iterator[tuple[str, str]]:
    """List the rows of the table: the name of each distribution, and its title."""
    clocks = ("due", "sent") if result.latency_from == "due" else ("sent", "due")
    tokens = result.tokens
    # The rows that would only repeat another one, or be all zero.
    redundant = {
        "itl": not tokens.imputed_gaps,  # each event brought one token, as far as the server tells
        "ttfo": not tokens.reasoning_events,  # the first token is the first of the answer: TTFT
        "pool_wait": result.numbers.max_concurrency is None or result.closed_loop,
        "connect": not result.client.late_connections,
    }
    for metric, title in (TITLES | WAITS).items():
        if redundant.get(metric) or (metric in TOKEN_ROWS and not result.streams):
            continue
        if metric in DISTRIBUTIONS:
            yield metric, title
        else:
            for clock in clocks:
                yield f"{metric}_{clock}", f"{title} from {CLOCKS[clock]}"


def measured(result: RunResult) -> Iterator[tuple[str, str]]:
    """List the latencies of the table that were measured, on the clock of the result."""
    other = "_sent" if result.latency_from == "due" else "_due"
    for name, title in distributions(result):
        if name not in WAITS and not name.endswith(other) and result.latency_ms.named(name).count:
            yield name, title


def client_errors(name: str, result: RunResult) -> Errors:
    """Look up the client error of each statistic of a latency, ms; empty if it is unknown."""
    return {} if result.client_error_ms is None else result.client_error_ms.named(name)


def large_client_errors(name: str, result: RunResult, statistics: Sequence[str]) -> str:
    """Say how far the client may have moved statistics of a latency, where that is more than the
    verdict allows.
    """
    if name not in LATENCIES:
        return ""
    if result.tokens.unbounded_events:
        return NO_BOUND
    values = result.latency_ms.named(name)
    errors = client_errors(name, result)
    beyond = [
        f"{four_digits(error)} at {statistic}"
        for statistic in statistics
        if (error := errors.get(statistic)) is not None
        and error > allowed_ms(values[statistic] or 0.0)
    ]
    return f"timing error of loadgen at most {', '.join(beyond)}" if beyond else ""


def request_count(name: str, result: RunResult) -> int:
    """Count the requests that the values of a distribution come from."""
    return requests_of(name, lambda latency: result.latency_ms.named(latency).count)


def few_mark(column: str, requests: int) -> str:
    """Mark a percentile of too few requests with a star."""
    return FEW if column.startswith("p") and 0 < requests < least_samples(float(column[1:])) else ""


def _interval_texts(name: str, title: str, result: RunResult) -> Iterator[str]:
    """Write the intervals of a row that are known of p50 and p99; not of TTFO, which has those of
    TTFT.
    """
    intervals = result.intervals_ms.named(name)
    for column in HEADLINE_COLUMNS:
        low, high = intervals.get(column, (None, None))
        if (low, high) != (None, None) and not name.startswith("ttfo"):
            yield f"{title} {column} {bounds(low, high, in_table, '>= {}', '<= {}')}"
