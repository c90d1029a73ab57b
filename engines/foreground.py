"""Foreground: one server for as long as its user wants it."""

import argparse
import contextlib
import json
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from loadgen.engines.engine import Engine, Launch
from loadgen.engines.knobs import KNOBS
from loadgen.engines.launcher import SHOWN_PORT, Launcher
from loadgen.engines.server import GRACE_S, READY_S
from loadgen.errors import BadInput
from loadgen.util.argument_parser import OneLineParser, integer, integer_within, number
from loadgen.util.terminal_text import printable

LINE_EVERY_S = 2.0


def foreground(engine: Engine, argv: Sequence[str]) -> int:
    """Start a server as the flags say, print its URL once it answers, and put it away at Ctrl-C, SIGTERM or SIGHUP.

    Returns:
        The exit code: 0; 1 where the server ended by itself.

    Raises:
        BadInput: A flag or a knob is of no use.
        EngineError: It did not start, or did not stop.
    """
    own, raw = _split(argv)
    flags = _parser(engine).parse_args(own)
    knobs = {name: value for name in KNOBS if (value := getattr(flags, name)) is not None}
    devices = tuple(flags.devices.split(",")) if flags.devices else ()
    with _named_as_flags(flags):
        if flags.dry_run:
            where = {"host": flags.host, "port": flags.port or SHOWN_PORT, "devices": devices}
            print(shown(Launcher.shown(engine, flags.model, knobs, raw, **where)))
            return 0
        where = {"host": flags.host, "port": flags.port, "devices": devices}
        server = Launcher().begin(engine, flags.model, knobs, raw, **where)
    asking = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup has it outlive the terminal
        asking.append(signal.SIGHUP)
    _obey(asking, _interrupt)
    try:
        _say(f"starting {engine.name}: {shlex.join(server.launch.argv)}")
        _say(f"its log: {server.log.path}")
        server.ready(flags.timeout, Progress(server.usual_s))
        for difference in server.differences():
            _say(str(difference))
        tokenizer = [f"tokenizer {server.tokenizer}"] if server.tokenizer else []
        print(f"listening on {server.base_url}", f"model {server.model}", *tokenizer, sep="\n", flush=True)
        while not server.wait_ended(3600.0):
            pass
        trouble = server.trouble()
        assert trouble is not None
        raise trouble
    except KeyboardInterrupt:
        _obey(asking, server.hurry)
        _say(f"stopping; in {GRACE_S:g} s, or at the next Ctrl-C, it is killed")
        return 0
    finally:
        _obey(asking, server.hurry)  # a second one must not leave it half stopped
        server.stop(0.0 if sys.exc_info()[0] is not None else GRACE_S)


def shown(launch: Launch) -> str:
    """What would be started: variables, command, and files, in the shell's language."""
    lines = [f"# {shlex.join(launch.shorthand)}"] if launch.shorthand else []
    lines += [f"cd {shlex.quote(str(launch.folder))}"] if launch.folder else []
    variables = [f"{name}={shlex.quote(value)}" for name, value in launch.env.items()]
    lines.append(" ".join([*variables, shlex.join(launch.argv)]))
    for path, text in launch.files.items():
        lines += [f"# {path}:", *(f"#   {line}" for line in text.splitlines())]
    return "\n".join(lines)


class Progress:
    """A line now and then while a server starts.

    Args:
        usual_s: How long that has taken before; None: nobody knows.
    """

    def __init__(self, usual_s: float | None) -> None:
        self._usual = "" if usual_s is None else f" (usually {usual_s:.0f} s)"
        self._next_s = 0.0

    def __call__(self, elapsed_s: float, last_line: str) -> None:
        """Say how long it has taken, and what the engine said last."""
        if time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + LINE_EVERY_S
            _say(f"starting {elapsed_s:.0f} s{self._usual}: {last_line or 'nothing said yet'}")


def _parser(engine: Engine) -> argparse.ArgumentParser:
    parser = OneLineParser(
        f"loadgen serve {engine.name}",
        usage="%(prog)s MODEL [flags] [-- the engine's own flags]",
        description="Start a server, say where it listens once it answers, and put it away at Ctrl-C.",
    )
    # The simulator alone has one: it needs none.
    model = getattr(engine, "default_model", None)
    meant = "a folder, a file or a hub name" if model is None else f"any name ({model})"
    parser.add_argument("model", metavar="MODEL", nargs="?" if model else None, default=model, help=meant)
    parser.add_argument("--host", default="127.0.0.1", help="to listen on (%(default)s)")
    parser.add_argument("--port", type=integer_within(1, 65535), help="to listen on (one that is free)")
    parser.add_argument("--devices", metavar="ID,ID", help="accelerators that it may use (those it finds)")
    parser.add_argument("--timeout", type=number, default=READY_S, metavar="S", help="until it answers (%(default)g)")
    parser.add_argument("--dry-run", action="store_true", help="print what would be started, and end")
    named = engine.knobs()
    knobs = parser.add_argument_group("knobs", "in the names that all engines share; [what this one calls them]")
    for knob in KNOBS.values():
        own = named.get(knob.name, f"{engine.name} has no such knob")
        knobs.add_argument(_flag(knob.name), help=f"{knob.help} [{own}]", **_ARGUMENTS[knob.kind])
    return parser


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _mapping(text: str) -> dict[str, Any]:
    """A JSON object, as `type=` of an argument."""
    try:
        told = json.loads(text)
    except ValueError:
        told = None
    if not isinstance(told, dict):
        raise argparse.ArgumentTypeError(f"{text!r} is no JSON object")
    return told


_ARGUMENTS: dict[type, dict[str, Any]] = {
    int: {"type": integer, "metavar": "N"},
    float: {"type": number, "metavar": "X"},
    str: {"metavar": "WORD"},
    bool: {"action": argparse.BooleanOptionalAction},
    dict: {"type": _mapping, "metavar": "JSON"},
}


@contextlib.contextmanager
def _named_as_flags(flags: argparse.Namespace) -> Iterator[None]:
    """What an engine finds unusable is named as its user wrote it."""
    try:
        yield
    except BadInput as error:
        name, *part = error.field.split(".")
        if name not in vars(flags):
            raise
        raise BadInput(".".join([_flag(name), *part]), error.problem, error.remedy) from error


def _split(argv: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Our flags, and those behind `--`, which are the engine's."""
    end = list(argv).index("--") if "--" in argv else len(argv)
    return argv[:end], argv[end + 1 :]


def _obey(asking: Sequence[signal.Signals], what: Callable[[], None]) -> None:
    """Let each of the signals do `what`."""
    for each in asking:
        signal.signal(each, lambda *_: what())


def _interrupt() -> None:
    raise KeyboardInterrupt


def _say(text: str) -> None:
    print(f"loadgen: {printable(text)}", file=sys.stderr, flush=True)
