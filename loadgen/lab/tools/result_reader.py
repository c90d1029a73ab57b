"""The reader of other tools' results for `loadgen report` and `loadgen compare`, by `loadgen.results`."""

from functools import partial

from loadgen.analysis.compare.other_result import OtherResult
from loadgen.lab.tools import tool_report, tool_result
from loadgen.lab.tools.tool_run import ToolRun


def read(path: str) -> list[OtherResult]:
    """Read the results of another tool in a file; empty if the file holds none of a tool that is known.

    Raises:
        BadInput: The file cannot be read.
    """
    return [
        OtherResult(result.tool, partial(tool_report.render, result), partial(ToolRun, result))
        for result in tool_result.read(path)
    ]
