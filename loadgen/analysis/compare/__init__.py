"""Comparing: runs side by side, what they differ by, and how sure that is."""

from loadgen.analysis.compare.comparison import Comparison, compare
from loadgen.analysis.compare.console import render
from loadgen.analysis.compare.noise_file import NoiseFile
from loadgen.analysis.compare.page import page
from loadgen.analysis.compare.rendering import as_json
from loadgen.analysis.compare.side import Side

__all__ = ["Comparison", "NoiseFile", "Side", "as_json", "compare", "page", "render"]
