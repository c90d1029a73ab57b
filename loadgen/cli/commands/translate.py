"""`loadgen translate`: print the command of loadgen for one of another benchmark."""

import argparse
import shlex
import sys

from loadgen.cli import exit_codes
from loadgen.errors import BadInput
from loadgen.util.argument_parser import OneLineParser
from loadgen.util.terminal_text import printable_lines

DESCRIPTION = (
    "Print the command of loadgen for one of AIPerf, genai-perf, guidellm, inference-perf, "
    "evalscope perf, llmperf, or for a script of vLLM; and, as comments, what is not the same."
)
REMEDY = "give a whole command in quotes, or - to read it from standard input"


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code."""
    parser = OneLineParser(
        "loadgen translate", usage="loadgen translate 'COMMAND'|FILE|-", description=DESCRIPTION
    )
    parser.add_argument(
        "command",
        nargs=argparse.REMAINDER,
        metavar="'COMMAND'|FILE|-",
        help="the command, a file with it, a YAML file of inference-perf or guidellm, or - for "
        "standard input",
    )
    words = parser.parse_args(argv).command
    if not words:
        raise BadInput("command", "none is given", REMEDY)
    from loadgen.cli.translate import translate

    text = sys.stdin.read() if words == ["-"] else words[0] if len(words) == 1 else None
    print(printable_lines(translate(shlex.join(words) if text is None else text).text()))
    return exit_codes.DONE
