"""Comparing: runs side by side, what they differ by, and how sure that is."""

from loadgen.comparing.comparison import Comparison, compare
from loadgen.comparing.console import render
from loadgen.comparing.noise_file import NoiseFile
from loadgen.comparing.page import page
from loadgen.comparing.side import Side
from loadgen.comparing.told import as_json

__all__ = ["Comparison", "NoiseFile", "Side", "as_json", "compare", "page", "render"]
