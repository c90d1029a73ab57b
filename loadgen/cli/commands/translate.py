"""`loadgen translate`: print the command of loadgen for one of another benchmark."""

import shlex
import sys

from loadgen.cli import exit_codes
from loadgen.util.argument_parser import OneLineParser
from loadgen.util.terminal_text import printable_lines

DESCRIPTION = (
    "Translate a command of AIPerf, genai-perf, guidellm, inference-perf, evalscope perf, llmperf "
    "or vLLM's scripts. Prints the command of loadgen, and what is not the same as comments."
)


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code."""
    parser = OneLineParser("loadgen translate", description=DESCRIPTION)
    parser.add_argument(
        "command",
        nargs="+",
        metavar="COMMAND|FILE",
        help="the command in quotes, a file with it, a YAML file of inference-perf or guidellm, or "
        "- for standard input",
    )
    known = argv[:1] in (["-h"], ["--help"]) or len(argv) < 2
    words = parser.parse_args(argv).command if known else argv
    from loadgen.cli.translate import translate

    if words == ["-"]:
        text = sys.stdin.read()
    else:
        text = words[0] if len(words) == 1 else shlex.join(words)
    print(printable_lines(translate(text).text()))
    return exit_codes.DONE
