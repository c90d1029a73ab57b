"""Reports: pure functions of what was measured, and the files they are kept in."""

from loadgen.report import series
from loadgen.report.console import render
from loadgen.report.files import (
    check_writable,
    load,
    opener_of,
    overwritten,
    save,
    save_junit,
    save_markdown,
    save_page,
    series_path,
    to_json,
    typed,
)
from loadgen.report.result import RunResult
from loadgen.report.series import is_series
from loadgen.report.slo_misses import misses

__all__ = [
    "RunResult",
    "check_writable",
    "is_series",
    "load",
    "misses",
    "opener_of",
    "overwritten",
    "render",
    "save",
    "save_junit",
    "save_markdown",
    "save_page",
    "series",
    "series_path",
    "to_json",
    "typed",
]
