"""Numbers: those that stand for the run, those that were demanded of it, and every latency in a table."""

from collections.abc import Iterator, Mapping
from typing import Any

from loadgen.report import console
from loadgen.report.html import Block, Fact, Facts, Items, Paragraph, Table, cell, line
from loadgen.report.run_page.glossary import term
from loadgen.util.number_format import fixed, four_digits, percent

HEADLINE = {"ttft": "TTFT", "tpot": "TPOT", "icl": "ICL", "e2el": "E2EL"}


def headline(result: Mapping[str, Any]) -> Facts:
    """The numbers that one is to see at once."""
    own = result["loadgen"]
    asked, peak = result["request_rate"], result["max_output_tokens_per_s"]
    ok, failed = result["completed"], result["failed"]
    facts = [
        Fact(term("requests", "Requests"), f"{ok} ok", f"of {own['scheduled']}; {failed} failed"),
        Fact(
            term("request_throughput", "Request throughput"),
            four_digits(result["request_throughput"], "req/s"),
            "" if asked == "inf" else f"asked: {asked:g} req/s",
        ),
        Fact(
            term("output_throughput", "Output throughput"),
            four_digits(result["output_throughput"], "tok/s"),
            f"{four_digits(peak, 'tok/s')} in the best second",
        ),
    ]
    for metric, title in HEADLINE.items():
        name = metric if metric in own["latency_ms"] else f"{metric}_{own['latency_from']}"
        found = own["latency_ms"][name]
        mark = console.mark("p99", console.of_requests(name, own))
        beside = f"p99 {four_digits(found['p99'], 'ms')}{mark}" if found["count"] else ""
        facts.append(Fact(term(name, f"{title}, median"), four_digits(found["p50"], "ms"), beside))
    rates = own["rates"]
    if rates["good_share"] is not None:
        goodput = four_digits(rates["goodput_requests_per_s"], "req/s")
        facts.append(Fact(term("goodput", "Goodput"), goodput, f"{percent(rates['good_share'], 2)} of all requests"))
    if own["slo"]:
        met = sum(row["met"] for row in own["slo"])
        said = "met" if met == len(own["slo"]) else "MISSED"
        beside = f"{met} of {len(own['slo'])} limits met"
        failing = console.not_ok(own) if said == "MISSED" else None
        facts.append(Fact(term("slo", "SLO"), said, f"{beside}; {failing}" if failing else beside))
    return Facts(tuple(facts))


def demanded(own: dict[str, Any]) -> Iterator[Block]:
    """Rates beyond the headline, and each limit of the SLO; nothing where there is neither."""
    said = [*console.of_rates(own), *console.of_slo(own)]
    if said:
        yield Items(tuple(map(line, said)))


def latencies(own: dict[str, Any]) -> Iterator[Block]:
    """Every latency: its mean, percentiles and maximum, and how sure those are that are of few values."""
    columns = console.statistics(own)
    rows, sure = [], list[str]()
    for name, title in console.distributions(own):
        found = own["latency_ms"][name]
        cells = [f"{fixed(found[each])}{console.mark(each, console.of_requests(name, own))}" for each in columns]
        rows.append((cell(term(name, title)), cell(str(found["count"])), *map(cell, cells)))
        sure += console.interval(name, title, own)
    yield Table(("Latency (ms)", "count", *columns), tuple(rows), words=1)
    if sure:
        yield Paragraph(line(f"{console.OF_FEW}: {', '.join(sure)}."))
