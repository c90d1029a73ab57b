"""`loadgen judge COMMAND`: what a load generator prints of servers that know the truth."""

import argparse
import shutil
from pathlib import Path

from loadgen.cli import exit_codes
from loadgen.errors import BadInput
from loadgen.lab.commands.folder import made
from loadgen.util.argument_parser import OneLineParser
from loadgen.util.termination import interrupt_on_termination

FLAGS = ("--case", "--folder", "--tool", "--list")


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code."""
    parser = OneLineParser(
        prog="loadgen judge",
        usage="loadgen judge [FLAGS] COMMAND...",
        description="Run a load generator against servers that know the truth, one case at a "
        "time, and print which of its figures are wrong, by how much, and whether it said so. Exit "
        "code 0: no figure is wrong, 1: one is, or a tool gave no report. See docs/judge.md.",
    )
    parser.add_argument(
        "command",
        metavar="COMMAND",
        nargs=argparse.REMAINDER,
        help="the words that start the tool, without the flags that judge gives: `vllm bench "
        "serve`, `loadgen run`",
    )
    parser.add_argument(
        "--tool", metavar="FILE.yaml", help="description of a tool that loadgen does not know"
    )
    parser.add_argument(
        "--case",
        metavar="NAME",
        action="append",
        default=[],
        help="a case or a group; may be given several times (all)",
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
    from loadgen.lab.judge.cases import CONTROL, chosen
    from loadgen.lab.judge.cell import Judgement
    from loadgen.lab.judge.tool import built_in, load_tool, recognized

    cases = chosen(arguments.case)
    if arguments.list:
        for case in cases:
            print(f"{case.group:<8} {case.name:<26} {case.does} ({case.source})")
        return exit_codes.DONE
    if not arguments.command:
        raise BadInput("COMMAND", "missing", "write, for example, loadgen judge vllm bench serve")
    _check(arguments.command)
    if arguments.tool:
        tool = load_tool(Path(arguments.tool))
    else:
        tool = recognized(arguments.command, built_in())
    folder = made(arguments.folder)
    interrupt_on_termination()  # or its server would outlive the command
    found = {}
    for cell in judge.cells(cases, tool, arguments.command, folder):
        print(judge.cell_text(cell), flush=True)
        found[cell.case] = cell
        if cell.case == CONTROL and cell.judgement is Judgement.NO_REPORT and len(cases) > 1:
            print("    the other cases are not run: correct the tool, its file or the command")
            break
    print(judge.summary(found))
    wrong = any(cell.judgement in judge.WRONG for cell in found.values())
    return exit_codes.FOUND if wrong else exit_codes.DONE


def _check(command: list[str]) -> None:
    """Refuse a command line whose program is not there, or that has flags of judge.

    Raises:
        BadInput: It is one.
    """
    swallowed = [word for word in command if word.partition("=")[0] in FLAGS]
    if swallowed:
        problem = f"{swallowed[0]} stands behind the command of the tool"
        raise BadInput("COMMAND", problem, f"put {swallowed[0]} before {command[0]}")
    if shutil.which(command[0]) is None:
        problem = f"there is no program {command[0]!r}"
        remedy = "install the tool, or write the path of its program; it is looked for in PATH"
        if Path(command[0]).is_file():
            problem = f"{command[0]!r} cannot be executed"
            remedy = "make it executable, or write its interpreter before it"
        raise BadInput("COMMAND", problem, remedy)
