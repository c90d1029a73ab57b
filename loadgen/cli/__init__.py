"""The command line: a skin over the library."""

from loadgen.cli.main import main

__all__ = ["main"]
