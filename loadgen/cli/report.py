"""`loadgen report FILE`: print the report of a saved result again, or make that of the records a run has left; or write
either as a page."""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

from loadgen.arguments import OneLineParser
from loadgen.cli.journal import journals
from loadgen.errors import BadInput
from loadgen.output_settings import check_page
from loadgen.private import state_folder


def main(argv: list[str]) -> int:
    """Carry out the command."""
    parser = OneLineParser(
        prog="loadgen report",
        description="Print the report of a saved result again, or of the records that a run has left, or write it as a "
        "page.",
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
    parser.add_argument("--html", metavar="FILE.html", help="write the report as one page of HTML instead")
    parser.add_argument("--json", action="store_true", help="print the result as JSON instead, one a line")
    arguments = parser.parse_args(argv)
    check_page("--html", arguments.html)
    if arguments.tool and arguments.html:
        raise BadInput("--html", "given beside --as, which has no page", "leave one of the two out")
    path = arguments.file or _latest()
    if arguments.tool:
        return _compare(path, arguments.tool, arguments.json)
    results = _results(path)
    if arguments.html:
        _write(arguments.html, results, path)
        print(f"Saved: {arguments.html}", file=sys.stderr if arguments.json else sys.stdout)
    if arguments.json or not arguments.html:
        for result in results:
            with _whole(path):
                text = _text(result, arguments.json)
            sys.stdout.write(text)
    return 0


def _text(result: dict[str, Any], as_json: bool) -> str:
    from loadgen.report import is_series, render, series, to_json

    if as_json:
        return to_json(result) + "\n"
    return series.render(result) if is_series(result) else render(result)


def _write(page: str, results: list[dict[str, Any]], source: str) -> None:
    from loadgen.report import save_page

    if os.path.realpath(page) == os.path.realpath(source):
        raise BadInput("--html", f"{page} is the file that is read", "name another")
    try:
        with _whole(source):
            save_page(page, results)
    except OSError as error:
        raise BadInput("--html", f"{page} cannot be written ({error.strerror})", "name another") from error


@contextlib.contextmanager
def _whole(path: str) -> Iterator[None]:
    """Refuse a result in which something is missing that it would have had as it was saved."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        problem = f"{path} is no whole result of loadgen ({type(error).__name__}: {error})"
        raise BadInput("FILE", problem, "name a result as it was saved") from error


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
