"""`loadgen report FILE`: print the report of a saved result again, or make that of the records a run has left."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from loadgen.arguments import OneLineParser
from loadgen.cli.journal import journals
from loadgen.errors import BadInput
from loadgen.private import state_folder

STDOUT = "-"
BROKEN = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)  # by a result that is not whole


def main(argv: list[str]) -> int:
    """Carry out the command."""
    parser = OneLineParser(
        prog="loadgen report",
        description="Print the report of a saved result again, or of the records that a run has left.",
    )
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="*",
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
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the result as JSON instead, one a line")
    form.add_argument(
        "--csv", metavar="FILE|-", help="write a row for each run instead, or of records one for each request"
    )
    form.add_argument(
        "--schema", action="store_true", help="print the JSON schema of a result, and of several together"
    )
    arguments = parser.parse_args(argv)
    if arguments.schema:
        return _print_schema(arguments.files)
    paths = arguments.files or [_latest()]
    if arguments.csv is not None:
        if arguments.tool:
            raise BadInput("--csv", "given beside --as, which explains what it prints", "leave one of the two out")
        return _write_csv(paths, arguments.csv)
    for path in paths:
        if arguments.tool:
            _compare(path, arguments.tool, arguments.json)
        else:
            _print(path, arguments.json)
    return 0


def _print(path: str, as_json: bool) -> None:
    from loadgen.report import is_series, render, series, to_json

    for result in _results(path):
        try:
            shown = series.render if is_series(result) else render
            text = to_json(result) + "\n" if as_json else shown(result)
        except BROKEN as error:
            raise _broken(path, error) from error
        sys.stdout.write(text)


def _print_schema(paths: list[str]) -> int:
    from importlib import resources

    if paths:
        raise BadInput("--schema", f"given beside {paths[0]}", "leave one of the two out")
    sys.stdout.write(resources.files("loadgen.report").joinpath("result.schema.json").read_text())
    return 0


def _write_csv(paths: list[str], to: str) -> int:
    from loadgen.whole import whole_file

    if to != STDOUT and any(os.path.realpath(to) == os.path.realpath(path) for path in paths):
        raise BadInput("--csv", f"{to} is the file that is to be read", "name another")
    lines = _csv(paths)
    if to == STDOUT:
        sys.stdout.writelines(lines)
        return 0
    try:
        with whole_file(Path(to)) as file:
            file.writelines(line.encode() for line in lines)
    except OSError as error:
        raise BadInput("--csv", f"{to} cannot be written ({error.strerror})", "name another file") from error
    return 0


def _csv(paths: list[str]) -> Iterator[str]:
    """A table of requests where the files are records, else one of runs."""
    from loadgen.records import RecordFile
    from loadgen.report import csv_file, request_rows, run_rows

    records = [path for path in paths if RecordFile.is_one(path)]
    if not records:
        try:
            columns, runs = run_rows.table((path, result) for path in paths for result in _results(path))
        except BROKEN as error:
            raise _broken(", ".join(paths), error) from error
        return csv_file.lines(columns, runs)
    if others := [path for path in paths if path not in records]:
        problem = f"{records[0]} has a row for each request, {others[0]} one for each run"
        raise BadInput("FILE", problem, "write them to two files")
    return csv_file.lines(request_rows.COLUMNS, (row for path in paths for row in request_rows.rows(path)))


def _broken(path: str, error: Exception) -> BadInput:
    problem = f"{path} is no whole result of loadgen ({type(error).__name__}: {error})"
    return BadInput("FILE", problem, "name a result as it was saved")


def _compare(path: str, name: str, as_json: bool) -> None:
    from loadgen import tools
    from loadgen.report import to_json

    comparison = tools.compare(path, name)
    sys.stdout.write(to_json(comparison.to_dict()) + "\n" if as_json else tools.render(comparison))


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
