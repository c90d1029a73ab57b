"""`loadgen report FILE`: print the report of a saved result or of records, or write it as a page or a table."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadgen.cli import exit_codes
from loadgen.cli.output_file import put
from loadgen.cli.runs.journal import journals
from loadgen.config.validate import check_page
from loadgen.errors import BadInput
from loadgen.util.argument_parser import OneLineParser
from loadgen.util.private_files import state_folder
from loadgen.util.terminal_text import Screen

if TYPE_CHECKING:
    from loadgen.analysis.tool_result import ToolResult

STDOUT = "-"


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code."""
    arguments = _parser().parse_args(argv)
    if arguments.schema:
        return _print_fixed("--schema", arguments.files, _schema)
    if arguments.grafana:
        return _print_fixed("--grafana", arguments.files, _dashboard)
    check_page("--html", arguments.html)
    written = [name for name in ("csv", "markdown", "junit", "html") if getattr(arguments, name) is not None]
    for name in written:
        if arguments.tool:
            raise BadInput(f"--{name}", "cannot be combined with --as, which only prints", "leave one of the two out")
        _check_apart(name, getattr(arguments, name), arguments.files)
    if len(written) > 1:
        raise BadInput(f"--{written[-1]}", f"cannot be combined with --{written[0]}", "run the command twice")
    paths = arguments.files or [_latest()]
    if not arguments.files:
        print(f"loadgen: the records of the last run that ended early: {paths[0]}", file=sys.stderr)
    if arguments.tool:
        for path in paths:
            _emulate(path, arguments.tool, arguments.json)
        return exit_codes.DONE
    if arguments.csv is not None:
        _write_csv(paths, arguments.csv)
        return exit_codes.DONE

    form = next((name for name in (*written, "json") if getattr(arguments, name)), None)
    found, others = {}, {}
    for path in paths:
        found[path], others[path] = _read(path, form)
    if arguments.html:
        _write_page(arguments.html, found)
    elif arguments.markdown:
        _write_text("--markdown", arguments.markdown, _markdown(found))
    elif arguments.junit:
        _write_text("--junit", arguments.junit, _junit(found))
    if (to := arguments.html or arguments.markdown or arguments.junit) and to != STDOUT:
        print(f"Saved: {to}", file=sys.stderr if arguments.json else sys.stdout)
    if arguments.json or not written:
        for path in paths:
            _print(path, found[path], arguments.json)
            _print_others(others[path])
    return exit_codes.DONE


def _read(path: str, form: str | None) -> "tuple[list[dict[str, Any]], list[ToolResult]]":
    """Read the results of loadgen in a file, or those of another tool.

    Raises:
        BadInput: It cannot be read, or is of another tool, and such a form is asked for.
    """
    from loadgen.runner import run_result

    try:
        return run_result.read(path), []
    except BadInput:
        from loadgen.analysis import tool_result

        others = tool_result.read(path)
        if not others:
            raise
        if form is not None:
            problem = f"{path} is a result of {others[0].tool}, of which only the console's report is made"
            raise BadInput(f"--{form}", problem, "leave it out") from None
        return [], others


def _print_others(results: "Sequence[ToolResult]") -> None:
    from loadgen.analysis import tool_report

    for result in results:
        sys.stdout.write(tool_report.render(result))


def _parser() -> OneLineParser:
    parser = OneLineParser(
        prog="loadgen report",
        description="Print the report of a saved result or of a file of records, or write it as a page or a table.",
    )
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="*",
        help="a result of `loadgen run` or `loadgen search` (--save-result, --json), a file of --records, or a result "
        "of `vllm bench serve` or SGLang's bench_serving; without FILE: the records of the last run that ended early",
    )
    parser.add_argument(
        "--as",
        dest="tool",
        metavar="TOOL",
        help="print what another load generator would have reported for these records, and why: "
        "vllm-0.11, vllm-0.32, vllm-0.33, vllm-rs, sglang, benchmark-runner, aiperf",
    )
    parser.add_argument("--html", metavar="FILE.html", help="write the report as an HTML page instead")
    parser.add_argument(
        "--markdown", metavar="FILE|-", help="write a summary of each result as Markdown that GitHub renders instead"
    )
    parser.add_argument("--junit", metavar="FILE|-", help="write JUnit XML instead, one test case per limit of --slo")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the result as JSON instead, one line per result")
    form.add_argument(
        "--csv", metavar="FILE|-", help="write CSV instead: one row per run or, for records, one row per request"
    )
    form.add_argument("--schema", action="store_true", help="print the JSON schema of results")
    form.add_argument(
        "--grafana", action="store_true", help="print the Grafana dashboard for the metrics of --prometheus"
    )
    return parser


def _check_apart(name: str, to: str | None, paths: Sequence[str]) -> None:
    if to is not None and any(os.path.realpath(to) == os.path.realpath(path) for path in paths):
        raise BadInput(f"--{name}", f"{to} is the file that is to be read", "name another")


