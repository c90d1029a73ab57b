"""Latencies: the table of latencies, its columns, marks and notes."""

from collections.abc import Iterator, Sequence

from loadgen.checks.distortion import GAPS_BELOW_50_US, READ_TOGETHER, allowed_ms
from loadgen.checks.workload import TOKENS_PER_EVENT
from loadgen.config.slo import LATENCY_METRICS
from loadgen.document import Block, Items, Paragraph, Span, Table
from loadgen.metrics.snapshot import DISTRIBUTIONS, LATENCIES, requests_of
from loadgen.metrics.statistic import NO_BOUND
from loadgen.report.result import RunResult
from loadgen.report.result.latencies import Errors
from loadgen.report.sections.glossary import term
from loadgen.stats.percentile_confidence_interval import least_samples
from loadgen.util.number_format import bounds, fixed, four_digits, in_table

TITLES = {metric: metric.upper() for metric in LATENCY_METRICS}
TOKEN_ROWS = {"ttft", "ttfo", "tpot", "itl", "icl"}  # rows that answers in one piece do not have
# The checks that find several tokens in one event, or several events sent at once.
BUNDLING = (TOKENS_PER_EVENT, GAPS_BELOW_50_US, READ_TOGETHER)
FEW, INEXACT = "*", "~"  # the marks of a number, and of a row
FEW_REQUESTS = f"{FEW} few requests"
HEADLINE_COLUMNS = ("p50", "p99")  # columns that are seen where there is no room for all
WAITS = {"lag": "Lag", "pool_wait": "Wait for a slot", "connect": "Connect"}


def rows(result: RunResult, named: Sequence[tuple[str, str]] = ()) -> Iterator[str]:
    """Write the table.

    Args:
        result: The result.
        named: The names and titles of its rows; empty: all that apply.
    """
    columns = statistics(result)
    yield f"{'Latency (ms)':<18}" + "".join(f"{column:>11}" for column in columns)
    for name, title in named or distributions(result):
        distribution = result.latency_ms.named(name)
        requests = request_count(name, result)
        line = f"{title + _inexact_mark(name, result, columns):<18}"
        star = ""
        for column in columns:
            # The mark stands in the space before the next column.
            line += f"{fixed(distribution.statistic_ms(column)):>{11 - len(star)}}"
            star = few_mark(column, requests)
            line += star
        yield line


def marks(result: RunResult, named: Sequence[tuple[str, str]] = ()) -> Iterator[str]:
    """Write what the marks of the table mean; of which rows as for `rows`."""
    columns = statistics(result)
    named = named or list(distributions(result))
    for name, title in named:
        if error := large_client_errors(name, result, columns):
            yield f"{INEXACT} {title}: {error}"
    if few := _few_text(result, named):
        yield few


def notes(result: RunResult) -> Iterator[str]:
    """Write the notes below the table: its marks, and what ICL is."""
    yield from marks(result)
    if not result.streams:
        return
    yield (
        "ICL: inter-chunk latency, from one event with tokens to the next; vLLM, and the block "
        "above, call it ITL"
    )
    # Gaps between events are no gaps between tokens where an event has several.
    tokens = result.tokens
    bundled = tokens.output_tokens - tokens.hidden_tokens > tokens.token_events
    values = {check.name: check.value for check in result.checks if check.ok is False}
    reasons = [
        values[name]
        for name in BUNDLING
        if name in values and (bundled or name != TOKENS_PER_EVENT)
    ]
    if reasons:
        yield (
            "  ICL is between groups of tokens here; 1000 / ICL is not the tok/s of a user: "
            f"{'; '.join(reasons)}"
        )


def blocks(result: RunResult) -> Iterator[Block]:
    """Write every latency: percentiles, mean and maximum, and the intervals of those that are of
    few values.
    """
    columns = statistics(result)
    rows = list[list[Span | str]]()
    intervals = list[str]()
    errors = list[str]()
    for name, title in distributions(result):
        distribution = result.latency_ms.named(name)
        requests = request_count(name, result)
        cells = [
            f"{in_table(distribution.statistic_ms(column))}{few_mark(column, requests)}"
            for column in columns
        ]
        marked = title + _inexact_mark(name, result, columns)
        rows.append([term(name, marked), *cells, str(distribution.count)])
        intervals += _interval_text(name, title, result)
        if error := large_client_errors(name, result, columns):
            errors.append(f"{INEXACT} {title}: {error}")
    yield Table.of(("Latency (ms)", *columns, "count"), rows, text_columns=1)
    if few := _few_text(result, list(distributions(result))):
        yield Paragraph.of(f"{few}.")
    if intervals:
        yield Paragraph.of(f"99 % confidence intervals, in ms: {', '.join(intervals)}.")
    if errors:
        yield Items.of(errors)


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
                yield f"{metric}_{clock}", f"{title} from {clock}"


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
        and error > allowed_ms(values.statistic_ms(statistic) or 0.0)
    ]
    return f"client at most {', '.join(beyond)}" if beyond else ""


def is_inexact(name: str, statistic: str, result: RunResult) -> bool:
    """Whether the client may have moved a statistic of a latency by more than allowed."""
    return bool(large_client_errors(name, result, (statistic,)))


def request_count(name: str, result: RunResult) -> int:
    """Count the requests that the values of a distribution come from."""
    return requests_of(name, lambda latency: result.latency_ms.named(latency).count)


def few_mark(column: str, requests: int) -> str:
    """Mark a percentile of too few requests with a star."""
    return FEW if column.startswith("p") and 0 < requests < least_samples(float(column[1:])) else ""


def _inexact_mark(name: str, result: RunResult, statistics: Sequence[str]) -> str:
    """Mark a row of which the client may have moved a number by more than the verdict allows."""
    return f" {INEXACT}" if large_client_errors(name, result, statistics) else ""


def _few_text(result: RunResult, named: Sequence[tuple[str, str]]) -> str:
    """Say what the stars mean: how many requests each percentile needs that has one."""
    counts = [request_count(name, result) for name, _ in named]
    needs = [
        f"{column} needs {least_samples(float(column[1:])):,}"
        for column in statistics(result)
        if any(few_mark(column, count) for count in counts)
    ]
    return f"{FEW_REQUESTS}: {', '.join(needs)}" if needs else ""


def _interval_text(name: str, title: str, result: RunResult) -> Iterator[str]:
    """Write the intervals of a row that are known of p50 and p99; not of TTFO, which has those of
    TTFT.
    """
    intervals = result.intervals_ms.named(name)
    for column in HEADLINE_COLUMNS:
        low, high = intervals.get(column, (None, None))
        if (low, high) != (None, None) and not name.startswith("ttfo"):
            yield f"{title} {column} {bounds(low, high, in_table, '>= {}', '<= {}')}"
