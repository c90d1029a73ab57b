"""Notebook: a run as the HTML that a notebook shows below a cell."""

from loadgen.report import ci_summary, html
from loadgen.report.html import Document, Items
from loadgen.report.result import RunResult
from loadgen.report.run_page import verdict


def notebook_html(result: RunResult) -> str:
    """Write the answer, the figures and the failed checks of a run as HTML without a style of its own."""
    blocks = [*ci_summary.opening(result), *ci_summary.figures(result)]
    if wrong := result.failed_checks:
        blocks.append(Items(tuple(map(verdict.reason, wrong))))
    return html.fragment(Document("", tuple(blocks)))