def _print_fixed(name: str, paths: Sequence[str], text: Callable[[], str]) -> int:
    if paths:
        raise BadInput(name, f"takes no file, and {paths[0]} is given", "leave one of the two out")
    sys.stdout.write(text())
    return exit_codes.DONE


def _schema() -> str:
    from loadgen.report.result import schema

    return schema.text()


def _dashboard() -> str:
    from loadgen.cli.runs.metrics_endpoint import DASHBOARD

    return DASHBOARD.read_text()


def _print(path: str, found: Sequence[dict[str, Any]], as_json: bool) -> None:
    from loadgen.report import RunResult, from_dict, render, series_console, to_json
    from loadgen.runner import run_result

    for saved in found:
        with run_result.whole(path):
            if as_json:
                text = to_json(saved) + "\n"
            else:
                result, screen = from_dict(saved), Screen.of(sys.stdout)
                if isinstance(result, RunResult):
                    text = render(result, screen=screen)
                else:
                    text = series_console.render(result, screen=screen)
        sys.stdout.write(text)


def _write_page(page: str, found: dict[str, list[dict[str, Any]]]) -> None:
    from loadgen.report import from_dict, save_page
    from loadgen.report.run_page import html
    from loadgen.runner import run_result

    def write(to: str) -> None:
        with run_result.whole(", ".join(found)):
            save_page(to, [from_dict(result) for of_file in found.values() for result in of_file])

    try:
        put("--html", page, write)
    except BadInput as error:
        for path, of_file in found.items() if error.field == "FILE" else ():  # find the file at fault
            with run_result.whole(path):
                html([from_dict(result) for result in of_file])
        raise


def _write_text(name: str, to: str, text: str) -> None:
    from loadgen.util.atomic_file import write_atomic

    if to == STDOUT:
        sys.stdout.write(text)
        return
    put(name, to, lambda path: write_atomic(Path(path), text))


def _markdown(found: dict[str, list[dict[str, Any]]]) -> str:
    from loadgen.report import ci_summary, from_dict
    from loadgen.runner import run_result

    texts = []
    for path, of_file in found.items():
        with run_result.whole(path):
            texts += [ci_summary.markdown(from_dict(result)) for result in of_file]
    return "\n".join(texts)


def _junit(found: dict[str, list[dict[str, Any]]]) -> str:
    """Write a suite for each run.

    Raises:
        BadInput: A file holds a series, whose runs have results of their own.
    """
    from loadgen.report import RunResult, ci_summary, from_dict, junit
    from loadgen.runner import run_result

    suites = []
    for path, of_file in found.items():
        with run_result.whole(path):
            results = [from_dict(result) for result in of_file]
            runs = [result for result in results if isinstance(result, RunResult)]
            suites += [ci_summary.suite(run) for run in runs]
        if len(runs) < len(results):
            raise BadInput("--junit", f"{path} is a series, which has no gate", "name the results of its runs")
    return junit.xml(suites)


def _write_csv(paths: Sequence[str], to: str) -> None:
    """Write a CSV row for each run or, if the files are records, for each request.

    Raises:
        BadInput: Results and records are mixed, a file cannot be read, or the CSV file cannot be written.
    """
    from loadgen.util.atomic_file import atomic_file

    lines = _csv_lines(paths)
    if to == STDOUT:
        sys.stdout.writelines(lines)
        return

    def write(path: str) -> None:
        with atomic_file(Path(path)) as file:
            file.writelines(line.encode() for line in lines)

    put("--csv", to, write)


def _csv_lines(paths: Sequence[str]) -> Iterator[str]:
    from loadgen.metrics.records.file import RecordFile
    from loadgen.report import csv_file, from_dict, request_rows, run_rows
    from loadgen.runner import run_result

    records = [path for path in paths if RecordFile.is_one(path)]
    if not records:
        runs = []
        for path in paths:
            found = _read(path, "csv")[0]
            with run_result.whole(path):
                runs += run_rows.rows(path, map(from_dict, found))
        return csv_file.lines(run_rows.columns(runs), runs)
    if results := [path for path in paths if path not in records]:
        problem = f"{records[0]} has a row for each request, {results[0]} one for each run"
        raise BadInput("FILE", problem, "write two CSV files")
    return csv_file.lines(request_rows.COLUMNS, (row for path in paths for row in request_rows.rows(path)))


def _emulate(path: str, tool: str, as_json: bool) -> None:
    from loadgen.analysis import emulate
    from loadgen.report import to_json

    comparison = emulate.compare(path, tool)
    sys.stdout.write(to_json(comparison.to_dict()) + "\n" if as_json else emulate.render(comparison))


def _latest() -> str:
    found = journals()
    if not found:
        raise BadInput("FILE", f"no run that ended early has left records in {state_folder()}", "name a file")
    return str(found[-1])
