"""`loadgen report FILE`: print the report of a saved result or of records, or write it as a page
or a table.
"""

import json
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from loadgen.cli import exit_codes
from loadgen.cli.output import say, writing
from loadgen.cli.runs.journal import journals
from loadgen.config.output import PAGE
from loadgen.errors import BadInput
from loadgen.metrics.records.file import RecordFile
from loadgen.util import packages
from loadgen.util.argument_parser import OneLineParser
from loadgen.util.files import atomic_file, state_folder
from loadgen.util.redaction import redact_user
from loadgen.util.terminal_text import Screen

if TYPE_CHECKING:
    from loadgen.analysis.compare.other_result import OtherResult
    from loadgen.report import RunResult
    from loadgen.report.console import Form
    from loadgen.report.result.series import Series

    # Each file that is read, with its results of loadgen, or those of another tool.
    Files = Sequence[tuple[str, list[dict[str, Any]], list[OtherResult]]]

T = TypeVar("T")
STDOUT = "-"


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code."""
    arguments = _parser().parse_args(argv)
    if arguments.schema:
        from loadgen.report.result import schema

        return _print_fixed("--schema", arguments.files, schema.text)
    if arguments.grafana:
        from loadgen.cli.runs.metrics_endpoint import DASHBOARD

        dashboard = json.loads(DASHBOARD.read_text())
        return _print_fixed(
            "--grafana", arguments.files, lambda: json.dumps(dashboard, indent=2) + "\n"
        )
    PAGE.check("--html", arguments.html)
    written = [
        name
        for name in ("csv", "markdown", "junit", "html", "parquet", "otlp")
        if getattr(arguments, name) is not None
    ]
    for name in written:
        if arguments.tool:
            raise BadInput(
                f"--{name}",
                "cannot be combined with --as, which only prints",
                "leave one of the two out",
            )
        to = os.path.realpath(getattr(arguments, name))
        if to in map(os.path.realpath, arguments.files):
            raise BadInput(
                f"--{name}",
                f"{getattr(arguments, name)} is the file that is to be read",
                "name another",
            )
    if len(written) > 1:
        raise BadInput(
            f"--{written[-1]}", f"cannot be combined with --{written[0]}", "run the command twice"
        )
    paths = arguments.files or list(map(str, journals()[-1:]))
    if not paths:
        raise BadInput(
            (), f"no run that ended early has left records in {state_folder()}", "name a file"
        )
    if not arguments.files:
        say(f"the records of the last run that ended early: {paths[0]}")
    if arguments.to is not None and not arguments.tool:
        raise BadInput("--to", "has no effect without --as", "add --as aiperf")
    if arguments.tool:
        emulate = packages.load("--as", packages.installed("loadgen.emulations")["other-tools"])
        if arguments.to is not None and len(paths) > 1:
            problem = f"takes the records of one run, and {len(paths)} are given"
            raise BadInput("--to", problem, "name one")
        for path in paths:
            with writing("--to", arguments.to or ""):
                text = emulate(path, arguments.tool, as_json=arguments.json, folder=arguments.to)
            sys.stdout.write(text)
        return exit_codes.DONE
    if arguments.parquet is not None or arguments.otlp is not None:
        return _export(paths, arguments.parquet, arguments.otlp)
    if arguments.csv is not None:
        _write("--csv", arguments.csv, _csv_lines(paths))
        return exit_codes.DONE

    form = next((name for name in (*written, "json") if getattr(arguments, name)), None)
    files = [(path, *_read(path, form)) for path in paths]
    if arguments.html:
        _write_page(arguments.html, files)
    elif arguments.markdown:
        from loadgen.report import ci_summary

        texts = (made for _, made in _of_each(files, lambda _, result: ci_summary.markdown(result)))
        _write("--markdown", arguments.markdown, ["\n".join(chain.from_iterable(texts))])
    elif arguments.junit:
        _write("--junit", arguments.junit, [_junit(files)])
    if (to := arguments.html or arguments.markdown or arguments.junit) and to != STDOUT:
        print(f"Saved: {to}", file=sys.stderr if arguments.json else sys.stdout)
    if arguments.json or not written:
        short: Form = "brief" if arguments.brief else "block"
        _print(files, arguments.json, "full" if arguments.full else short)
    return exit_codes.DONE


def _parser() -> OneLineParser:
    parser = OneLineParser(
        prog="loadgen report",
        description="Print the report of a saved result or of a file of records, or write it as a "
        "page or a table.",
    )
    add = parser.add_argument
    add(
        "files",
        metavar="FILE",
        nargs="*",
        help="a result of `loadgen run` or `loadgen search` (--save-result, --json), a file of "
        "--records, or a result of vLLM, SGLang, AIPerf, guidellm or inference-perf; without FILE: "
        "the records of the last run that ended early",
    )
    add(
        "--as",
        dest="tool",
        metavar="TOOL",
        help="print what another load generator would have reported for these records, and why: "
        "vllm-0.11, vllm-0.32, vllm-0.33, vllm-rs, sglang, benchmark-runner, aiperf, "
        "inference-perf",
    )
    add(
        "--to",
        metavar="FOLDER",
        help="with --as aiperf or inference-perf: write the files of that tool into FOLDER, as its "
        "readers take them",
    )
    add("--brief", action="store_true", help="leave the `vllm bench serve` block out")
    add("--full", action="store_true", help="print everything that is known about a run")
    add("--html", metavar="FILE.html", help="write the report as an HTML page instead")
    add(
        "--markdown",
        metavar="FILE|-",
        help="write a summary of each result as Markdown that GitHub renders instead",
    )
    add(
        "--junit",
        metavar="FILE|-",
        help="write JUnit XML instead, one test case per limit of --slo",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--json", action="store_true", help="print the result as JSON instead, one line per result"
    )
    form.add_argument(
        "--csv",
        metavar="FILE|-",
        help="write CSV instead: one row per run or, for records, one row per request",
    )
    form.add_argument(
        "--parquet", metavar="FILE", help="write records as Parquet, one row per request"
    )
    form.add_argument(
        "--otlp",
        metavar="URL",
        help="send records to an OpenTelemetry collector at URL, over HTTP: a span for each "
        "request, and histograms",
    )
    form.add_argument("--schema", action="store_true", help="print the JSON schema of results")
    form.add_argument(
        "--grafana",
        action="store_true",
        help="print the Grafana dashboard for the metrics of --prometheus",
    )
    return parser


def _print_fixed(name: str, paths: Sequence[str], text: Callable[[], str]) -> int:
    """Print what depends on no result.

    Raises:
        BadInput: A file is given.
    """
    if paths:
        raise BadInput(name, f"takes no file, and {paths[0]} is given", "leave one of the two out")
    sys.stdout.write(text())
    return exit_codes.DONE


def _read(path: str, form: str | None) -> "tuple[list[dict[str, Any]], list[OtherResult]]":
    """Read the results of loadgen in a file, or those of another tool.

    Args:
        path: The file.
        form: The flag that asks for more than the console's report; None without one.

    Raises:
        BadInput: It cannot be read, or is of another tool, and such a form is asked for.
    """
    from loadgen.runner import run_result

    try:
        return run_result.read(path), []
    except BadInput:
        from loadgen.analysis.compare import other_result

        others = other_result.read(path)
        if not others:
            raise
        if form is not None:
            problem = (
                f"{path} is a result of {others[0].tool}, of which only the console's "
                "report is made"
            )
            raise BadInput(f"--{form}", problem, "leave it out") from None
        return [], others


def _of_each(
    files: "Files", make: "Callable[[str, RunResult | Series], T]"
) -> "Iterator[tuple[str, list[T]]]":
    """Yield each file, and what is made of its path and each of its results."""
    from loadgen.report import from_dict
    from loadgen.runner import run_result

    for path, saved, _ in files:
        with run_result.whole(path):
            made = [make(path, from_dict(result)) for result in saved]
        yield path, made


def _print(files: "Files", as_json: bool, form: "Form") -> None:
    from loadgen.report import RunResult, render, render_series, to_json

    if as_json:
        for _, saved, _ in files:
            sys.stdout.writelines(f"{to_json(result)}\n" for result in saved)
        return
    screen = Screen.of(sys.stdout)

    def text(path: str, result: "RunResult | Series") -> str:
        if isinstance(result, RunResult):
            return render(result, form=form, screen=screen)
        return render_series(result, screen=screen)

    for (_, texts), (_, _, others) in zip(_of_each(files, text), files, strict=True):
        sys.stdout.writelines((*texts, *(other.text() for other in others)))


def _write_page(page: str, files: "Files") -> None:
    from loadgen.report import save_page
    from loadgen.report.run_page import html
    from loadgen.runner import run_result

    results = list(
        chain.from_iterable(made for _, made in _of_each(files, lambda _, result: result))
    )
    try:
        with writing("--html", page), run_result.whole(", ".join(path for path, _, _ in files)):
            save_page(page, results)
    except BadInput as error:
        if not error.path:  # find the file at fault
            deque(_of_each(files, lambda _, result: html([result])), 0)
        raise


def _write(name: str, to: str, lines: Iterable[str]) -> None:
    if to == STDOUT:
        sys.stdout.write("".join(lines))  # nothing of it before an error
        return
    with writing(name, to), atomic_file(Path(to)) as file:
        file.writelines(line.encode() for line in lines)


def _export(paths: Sequence[str], parquet: str | None, url: str | None) -> int:
    """Write the records of a run as Parquet, or send them to a collector.

    Raises:
        BadInput: There are several files, or the one is not of records.
    """
    from loadgen.report import otlp
    from loadgen.report import parquet as tables
    from loadgen.runner import run_result

    flag = tables.FLAG if parquet is not None else otlp.FLAG
    path, *others = paths
    if others:
        raise BadInput(
            flag, f"takes the records of one run, and {len(paths)} are given", "name one"
        )
    if not RecordFile.is_one(path):
        raise BadInput(flag, f"{path} has no records", "name a file that --records wrote")
    if parquet is not None:
        with writing(flag, parquet):
            rows = tables.write(path, parquet)
        print(f"Saved: {parquet}, {rows:,} rows")
        return exit_codes.DONE
    assert url is not None
    sent = otlp.export(path, url, str(run_result.from_records(path).verdict))
    unsent = f"; {sent.unsent:,} requests were never sent, and have none" if sent.unsent else ""
    print(f"Sent to {redact_user(url)}: {sent.spans:,} spans, {sent.metrics} metrics{unsent}")
    for warning in sent.warnings:
        print(f"The collector warns: {warning}", file=sys.stderr)
    if not sent.joins:
        print("The server's spans do not join these: the run had no --trace", file=sys.stderr)
    return exit_codes.DONE


def _junit(files: "Files") -> str:
    """Write a suite for each run.

    Raises:
        BadInput: A file holds a series, whose runs have results of their own.
    """
    from loadgen.report import RunResult, ci_summary, gate

    def suite(path: str, result: "RunResult | Series") -> gate.Suite | None:
        return ci_summary.suite(result) if isinstance(result, RunResult) else None

    suites: list[gate.Suite] = []
    for path, made in _of_each(files, suite):
        if None in made:
            raise BadInput(
                "--junit", f"{path} is a series, which has no gate", "name the results of its runs"
            )
        suites += filter(None, made)
    return gate.junit_xml(suites)


def _csv_lines(paths: Sequence[str]) -> Iterator[str]:
    """Make a row for each run or, if the files are records, for each request.

    Raises:
        BadInput: Results and records are mixed, or a file cannot be read.
    """
    from loadgen.report import csv_rows

    records = [path for path in paths if RecordFile.is_one(path)]
    if not records:
        files = [(path, *_read(path, "csv")) for path in paths]
        runs: list[dict[str, Any]] = []
        for _, tables in _of_each(files, lambda path, result: csv_rows.run_rows(path, [result])):
            runs += chain.from_iterable(tables)
        return csv_rows.lines(csv_rows.run_columns(runs), runs)
    if results := [path for path in paths if path not in records]:
        problem = f"{records[0]} has a row for each request, {results[0]} one for each run"
        raise BadInput((), problem, "write two CSV files")
    return csv_rows.lines(
        csv_rows.REQUEST_COLUMNS, chain.from_iterable(map(csv_rows.request_rows, paths))
    )
