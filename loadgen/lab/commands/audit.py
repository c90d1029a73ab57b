"""`loadgen audit FILE...`: find inconsistent numbers in published results."""

import sys

from loadgen.cli import exit_codes
from loadgen.errors import BadInput
from loadgen.util.argument_parser import OneLineParser
from loadgen.util.terminal_text import printable_lines


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code."""
    parser = OneLineParser(
        prog="loadgen audit",
        description="Find inconsistent numbers in published results, and print a line for each "
        "cause, the worst first: which numbers, and why they contradict each other. Several files "
        "are also held against each other. See docs/audit.md.",
    )
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        help="a Markdown page or a text that contains benchmark output; or a JSON result of "
        "loadgen, vllm bench serve, SGLang's bench_serving (JSON lines) or guidellm",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print the findings as a JSON list instead, one cause an object",
    )
    arguments = parser.parse_args(argv)
    from loadgen.lab.audit.auditor import audit_file, findings
    from loadgen.lab.audit.finding import grouped, render, to_json

    files = []
    refused: list[BadInput] = []
    for path in dict.fromkeys(arguments.files):
        try:
            files.append(audit_file(path))
        except BadInput as error:
            refused.append(error)
    groups = grouped(findings(files))
    if files:
        sys.stdout.write(to_json(groups) + "\n" if arguments.json else render(groups, len(files)))
    for why in refused:
        print(f"loadgen audit: {printable_lines(str(why))}", file=sys.stderr)
    if refused:
        return exit_codes.BAD_INPUT
    return exit_codes.DONE if all(group.note for group in groups) else exit_codes.FOUND
