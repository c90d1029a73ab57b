"""`loadgen explain RUN`: where the time of a run's requests went, and what caused it."""

import sys
from typing import TYPE_CHECKING

from loadgen.cli import exit_codes
from loadgen.cli.output import say
from loadgen.errors import BadInput
from loadgen.util.argument_parser import OneLineParser
from loadgen.util.terminal_text import Screen

SHOWN = 3  # settings that differ

if TYPE_CHECKING:
    from loadgen.report.result import RunResult
    from loadgen.report.result.explanation import Explanation


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code."""
    arguments = _parser().parse_args(argv)
    from loadgen.document import terminal_writer
    from loadgen.report import to_json
    from loadgen.report.result.fields import to_json_values
    from loadgen.report.sections import explanation
    from loadgen.runner import run_result

    paths = [path for path in (arguments.run, arguments.other) if path is not None]
    results = [_read(path) for path in paths]
    explained = [explain for _, explain in results]
    if arguments.json:
        for one in explained:
            sys.stdout.write(to_json(to_json_values(one)) + "\n")
        return exit_codes.DONE
    with run_result.whole(" or ".join(paths)):
        if len(explained) == 1:
            blocks = tuple(explanation.blocks(explained[0]))
        else:
            _say_what_else_differs(*(result for result, _ in results))
            blocks = tuple(explanation.difference(*explained))
    sys.stdout.write(terminal_writer.text(blocks, terminal_writer.width(Screen.of(sys.stdout))))
    return exit_codes.DONE


def _parser() -> OneLineParser:
    parser = OneLineParser(
        prog="loadgen explain",
        description="Say where the time of a run's requests went, and what caused it. See "
        "docs/explain.md.",
    )
    parser.add_argument(
        "run",
        metavar="RUN",
        help="a file of --records, or a result of `loadgen run` with `explain`",
    )
    parser.add_argument(
        "other", metavar="OTHER", nargs="?", help="a second one: say what differs from the first"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead, one line per run")
    return parser


def _say_what_else_differs(one: "RunResult", other: "RunResult") -> None:
    from loadgen.analysis.compare.workload import workload, workload_differences

    differences = [*map(str, workload_differences(workload(one), workload(other)))]
    if differences:
        further = len(differences) - SHOWN
        more = f", {further} more" if further > 0 else ""
        say(f"the workloads differ, too: {', '.join(differences[:SHOWN])}{more}")


def _read(path: str) -> "tuple[RunResult, Explanation]":
    """Read the one run in a file and its explanation, and say which requests it lacks.

    Raises:
        BadInput: It has none.
    """
    from loadgen import checks, report
    from loadgen.report.result import RunResult
    from loadgen.runner import run_result

    runs = run_result.read(path)
    if len(runs) != 1:
        raise BadInput((), f"{path} holds {len(runs)} results", "name a file with one run")
    with run_result.whole(path):
        result = report.from_dict(runs[0])
    if not isinstance(result, RunResult):
        raise BadInput((), f"{path} is a series of runs", "name the records of one of them")
    if result.explain is None:
        raise BadInput(
            (),
            f"{path} has no request with the times of its tokens, or is of an earlier version",
            "name the file of --records of a run that streams",
        )
    missing = [f"PARTIAL: {result.partial}"] if result.partial else []
    for reason in (*missing, *checks.reasons(result.checks, "A")):
        say(f"{path}: {reason}")
    return result, result.explain
