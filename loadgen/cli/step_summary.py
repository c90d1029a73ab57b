"""The summary of a step of GitHub Actions: Markdown that is appended to the file that $GITHUB_STEP_SUMMARY names."""

import os
from typing import TYPE_CHECKING

from loadgen.cli.stderr import say

if TYPE_CHECKING:
    from loadgen.report.result import RunResult
    from loadgen.report.result.series import Series

VARIABLE = "GITHUB_STEP_SUMMARY"


def wanted() -> bool:
    """Whether GitHub asks for a summary."""
    return bool(os.environ.get(VARIABLE))


def append_result(result: "RunResult | Series") -> None:
    """Append the summary of a result, or of a series, if GitHub asks for it."""
    if wanted():
        from loadgen.report import ci_summary

        append(ci_summary.markdown(result))


def append(markdown: str) -> None:
    """Append Markdown; a file that cannot be written is reported, and fails nothing."""
    path = os.environ[VARIABLE]
    try:
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{markdown}\n")
    except OSError as error:
        say(f"${VARIABLE}: {path} cannot be written ({error.strerror})")
