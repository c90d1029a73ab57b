"""Comparison of runs: what a candidate differs by from a baseline, and how sure that is."""

from loadgen.analysis.compare.comparison import Comparison, compare
from loadgen.analysis.compare.confidence_interval import NoiseFile
from loadgen.analysis.compare.json_report import as_json
from loadgen.analysis.compare.judged_comparison import JudgedComparison
from loadgen.analysis.compare.page import page, render
from loadgen.analysis.compare.side import Side

__all__ = [
    "Comparison",
    "JudgedComparison",
    "NoiseFile",
    "Side",
    "as_json",
    "compare",
    "page",
    "render",
]
