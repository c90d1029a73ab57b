"""`loadgen report FILE`: print the report of a saved result again, as it was printed when the run ended."""

import sys

from loadgen.cli.flags import OneLineParser
from loadgen.report import load, render


def main(argv: list[str]) -> int:
    """Carry out the command."""
    parser = OneLineParser(
        prog="loadgen report", description="Print the report of a saved result again.", allow_abbrev=False
    )
    parser.add_argument("file", metavar="FILE", help="a result saved by `loadgen run --save-result` or --json")
    arguments = parser.parse_args(argv)
    for result in load(arguments.file):
        sys.stdout.write(render(result))
    return 0
