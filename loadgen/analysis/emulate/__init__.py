"""What other load generators would have printed for a recorded run, and why it differs from loadgen's numbers."""

from loadgen.analysis.emulate.comparison import TOOLS, ToolComparison, compare
from loadgen.analysis.emulate.console import render

__all__ = ["TOOLS", "ToolComparison", "compare", "render"]
