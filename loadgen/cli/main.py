"""The entry point of `loadgen`: dispatches to a command, and turns errors into one line and an exit code."""

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
    "run": ("measure a server, or the built-in simulator", "loadgen.cli.commands.run"),
    "search": ("find the highest request rate, or concurrency, that meets an SLO", "loadgen.cli.commands.search"),
    "dataset": ("show the prompts of a run, or download a published data set", "loadgen.cli.commands.dataset"),
    "doctor": ("show the limits of this machine, and how much load it can generate", "loadgen.cli.commands.doctor"),
    "report": ("print the report of a saved result, or write it as HTML or CSV", "loadgen.cli.commands.report"),
    "compare": ("compare runs, with confidence intervals of the differences", "loadgen.cli.commands.compare"),
    "tune": ("find the best way to serve a model, by a study", "loadgen.cli.commands.tune"),
    "audit": ("find inconsistent numbers in published results", "loadgen.cli.commands.audit"),
    "import": ("import published results into a study", "loadgen.cli.commands.import_published"),
    "benchmark-runner": ("run a benchmark job of GPUStack", "loadgen.cli.commands.benchmark_runner"),
}


def main(argv: Sequence[str] | None = None) -> None:
    """Run one command and exit with its code."""
    if type(sys.stdout) is io.TextIOWrapper:
        sys.stdout = _surviving(sys.stdout)
    if type(sys.stderr) is io.TextIOWrapper:
        sys.stderr = _surviving(sys.stderr)
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
    """A file that discards output once the reader of its pipe has gone, so that the run goes on and keeps its code."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self.fileno())
            os.close(null)
            return memoryview(data).nbytes


def _surviving(output: io.TextIOWrapper) -> io.TextIOWrapper:
    """Wrap a standard stream so that a broken pipe does not end the command."""
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
        print(_help())
        return exit_codes.DONE
    if name in ("-V", "--version") or rest == ["--version"]:
        print(f"loadgen {__version__}")
        return exit_codes.DONE
    try:
        command = _command(name)
        if command is None:
            print(f"loadgen: unknown command {name!r}; {_remedy(name)}", file=sys.stderr)
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
    """Return the command of that name, or None."""
    if name in OWN:
        import importlib

        found: Command = importlib.import_module(OWN[name][1]).main
        return found
    plugin_commands = _plugin_commands()
    if name in plugin_commands:
        command: Command = plugin_commands[name].load()
        return command
    return None


def _remedy(name: str) -> str:
    """Suggest what to write instead of an unknown command."""
    import difflib

    known = [*OWN, *_plugin_commands()]
    if name.startswith("-"):
        return f"write the command first, for example `loadgen run {printable(name)}`"
    near = difflib.get_close_matches(name, known, 1)
    return f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(known)}"


def _plugin_commands() -> "dict[str, EntryPoint]":
    """Return the commands that packages add by entry points; loadgen's engines are among them."""
    import importlib.metadata

    return {entry.name: entry for entry in importlib.metadata.entry_points(group="loadgen.commands")}


def _summary(entry: "EntryPoint") -> str:
    """Return the summary of an added command: the first sentence of its docstring."""
    try:
        text = (entry.load().__doc__ or "").strip()
    except Exception:  # noqa: BLE001 - a broken package must not hide the other commands
        return "(fails to load)"
    return printable(text[:1].lower() + text[1:].partition(".")[0])


def _help() -> str:
    rows = [(name, text) for name, (text, _) in OWN.items()]
    rows += [(name, _summary(entry)) for name, entry in sorted(_plugin_commands().items())]
    lines = [f"  {name:<16} {text}".rstrip() for name, text in rows]
    return "\n".join(
        [
            "loadgen: an open-loop load generator for LLM servers.",
            "",
            "usage: loadgen COMMAND [FLAGS]",
            "",
            *lines,
            "",
            "To measure a server: loadgen run --base-url URL --rate 10",
            "To measure the built-in simulator: loadgen run --rate 1000",
            "To list the flags of a command: loadgen COMMAND --help",
            "`loadgen run` takes the flags of `vllm bench serve`.",
            "",
            "Exit codes:",
            exit_codes.EXPLAINED,
        ]
    )


def _complain(name: str, error: object, code: int) -> int:
    print(f"loadgen {name}: {printable_lines(str(error))}", file=sys.stderr)
    return code
