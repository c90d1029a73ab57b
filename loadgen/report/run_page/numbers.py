"""Numbers: the headline figures, further rates with the limits of the SLO, and a table of all latencies."""

from collections.abc import Iterator

from loadgen.config import slo
from loadgen.metrics.failures import lost_text
from loadgen.report import efficiency_lines, group_tables, latency_table, token_lines, verdict_lines
from loadgen.report.html import Block, Fact, Facts, Items, Paragraph, Span, Table
from loadgen.report.result import RunResult
from loadgen.report.run_page.glossary import term
from loadgen.report.summary_line import answer_rate
from loadgen.util.number_format import four_digits, latency, three_digits

HEADLINE_COLUMNS = ("p50", "p99")  # columns that are seen where there is no room for all


def headline(result: RunResult) -> Facts:
    """Select the six main numbers of the run."""
    numbers = result.numbers
    asked, peak = numbers.request_rate, numbers.max_output_tokens_per_s
    lost = lost_text(result.cancelled.in_flight, result.cancelled.never_sent)
    ends = f"of {result.scheduled}; {numbers.failed} failed{f', {lost}' if lost else ''}"
    wanted = "" if isinstance(asked, str) else f"asked: {asked:g} req/s"
    gone_s = result.no_answer_since_s
    tokens_per_s = numbers.output_throughput if gone_s is None else numbers.total_output_tokens / gone_s
    beside_tokens = "" if peak is None or numbers.duration < 1 else f"{three_digits(peak, 'tok/s')} in the best second"
    if gone_s is not None:
        until = f"until {gone_s:.1f} s"
        wanted, beside_tokens = f"{until}{f'; {wanted}' if wanted else ''}", f"{until}; {beside_tokens}"
    facts = [Fact(term("requests", "Requests"), f"{numbers.completed} ok", ends), Fact(*_rate(result), wanted)]
    if result.generates:
        facts.append(
            Fact(term("output_throughput", "Output tokens"), three_digits(tokens_per_s, "tok/s"), beside_tokens)
        )
    else:
        facts.append(Fact(Span("Input tokens"), three_digits(numbers.total_token_throughput, "tok/s"), ""))
    for metric in group_tables.metrics(result):
        name, found = slo.distribution(metric, result.latency_from), result.latency(metric)
        few = " (few values)" if latency_table.few_mark("p99", latency_table.request_count(name, result)) else ""
        p99 = f"p99 {latency(found.p99_ms)}{few}" if found.count else ""
        beside = filter(None, (p99, latency_table.large_client_errors(name, result, HEADLINE_COLUMNS)))
        facts.append(Fact(term(name, f"{metric.upper()} p50"), latency(found.p50_ms), "; ".join(beside)))
    return Facts(tuple(facts))


def _rate(result: RunResult) -> tuple[Span, str]:
    answered = answer_rate(result)
    if answered is None:
        return term("request_throughput", "Throughput"), three_digits(result.numbers.request_throughput, "req/s")
    return term("answer_rate", "Answers"), three_digits(answered, "req/s")


def rates_and_limits(result: RunResult) -> Iterator[Block]:
    """Write what stands beyond the headline: structured output, rates, efficiency, and each limit of the SLO."""
    of_tokens = (*token_lines.structured_output(result), *token_lines.rates(result))
    lines = [*of_tokens, *efficiency_lines.lines(result), *verdict_lines.slo_lines(result)]
    if lines:
        yield Items.of(lines)


def latencies(result: RunResult) -> Iterator[Block]:
    """Write every latency: percentiles, mean and maximum, and the intervals of those that are of few values."""
    statistics = latency_table.statistics(result)
    columns = [*HEADLINE_COLUMNS, *(each for each in statistics if each not in HEADLINE_COLUMNS)]
    rows, intervals, errors = list[list[Span | str]](), list[str](), list[str]()
    for name, title in latency_table.distributions(result):
        found, requests = result.latency_ms.named(name), latency_table.request_count(name, result)
        cells = [f"{four_digits(found.statistic_ms(each))}{latency_table.few_mark(each, requests)}" for each in columns]
        rows.append([term(name, title), *cells, str(found.count)])
        intervals += latency_table.interval_text(name, title, result)
        if error := latency_table.large_client_errors(name, result, statistics):
            errors.append(f"{title}: {error}")
    yield Table.of(("Latency (ms)", *columns, "count"), rows, text_columns=1)
    if intervals:
        yield Paragraph.of(f"{latency_table.FEW_REQUESTS}: {', '.join(intervals)}.")
    if errors:
        yield Items.of(errors)
