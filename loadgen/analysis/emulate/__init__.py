"""Tools: what other load generators would have printed of a recorded run, and why it is not what loadgen says."""

from loadgen.analysis.emulate.comparison import TOOLS, Comparison, compare
from loadgen.analysis.emulate.console import render

__all__ = ["TOOLS", "Comparison", "compare", "render"]
