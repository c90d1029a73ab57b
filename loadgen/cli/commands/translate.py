"""`loadgen translate`: print the command of loadgen for one of another benchmark."""

import argparse
import shlex
import sys

from loadgen.cli import exit_codes
from loadgen.cli.compat import TRANSLATED
from loadgen.errors import BadInput
from loadgen.util.argument_parser import OneLineParser
from loadgen.util.terminal_text import Screen, printable_lines

DESCRIPTION = (
    "Print the command of loadgen for one of AIPerf, genai-perf, guidellm, inference-perf, "
    "evalscope perf, llmperf, or for a script of vLLM or SGLang; and, as comments, what is not the "
    "same."
)
REMEDY = "give a whole command in quotes, or - to read it from standard input"


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code."""
    parser = OneLineParser(
        "loadgen translate",
        usage="loadgen translate 'COMMAND'|FILE|- | --flags TOOL",
        description=DESCRIPTION,
    )
    parser.add_argument(
        "command",
        nargs=argparse.REMAINDER,
        metavar="'COMMAND'|FILE|-",
        help="the command, a file with it, a YAML file of inference-perf or guidellm, or - for "
        "standard input",
    )
    parser.add_argument(
        "--flags",
        metavar="TOOL",
        choices=TRANSLATED,
        help=f"list the flags of a tool and what becomes of each: {', '.join(TRANSLATED)}",
    )
    arguments = parser.parse_args(argv)
    words = arguments.command
    if arguments.flags is None and not words:
        raise BadInput("command", "none is given", REMEDY)
    from loadgen.cli.translate import TOOLS, translate
    from loadgen.cli.translate.flag_table import blocks_of
    from loadgen.document import terminal_writer
    from loadgen.document.terminal_writer import width

    if arguments.flags is not None:
        columns = width(Screen.of(sys.stdout))
        sys.stdout.write(terminal_writer.text(blocks_of(TOOLS[arguments.flags]), columns))
        return exit_codes.DONE
    text = sys.stdin.read() if words == ["-"] else words[0] if len(words) == 1 else None
    print(printable_lines(translate(shlex.join(words) if text is None else text).text()))
    return exit_codes.DONE
