"""`loadgen report FILE`: print the report of a saved result again, or make that of the records a run has left; or write
either as a page, or as a table."""

import os
import sys
from collections.abc import Sequence
from typing import Any

from loadgen.cli import csv_rows
from loadgen.cli.journal import journals
from loadgen.config.output import check_page
from loadgen.errors import BadInput
from loadgen.util.argument_parser import OneLineParser
from loadgen.util.private_files import state_folder


def main(argv: list[str]) -> int:
    """Carry out the command."""
    arguments = _parser().parse_args(argv)
    if arguments.schema:
        return _print_schema(arguments.files)
    check_page("--html", arguments.html)
    for name in ("html", "csv"):
        if arguments.tool and getattr(arguments, name) is not None:
            raise BadInput(f"--{name}", "given beside --as, which explains what it prints", "leave one of the two out")
        _check_apart(name, getattr(arguments, name), arguments.files)
    if arguments.csv is not None and arguments.html is not None:
        raise BadInput("--html", "given beside --csv", "write one after the other")
    paths = arguments.files or [_latest()]
    if not arguments.files:
        print(f"loadgen: the last run that ended early: {paths[0]}", file=sys.stderr)
    if arguments.tool:
        for path in paths:
            _compare(path, arguments.tool, arguments.json)
        return 0
    if arguments.csv is not None:
        csv_rows.write(paths, arguments.csv)
        return 0
    from loadgen.runner import run_result

    found = {path: run_result.read(path) for path in paths}
    if arguments.html:
        _write_page(arguments.html, found)
        print(f"Saved: {arguments.html}", file=sys.stderr if arguments.json else sys.stdout)
    if arguments.json or not arguments.html:
        for path in paths:
            _print(path, found[path], arguments.json)
    return 0


def _parser() -> OneLineParser:
    parser = OneLineParser(
        prog="loadgen report",
        description="Print the report of a saved result again, or of the records that a run has left, or write it as a "
        "page or a table.",
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
    parser.add_argument("--html", metavar="FILE.html", help="write the report as one page of HTML instead")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the result as JSON instead, one a line")
    form.add_argument(
        "--csv", metavar="FILE|-", help="write a row for each run instead, or of records one for each request"
    )
    form.add_argument(
        "--schema", action="store_true", help="print the JSON schema of a result, and of several together"
    )
    return parser


def _check_apart(name: str, to: str | None, paths: Sequence[str]) -> None:
    """Refuse to write over what is to be read."""
    if to is not None and any(os.path.realpath(to) == os.path.realpath(path) for path in paths):
        raise BadInput(f"--{name}", f"{to} is the file that is to be read", "name another")


def _print_schema(paths: Sequence[str]) -> int:
    from loadgen.report.result import schema

    if paths:
        raise BadInput("--schema", f"given beside {paths[0]}", "leave one of the two out")
    sys.stdout.write(schema.text())
    return 0


def _print(path: str, found: Sequence[dict[str, Any]], as_json: bool) -> None:
    from loadgen.report import RunResult, render, series, to_json, typed
    from loadgen.runner import run_result

    for saved in found:
        with run_result.whole(path):
            if as_json:
                text = to_json(saved) + "\n"
            else:
                result = typed(saved)
                text = render(result) if isinstance(result, RunResult) else series.render(result)
        sys.stdout.write(text)


def _write_page(page: str, found: dict[str, list[dict[str, Any]]]) -> None:
    from loadgen.report import save_page, typed
    from loadgen.report.run_page import html
    from loadgen.runner import run_result

    try:
        with run_result.whole(", ".join(found)):
            save_page(page, [typed(result) for of_file in found.values() for result in of_file])
    except OSError as error:
        raise BadInput("--html", f"{page} cannot be written ({error.strerror})", "name another") from error
    except BadInput:
        for path, of_file in found.items():  # which of them it is
            with run_result.whole(path):
                html([typed(result) for result in of_file])
        raise


def _compare(path: str, name: str, as_json: bool) -> None:
    from loadgen.analysis import emulate
    from loadgen.report import to_json

    comparison = emulate.compare(path, name)
    sys.stdout.write(to_json(comparison.to_dict()) + "\n" if as_json else emulate.render(comparison))


def _latest() -> str:
    found = journals()
    if not found:
        raise BadInput("FILE", f"no run that ended early has left records in {state_folder()}", "name a file")
    return str(found[-1])
