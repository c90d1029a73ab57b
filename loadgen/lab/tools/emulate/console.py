"""The text of a comparison with a tool: its rows, loadgen's numbers, and the numbered reasons."""

import textwrap
from collections.abc import Iterator

from loadgen.lab.tools.emulate.comparison import ToolComparison
from loadgen.util.terminal_text import printable

WIDTH = 118


def render(comparison: ToolComparison) -> str:
    """Return the whole text, without control characters."""
    return "\n".join(map(printable, _lines(comparison))) + "\n"


def _lines(comparison: ToolComparison) -> Iterator[str]:
    tool, rows = comparison.tool, comparison.rows
    requests = f"{comparison.path} ({comparison.requests} requests)"
    yield f"What {tool.title} would have printed for {requests}, and loadgen's numbers"
    for premise in tool.premises:
        yield f"  {premise}"
    yield ""
    reasons = comparison.reasons
    width = max(len(each.row.label) for each in rows)
    yield f"{'Their row':<{width}} {'theirs':>14} {'ours':>14}  why"
    for each in rows:
        theirs = each.row.shown(each.row.value)
        ours = each.row.shown(each.ours) if each.row.ours else "-"
        numbers = " ".join(str(reasons.index(rule) + 1) for rule in each.why)
        yield f"{each.row.label:<{width}} {theirs:>14} {ours:>14}  {numbers}".rstrip()
    if reasons:
        yield ""
    for number, rule in enumerate(reasons, 1):
        yield from textwrap.wrap(f"{number:>2}  {rule.text}", WIDTH, subsequent_indent="    ")
