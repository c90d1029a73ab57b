"""The command line: a skin over the library."""

from loadgen.cli.main import command, main

__all__ = ["command", "main"]
