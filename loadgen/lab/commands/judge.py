"""`loadgen judge COMMAND`: what a load generator prints of servers that know the truth."""

import argparse
import shutil
from pathlib import Path

from loadgen.cli import exit_codes
from loadgen.errors import BadInput
from loadgen.util.argument_parser import OneLineParser


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code."""
    parser = OneLineParser(
        prog="loadgen judge",
        usage="loadgen judge [FLAGS] COMMAND...",
        description="Run a load generator against servers that know the truth, one case at a "
        "time, and print which of its figures are wrong, by how much, and whether it said so. "
        "See docs/judge.md.",
    )
    parser.add_argument(
        "command",
        metavar="COMMAND",
        nargs=argparse.REMAINDER,
        help="the words that start the tool, without its flags: `vllm bench serve`, `loadgen run`",
    )
    parser.add_argument(
        "--tool", metavar="FILE.yaml", help="description of a tool that loadgen does not know"
    )
    parser.add_argument(
        "--case", metavar="NAME", action="append", default=[], help="a case or a group (all)"
    )
    parser.add_argument(
        "--folder",
        metavar="FOLDER",
        default="judged",
        help="where cells are kept, and not run again (judged)",
    )
    parser.add_argument("--list", action="store_true", help="print the cases, and run nothing")
    arguments = parser.parse_args(argv)
    from loadgen.lab.judge import judge
    from loadgen.lab.judge.cases import chosen
    from loadgen.lab.judge.tool import built_in, load_tool, recognized

    cases = chosen(arguments.case)
    if arguments.list:
        for case in cases:
            print(f"{case.group:<8} {case.name:<26} {case.does} ({case.source})")
        return exit_codes.DONE
    if not arguments.command:
        raise BadInput("COMMAND", "missing", "write, for example, loadgen judge vllm bench serve")
    if arguments.tool:
        tool = load_tool(Path(arguments.tool))
    else:
        tool = recognized(arguments.command, built_in())
    if shutil.which(arguments.command[0]) is None:
        problem = f"there is no program {arguments.command[0]!r}"
        raise BadInput("COMMAND", problem, "install the tool, or write the path of its program")
    found = {}
    for cell in judge.cells(cases, tool, arguments.command, Path(arguments.folder)):
        print(judge.cell_text(cell), flush=True)
        found[cell.case] = cell
    print(judge.summary(found))
    wrong = any(cell.judgement in judge.WRONG for cell in found.values())
    return exit_codes.FOUND if wrong else exit_codes.DONE
