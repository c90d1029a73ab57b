"""A comparison as text: the tool's rows, loadgen's, the reasons by number, and these in words."""

import textwrap
from collections.abc import Iterator

from loadgen.analysis.emulate.comparison import Comparison
from loadgen.util.terminal_text import printable

WIDTH = 118


def render(comparison: Comparison) -> str:
    """The whole text; nothing in it moves a terminal."""
    return "\n".join(map(printable, _lines(comparison))) + "\n"


def _lines(comparison: Comparison) -> Iterator[str]:
    tool, lines = comparison.tool, comparison.lines
    yield f"What {tool.title} would have printed of {comparison.path} ({comparison.requests} requests), beside loadgen"
    for premise in tool.premises:
        yield f"  {premise}"
    yield ""
    reasons = comparison.reasons
    width = max(len(line.row.label) for line in lines)
    yield f"{'Their row':<{width}} {'theirs':>14} {'ours':>14}  why"
    for line in lines:
        theirs = line.row.shown(line.row.value)
        ours = line.row.shown(line.ours) if line.row.ours else "-"
        numbers = " ".join(str(reasons.index(rule) + 1) for rule in line.why)
        yield f"{line.row.label:<{width}} {theirs:>14} {ours:>14}  {numbers}".rstrip()
    if reasons:
        yield ""
    for number, rule in enumerate(reasons, 1):
        yield from textwrap.wrap(f"{number:>2}  {rule.says}", WIDTH, subsequent_indent="    ")
