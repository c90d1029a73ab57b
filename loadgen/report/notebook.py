"""Notebook: a run as the HTML that a notebook shows below a cell."""

from collections.abc import Iterator

from loadgen.report import ci_summary, html, load_line, verdict_lines
from loadgen.report.html import Block, Document, Items, Note, Paragraph, Span, Tone, line
from loadgen.report.result import RunResult
from loadgen.report.run_page import verdict
from loadgen.report.summary_line import summary_line


def notebook_html(result: RunResult) -> str:
    """Write the answer, the figures and the failed checks of a run as HTML without a style of its own."""
    return html.fragment(Document("", tuple(_blocks(result))))


def _blocks(result: RunResult) -> Iterator[Block]:
    yield Paragraph(line(Span(summary_line(result), Tone.STRONG)))
    yield Paragraph(line(load_line.full_text(result)))
    for banner in verdict_lines.banners(result):
        yield Note("warning", banner, ())
    yield from ci_summary.figures(result)
    if wrong := result.failed_checks:
        yield Items(tuple(map(verdict.reason, wrong)))
