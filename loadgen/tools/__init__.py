"""Tools: what other load generators would have printed of a recorded run, and why it is not what loadgen says."""

from loadgen.tools.comparison import TOOLS, Comparison, compare
from loadgen.tools.console import render

__all__ = ["TOOLS", "Comparison", "compare", "render"]
