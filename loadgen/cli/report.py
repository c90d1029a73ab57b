"""`loadgen report FILE`: print the report of a saved result again, or make that of the records a run has left."""

import sys
from typing import Any

from loadgen.arguments import OneLineParser
from loadgen.cli.journal import journals
from loadgen.errors import BadInput
from loadgen.private import state_folder


def main(argv: list[str]) -> int:
    """Carry out the command."""
    parser = OneLineParser(
        prog="loadgen report",
        description="Print the report of a saved result again, or of the records that a run has left.",
    )
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        help="what `loadgen run` or `loadgen search` saved with --save-result or --json, or a file of --records; "
        "by default the records of the last run that ended early",
    )
    parser.add_argument(
        "--as",
        dest="tool",
        metavar="TOOL",
        help="what another load generator would have printed of these records, and why: "
        "vllm-0.11, vllm-0.32, vllm-0.33, sglang, benchmark-runner, aiperf",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON instead, one a line")
    arguments = parser.parse_args(argv)
    from loadgen.report import is_series, render, series, to_json

    path = arguments.file or _latest()
    if arguments.tool:
        return _compare(path, arguments.tool, arguments.json)
    for result in _results(path):
        try:
            shown = series.render if is_series(result) else render
            text = to_json(result) + "\n" if arguments.json else shown(result)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            problem = f"{path} is no whole result of loadgen ({type(error).__name__}: {error})"
            raise BadInput("FILE", problem, "name a result as it was saved") from error
        sys.stdout.write(text)
    return 0


def _compare(path: str, name: str, as_json: bool) -> int:
    from loadgen import tools
    from loadgen.report import to_json

    comparison = tools.compare(path, name)
    sys.stdout.write(to_json(comparison.to_dict()) + "\n" if as_json else tools.render(comparison))
    return 0


def _latest() -> str:
    found = journals()
    if not found:
        raise BadInput("FILE", f"no run that ended early has left records in {state_folder()}", "name a file")
    return str(found[-1])


def _results(path: str) -> list[dict[str, Any]]:
    from loadgen.records import RecordFile

    if RecordFile.is_one(path):
        from loadgen.results import from_records

        return [from_records(path).data]
    from loadgen.report import load

    return load(path)
