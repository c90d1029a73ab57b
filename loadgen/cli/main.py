"""The entry point of `loadgen`: dispatches to a command, and turns errors into one line and an
exit code.
"""

import atexit
import contextlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Any, TextIO

from loadgen.cli import command_list, exit_codes
from loadgen.errors import FLAGS, BadInput, GivenUp, LoadgenError, Unreachable, spelled
from loadgen.util.terminal_text import printable, printable_lines

VERSION = ("-V", "--version")


def command() -> None:
    """Run the command of this process, and end the process without the interpreter's clean-up,
    which takes 30 ms.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:  # it is closed, and the next file would get its number
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    try:
        main()
    except SystemExit as ended:
        if not isinstance(ended.code, int):
            raise
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):  # its reader has gone
                stream.flush()
        os._exit(ended.code)


def main(argv: Sequence[str] | None = None) -> None:
    """Run one command and exit with its code."""
    if "_ARGCOMPLETE" in os.environ:  # a shell asks how the command line goes on
        from loadgen.cli.commands import completion

        completion.complete()
    sys.stdout, sys.stderr = map(_usable, (sys.stdout, sys.stderr))
    try:
        code = dispatch(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
    except OSError as error:
        if error.filename is not None:
            print(f"loadgen: {printable(str(error.filename))}: {error.strerror}", file=sys.stderr)
        else:
            print(f"loadgen: standard output cannot be written: {error.strerror}", file=sys.stderr)
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = exit_codes.INTERNAL
    sys.exit(code)


class _Output(io.FileIO):
    """A file that discards output once the reader of its pipe has gone, so that the run goes on
    and keeps its code.
    """

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self.fileno())
            os.close(null)
            return memoryview(data).nbytes


def _usable(output: TextIO | None) -> TextIO:
    """Return a standard stream that a command can write to, also if it is closed or its reader
    goes.
    """
    if output is None:
        return open(os.devnull, "w", encoding="utf-8")
    if type(output) is not io.TextIOWrapper:
        return output
    return io.TextIOWrapper(
        io.BufferedWriter(_Output(output.fileno(), "wb", closefd=False)),
        encoding=output.encoding,
        errors="backslashreplace",  # foreign text may have characters that the encoding lacks
        line_buffering=output.line_buffering,
    )


def dispatch(argv: list[str]) -> int:
    """Run the command that `argv` names; returns its exit code."""
    name, rest = (argv[0], argv[1:]) if argv else ("--help", [])
    if name in ("-h", "--help"):
        name, rest = "help", []
    only_subcommands = not any(word.startswith("-") for word in rest[:-1])
    if name in VERSION or (only_subcommands and rest and rest[-1] in VERSION):
        name, rest = "version", []
    try:
        command = command_list.find(name)
        if command is None:
            print(
                f"loadgen: unknown command {name!r}; {command_list.remedy(name)}", file=sys.stderr
            )
            return exit_codes.BAD_INPUT
        with spelled(FLAGS):
            return command(rest)
    except (BadInput, Unreachable) as error:
        return _complain(name, error, exit_codes.BAD_INPUT)
    except (GivenUp, KeyboardInterrupt):
        before = " before anything was measured" if name in ("run", "search") else ""
        return _complain(name, f"interrupted{before}", exit_codes.INTERRUPTED)
    except LoadgenError as error:
        return _complain(name, error, exit_codes.INTERNAL)


def _complain(name: str, error: object, code: int) -> int:
    print(f"loadgen {name}: {printable_lines(str(error))}", file=sys.stderr)
    return code
