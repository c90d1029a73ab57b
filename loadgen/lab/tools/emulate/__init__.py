"""What other load generators would have printed for a recorded run, and why it differs from
loadgen's numbers.
"""

import sys

from loadgen.lab.tools.emulate.comparison import TOOLS, ToolComparison, compare, render
from loadgen.report import to_json
from loadgen.util.terminal_text import Screen

__all__ = ["TOOLS", "ToolComparison", "compare", "emulate", "render"]


def emulate(path: str, tool: str, *, as_json: bool) -> str:
    """Return what `loadgen report --as TOOL` prints: an entry point of `loadgen.emulations`.

    Args:
        path: A file of records.
        tool: The name of the tool.
        as_json: Whether to write JSON instead of a table.

    Raises:
        BadInput: The tool is unknown, or the file cannot be read.
    """
    comparison = compare(path, tool)
    if as_json:
        return to_json(comparison.to_dict()) + "\n"
    return render(comparison, Screen.of(sys.stdout))
