"""What other load generators would have printed for a recorded run, and why it differs from
loadgen's numbers.
"""

from loadgen.lab.tools.emulate.comparison import TOOLS, ToolComparison, compare, render
from loadgen.report import to_json

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
    return to_json(comparison.to_dict()) + "\n" if as_json else render(comparison)
