"""Reports: pure functions of what was measured, and the files they are kept in."""

from loadgen.report import series
from loadgen.report.console import render, render_series
from loadgen.report.files import (
    from_dict,
    load,
    opener_for,
    save,
    save_junit,
    save_markdown,
    save_page,
    series_path,
    to_json,
    write_json,
)
from loadgen.report.result import RunResult
from loadgen.report.sections.verdict import describe_misses
from loadgen.report.series import is_series
from loadgen.report.summary_line import summary_line

__all__ = [
    "RunResult",
    "describe_misses",
    "from_dict",
    "is_series",
    "load",
    "opener_for",
    "render",
    "render_series",
    "save",
    "save_junit",
    "save_markdown",
    "save_page",
    "series",
    "series_path",
    "summary_line",
    "to_json",
    "write_json",
]
