"""Reports: pure functions of what was measured, and the files they are kept in."""

from loadgen.report.console import render
from loadgen.report.files import check_writable, load, save, to_json
from loadgen.report.result import build

__all__ = ["build", "check_writable", "load", "render", "save", "to_json"]
