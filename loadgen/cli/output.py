"""What a command writes beside its report: lines on stderr, files at its end, the summary of a
step on GitHub.
"""

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from loadgen.errors import BadInput, NotWritten
from loadgen.util.terminal_text import printable

if TYPE_CHECKING:
    from rich.console import Console

    from loadgen.report.result import RunResult
    from loadgen.report.result.series import Series

# What another name mends; any other error is of the disk or the device.
OF_THE_NAME = (
    *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.EPERM),
    *(errno.EROFS, errno.ELOOP, errno.ENAMETOOLONG),
)
STEP_SUMMARY = (
    "GITHUB_STEP_SUMMARY"  # the variable that names the file to which a step appends Markdown
)


def say(text: str) -> None:
    """Print a line; what a terminal may interpret is escaped."""
    print(f"loadgen: {printable(text)}", file=sys.stderr, flush=True)


def screen() -> "Console | None":
    """Return a console of rich if stderr is a terminal on which lines can be redrawn, else None."""
    if not sys.stderr.isatty():
        return None
    from rich.console import Console

    console = Console(stderr=True)
    return None if console.is_dumb_terminal else console


@contextlib.contextmanager
def writing(flag: str, path: str) -> Iterator[None]:
    """Name a file, and the flag that asks for it, in an OSError of the block that writes it.

    Raises:
        BadInput: It cannot be written under this name.
        NotWritten: It could not be written.
    """
    try:
        yield
    except OSError as error:
        problem = f"{path} cannot be written ({error.strerror or error})"
        if error.errno in OF_THE_NAME:
            raise BadInput(flag, problem, "choose another path") from error
        raise NotWritten(f"{flag}: {problem}") from error


def wants_step_summary() -> bool:
    """Whether GitHub asks for a summary."""
    return bool(os.environ.get(STEP_SUMMARY))


def append_result_summary(result: "RunResult | Series") -> None:
    """Append the summary of a result, or of a series, if GitHub asks for it."""
    if wants_step_summary():
        from loadgen.report import ci_summary

        append_step_summary(ci_summary.markdown(result))


def append_step_summary(markdown: str) -> None:
    """Append Markdown; a file that cannot be written is reported, and fails nothing."""
    path = os.environ[STEP_SUMMARY]
    try:
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{markdown}\n")
    except OSError as error:
        say(f"${STEP_SUMMARY}: {path} cannot be written ({error.strerror})")
