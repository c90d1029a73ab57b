"""Numbers: those that stand for the run, those that were demanded of it, and every latency in a table."""

from collections.abc import Iterator

from loadgen.config import slo
from loadgen.report import console
from loadgen.report.html import Block, Fact, Facts, Items, Paragraph, Table, cell, line
from loadgen.report.result import RunResult
from loadgen.report.result.limit import all_met
from loadgen.report.run_page.glossary import term
from loadgen.util.number_format import fixed, four_digits, percent

HEADLINE = {"ttft": "TTFT", "tpot": "TPOT", "icl": "ICL", "e2el": "E2EL"}


def headline(result: RunResult) -> Facts:
    """Select the numbers that one is to see at once."""
    numbers = result.numbers
    asked, peak = numbers.request_rate, numbers.max_output_tokens_per_s
    ok, failed = numbers.completed, numbers.failed
    facts = [
        Fact(term("requests", "Requests"), f"{ok} ok", f"of {result.scheduled}; {failed} failed"),
        Fact(
            term("request_throughput", "Request throughput"),
            four_digits(numbers.request_throughput, "req/s"),
            "" if isinstance(asked, str) else f"asked: {asked:g} req/s",
        ),
        Fact(
            term("output_throughput", "Output throughput"),
            four_digits(numbers.output_throughput, "tok/s"),
            f"{four_digits(peak, 'tok/s')} in the best second",
        ),
    ]
    for metric, title in HEADLINE.items():
        name, found = slo.distribution(metric, result.latency_from), result.latency(metric)
        p99 = f"p99 {four_digits(found.p99_ms, 'ms')}{console.mark('p99', console.of_requests(name, result))}"
        error = console.client_error(name, result, ("p50", "p99"))
        beside = "; ".join(filter(None, (p99 if found.count else "", error)))
        facts.append(Fact(term(name, f"{title}, median"), four_digits(found.p50_ms, "ms"), beside))
    rates = result.rates
    if rates.good_share is not None:
        goodput = four_digits(rates.goodput_requests_per_s, "req/s")
        facts.append(Fact(term("goodput", "Goodput"), goodput, f"{percent(rates.good_share, 2)} of all requests"))
    if result.slo:
        met = sum(bool(row.met) for row in result.slo)
        is_met = all_met(result.slo)
        beside = f"{met} of {len(result.slo)} limits met"
        failing = None if is_met else console.not_ok(result)
        text = console.MET[is_met]
        facts.append(Fact(term("slo", "SLO"), text, f"{beside}; {failing}" if failing else beside))
    return Facts(tuple(facts))


def rates_and_limits(result: RunResult) -> Iterator[Block]:
    """Write the rates beyond the headline, and each limit of the SLO; nothing where there is neither."""
    lines = [*console.of_rates(result), *console.of_slo(result)]
    if lines:
        yield Items(tuple(map(line, lines)))


def latencies(result: RunResult) -> Iterator[Block]:
    """Write every latency: its mean, percentiles and maximum, and the intervals of those that are of few values."""
    columns = console.statistics(result)
    rows, intervals, errors = [], list[str](), list[str]()
    for name, title in console.distributions(result):
        found, requests = result.latency_ms.named(name), console.of_requests(name, result)
        cells = [f"{fixed(found.statistic_ms(each))}{console.mark(each, requests)}" for each in columns]
        rows.append((cell(term(name, title)), cell(str(found.count)), *map(cell, cells)))
        intervals += console.interval(name, title, result)
        errors += [f"{title}: {error}" for error in [console.client_error(name, result, columns)] if error]
    yield Table(("Latency (ms)", "count", *columns), tuple(rows), words=1)
    if intervals:
        yield Paragraph(line(f"{console.OF_FEW}: {', '.join(intervals)}."))
    if errors:
        yield Items(tuple(map(line, errors)))
