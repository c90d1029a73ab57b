"""`loadgen version`: print the version."""

from loadgen.cli import exit_codes
from loadgen.util.argument_parser import OneLineParser
from loadgen.version import __version__


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code."""
    OneLineParser("loadgen version", description="Print the version of loadgen.").parse_args(argv)
    print(f"loadgen {__version__}")
    return exit_codes.DONE
