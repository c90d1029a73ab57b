"""`loadgen audit FILE...`: find inconsistent numbers in published results."""

import sys
from pathlib import Path

from loadgen.cli import exit_codes
from loadgen.cli.output import writing
from loadgen.config.output import PAGE
from loadgen.errors import BadInput
from loadgen.util.argument_parser import OneLineParser
from loadgen.util.files import write_atomic
from loadgen.util.terminal_text import Screen, printable_lines


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code."""
    parser = OneLineParser(
        prog="loadgen audit",
        description="Find inconsistent numbers in published results, and print two lines for each "
        "cause, the worst first: where it is, and which numbers contradict each other. Several "
        "files are also compared with each other. See docs/audit.md.",
    )
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        help="a Markdown page or a text that contains benchmark output; or a JSON result of "
        "loadgen, vllm bench serve, SGLang's bench_serving (JSON lines) or guidellm",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--full",
        action="store_true",
        help="print whole paths, sentences and commands, and all places",
    )
    form.add_argument(
        "--json",
        action="store_true",
        help="print the findings as a JSON list instead, one object per cause",
    )
    parser.add_argument("--html", metavar="FILE.html", help="also write the findings as a page")
    arguments = parser.parse_args(argv)
    PAGE.check("--html", arguments.html)
    from loadgen.document import page_writer
    from loadgen.lab.audit import finding_report
    from loadgen.lab.audit.auditor import audit_file, findings
    from loadgen.lab.audit.finding import grouped, to_json

    files = []
    refused: list[BadInput] = []
    for path in dict.fromkeys(arguments.files):
        try:
            files.append(audit_file(path))
        except BadInput as error:
            refused.append(error)
    groups = grouped(findings(files))
    if files and arguments.json:
        print(to_json(groups))
    elif files and arguments.full:
        sys.stdout.write(finding_report.full_text(groups, len(files), Screen.of(sys.stdout)))
    elif files:
        sys.stdout.write(finding_report.text(groups, len(files), Screen.of(sys.stdout)))
    if files and arguments.html is not None:
        page = Path(arguments.html)
        with writing("--html", arguments.html):
            document = finding_report.document(groups, len(files), page.parent)
            write_atomic(page, page_writer.html(document))
    for why in refused:
        print(f"loadgen audit: {printable_lines(str(why))}", file=sys.stderr)
    if refused:
        return exit_codes.BAD_INPUT
    return exit_codes.DONE if all(group.note for group in groups) else exit_codes.FOUND
