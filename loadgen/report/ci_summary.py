"""Summaries of results: Markdown that GitHub renders, JUnit suites, and the HTML that a notebook
shows below a cell.
"""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from loadgen.document import (
    Block,
    Heading,
    Items,
    Note,
    Paragraph,
    Span,
    Table,
    Tone,
    page_writer,
)
from loadgen.report import gate, load_line, run_page
from loadgen.report.result import RunResult
from loadgen.report.result.series import Series
from loadgen.report.run_page import run
from loadgen.report.sections import latencies, verdict
from loadgen.report.summary_line import summary_line
from loadgen.util.number_format import four_digits, in_table, three_digits

STATES = {
    True: Span("passed", Tone.GOOD),
    False: Span("FAILED", Tone.BAD),
    None: Span("cannot tell", Tone.STRONG),
}


def markdown(result: RunResult | Series) -> str:
    """Write the summary of a run, or the page of a series without its charts, as Markdown for
    GitHub.
    """
    if isinstance(result, Series):
        return page_writer.github(run_page.document([result]))
    blocks: list[Block] = [Note("warning", banner, ()) for banner in verdict.banners(result)]
    blocks += gate_blocks(gate.demands(result))
    blocks += [Heading(2, "Figures"), *figures(result)]
    if result.failed_checks:
        blocks += [
            Heading(2, "Checks that failed"),
            Items(tuple(verdict.failed(result))),
        ]
    document = run.document(result, blocks)
    if label := result.provenance.settings.label:
        document = replace(document, title=f"{label}: {document.title}")
    return page_writer.github(document)


def suite(result: RunResult) -> gate.Suite:
    """Make the JUnit suite of a run: a test case for each demand of its gate."""
    settings = result.provenance.settings
    properties = {
        "model": result.numbers.model_id,
        "target": result.provenance.target_urls,
        "label": settings.label or "",
    }
    properties |= {"summary": summary_line(result)}
    return gate.Suite(
        "run",
        load_line.title(result),
        gate.demands(result),
        result.numbers.duration or 0.0,
        run.date(result.numbers).replace(" ", "T"),
        {name: value for name, value in properties.items() if value},
    )


def gate_blocks(demands: Sequence[gate.Demand]) -> Iterator[Block]:
    """Write a gate as a heading with its outcome, and a table of the demands."""
    yield Heading(2, f"Gate: {gate.outcome(demands)}")
    rows = (
        (STATES[demand.met], Span(demand.name, Tone.CODE), demand.finding) for demand in demands
    )
    yield Table.of(("", "Demand", "Found"), rows)


def figures(result: RunResult) -> Iterator[Block]:
    """Write the rates of a run as a table, and its latencies on the clock of the result, each with
    the largest client error of its figures.
    """
    numbers = result.numbers
    rates = {
        "req/s": three_digits(numbers.request_throughput),
        "output tok/s": three_digits(numbers.output_throughput),
        "total tok/s": three_digits(numbers.total_token_throughput),
        "peak in flight": str(numbers.max_concurrent_requests),
        "ok": str(numbers.completed),
        "failed": str(numbers.failed),
    }
    if not result.generates:
        del rates["output tok/s"]
    yield Table.of(tuple(rates), [rates.values()], text_columns=0)
    if numbers.completed:
        columns = latencies.statistics(result)
        rows = []
        for name, title in latencies.measured(result):
            values = result.latency_ms.named(name)
            requests = latencies.request_count(name, result)
            cells = [
                in_table(values[column]) + latencies.few_mark(column, requests)
                for column in columns
            ]
            errors = latencies.client_errors(name, result)
            errors_ms = [error for column in columns if (error := errors.get(column)) is not None]
            rows.append((title, *cells, four_digits(max(errors_ms, default=None))))
        yield Table.of(("Latency (ms)", *columns, "timing error of loadgen"), rows, text_columns=1)
        if any("*" in "".join(row[1:]) for row in rows):
            yield Paragraph.of("* too few requests")


def notebook_html(result: RunResult) -> str:
    """Write the answer, the figures and the failed checks of a run as HTML without a style of
    its own.
    """
    blocks: list[Block] = [Note("warning", banner, ()) for banner in verdict.banners(result)]
    blocks += figures(result)
    if result.failed_checks:
        blocks.append(Items(tuple(verdict.failed(result))))
    return page_writer.fragment(run.document(result, blocks))
