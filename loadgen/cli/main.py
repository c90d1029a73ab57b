"""`loadgen`: finds the command and runs it; one place where errors become one line and an exit code."""

import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from loadgen.cli import exit_codes
from loadgen.errors import BadInput, GivenUp, LoadgenError, Unreachable
from loadgen.util.terminal_text import printable, printable_lines
from loadgen.version import __version__

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Command = Callable[[list[str]], int]
OWN = {
    "run": ("measure a server (or the built-in simulator)", "loadgen.cli.commands.run"),
    "search": ("find the highest rate, or concurrency, at which a server meets an SLO", "loadgen.cli.commands.search"),
    "dataset": ("show what a run would send, or fetch a published file", "loadgen.cli.commands.dataset"),
    "doctor": ("show what bounds a run on this machine, and how to raise it", "loadgen.cli.commands.doctor"),
    "report": ("print the report of a saved result again, or write it as a page", "loadgen.cli.commands.report"),
    "compare": ("hold runs against each other: what differs, and how sure that is", "loadgen.cli.commands.compare"),
    "tune": ("find out by a study how a model is served best", "loadgen.cli.commands.tune"),
    "audit": ("list what of published results cannot be true", "loadgen.cli.commands.audit"),
    "import": ("put published results into a store of a study", "loadgen.cli.commands.import_published"),
    "benchmark-runner": ("run a benchmark job of GPUStack's", "loadgen.cli.commands.benchmark_runner"),
}


def main(argv: Sequence[str] | None = None) -> None:
    """Run one command and exit with its code."""
    if type(sys.stdout) is io.TextIOWrapper:
        sys.stdout = _outliving(sys.stdout)
    if type(sys.stderr) is io.TextIOWrapper:
        sys.stderr = _outliving(sys.stderr)
    try:
        code = dispatch(list(sys.argv[1:] if argv is None else argv))
        if sys.stdout is not None:
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
    """Output that goes nowhere once its reader has gone: no run is lost for it, and no gate in a pipe passes."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            return memoryview(data).nbytes


def _outliving(output: io.TextIOWrapper) -> io.TextIOWrapper:
    """The same, for a command that ends as it would have, though whoever reads it does not wait for that."""
    return io.TextIOWrapper(
        io.BufferedWriter(_Output(output.fileno(), "wb", closefd=False)),
        encoding=output.encoding,
        errors="backslashreplace",  # texts of others may have what a terminal cannot show
        line_buffering=output.line_buffering,
    )


def dispatch(argv: list[str]) -> int:
    """Run the command that `argv` names; returns the exit code."""
    name, rest = (argv[0], argv[1:]) if argv else ("--help", [])
    if name in ("-h", "--help"):
        print(_help())
        return exit_codes.DONE
    if name in ("-V", "--version") or rest == ["--version"]:
        print(f"loadgen {__version__}")
        return exit_codes.DONE
    try:
        command = _command(name)
        if command is None:
            print(f"loadgen: {name!r} is no command; {_instead_of(name)}", file=sys.stderr)
            return exit_codes.BAD_INPUT
        return command(rest)
    except (BadInput, Unreachable) as error:
        return _complain(name, error, exit_codes.BAD_INPUT)
    except (GivenUp, KeyboardInterrupt):
        before = " before anything was measured" if name in ("run", "search") else ""
        return _complain(name, f"interrupted{before}", exit_codes.INTERRUPTED)
    except LoadgenError as error:
        return _complain(name, error, exit_codes.INTERNAL)


def _command(name: str) -> Command | None:
    """The command of that name; None: there is none."""
    if name in OWN:
        import importlib

        found: Command = importlib.import_module(OWN[name][1]).main
        return found
    added = _added()
    if name in added:
        command: Command = added[name].load()
        return command
    return None


def _instead_of(name: str) -> str:
    """What to write where there is no command of that name."""
    import difflib

    known = [*OWN, *_added()]
    if name.startswith("-"):
        return f"write `loadgen run {printable(name)}`, or another command before the flags"
    near = difflib.get_close_matches(name, known, 1)
    return f"try {near[0]!r}" if near else f"choose from {', '.join(known)}"


def _added() -> "dict[str, EntryPoint]":
    """Commands that other packages, loadgen's own engines among them, add."""
    import importlib.metadata

    return {entry.name: entry for entry in importlib.metadata.entry_points(group="loadgen.commands")}


def _summary(entry: "EntryPoint") -> str:
    """What a command that another package adds says of itself: its docstring up to the first full stop."""
    try:
        said = (entry.load().__doc__ or "").strip()
    except Exception:  # noqa: BLE001 - a broken package must not hide the other commands
        return "(cannot be loaded)"
    return printable(said[:1].lower() + said[1:].partition(".")[0])


def _help() -> str:
    rows = [(name, text) for name, (text, _) in OWN.items()]
    rows += [(name, _summary(entry)) for name, entry in sorted(_added().items())]
    lines = [f"  {name:<16} {text}".rstrip() for name, text in rows]
    return "\n".join(
        [
            "loadgen: an open-loop load generator for LLM servers.",
            "",
            "usage: loadgen COMMAND [FLAGS]",
            "",
            *lines,
            "",
            "`loadgen run --rate 1000` measures the built-in simulator; `loadgen run --base-url URL` a server.",
            "`loadgen COMMAND --help` lists the flags, which are those of `vllm bench serve`.",
            "",
            "Exit codes:",
            exit_codes.EXPLAINED,
        ]
    )


def _complain(name: str, error: object, code: int) -> int:
    print(f"loadgen {name}: {printable_lines(str(error))}", file=sys.stderr)
    return code
