"""`loadgen serve`: run one server in the foreground until the user stops it."""

import argparse
import json
import shlex
import signal
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from loadgen.config.option import flag
from loadgen.engines.kinds.engine import Engine, Launch
from loadgen.engines.kinds.knobs import KNOBS, own_knobs
from loadgen.engines.launch.launcher import SHOWN_PORT, Launcher
from loadgen.engines.launch.server import GRACE_S, READY_S
from loadgen.errors import Place, placed, setting
from loadgen.util.argument_parser import OneLineParser, integer, integer_within, number
from loadgen.util.terminal_text import printable

LINE_INTERVAL_S = 2.0


def serve_engine(engine: Engine, argv: Sequence[str]) -> int:
    """Start a server, print its URL when it is ready, and stop it at Ctrl-C, SIGTERM or SIGHUP.

    Args:
        engine: The kind of engine.
        argv: The command line after the engine's name.

    Returns:
        The exit code.

    Raises:
        BadInput: A flag or a knob cannot be used.
        EngineError: The server did not start, ended by itself, or did not stop.
    """
    end = list(argv).index("--") if "--" in argv else len(argv)
    flags, raw = _parser(engine).parse_args(argv[:end]), argv[end + 1 :]
    names = (*KNOBS, *own_knobs(engine.knobs()))
    knobs = {name: value for name in names if (value := getattr(flags, name)) is not None}
    devices = tuple(flags.devices.split(",")) if flags.devices else ()
    with placed(partial(_as_flag, flags)):
        where = {"host": flags.host, "port": flags.port, "devices": devices}
        if flags.dry_run:
            where["port"] = flags.port or SHOWN_PORT
            print(as_shell(Launcher.shown(engine, flags.model, knobs, raw, **where)))
            return 0
        server = Launcher().begin(engine, flags.model, knobs, raw, **where)
    stop_signals = [signal.SIGINT, signal.SIGTERM]
    if (
        signal.getsignal(signal.SIGHUP) != signal.SIG_IGN
    ):  # nohup lets the server survive the terminal
        stop_signals.append(signal.SIGHUP)
    _handle(stop_signals, _interrupt)
    try:
        _print(f"starting {engine.name}: {shlex.join(server.launch.argv)}")
        _print(f"log: {server.log.path}")
        server.ready(flags.timeout, Progress(server.usual_s))
        for difference in server.differences():
            _print(str(difference))
        tokenizer = [f"tokenizer {server.tokenizer}"] if server.tokenizer else []
        print(
            f"listening on {server.base_url}",
            f"model {server.model}",
            *tokenizer,
            sep="\n",
            flush=True,
        )
        while not server.wait_ended(3600.0):
            pass
        trouble = server.trouble()
        assert trouble is not None
        raise trouble
    except KeyboardInterrupt:
        _handle(stop_signals, server.hurry)
        _print(f"stopping; killed after {GRACE_S:g} s or at the next Ctrl-C")
        return 0
    finally:
        # A second signal must not leave the server half stopped.
        _handle(stop_signals, server.hurry)
        server.stop(0.0 if sys.exc_info()[0] is not None else GRACE_S)


def as_shell(launch: Launch) -> str:
    """Return a launch as shell code: variables and command; its files stand in comments."""
    lines = [f"# {shlex.join(launch.shorthand)}"] if launch.shorthand else []
    lines += [f"cd {shlex.quote(str(launch.folder))}"] if launch.folder else []
    variables = [f"{name}={shlex.quote(value)}" for name, value in launch.env.items()]
    lines.append(" ".join([*variables, shlex.join(launch.argv)]))
    for path, text in launch.files.items():
        lines += [f"# {path}:", *(f"#   {line}" for line in text.splitlines())]
    return "\n".join(lines)


class Progress:
    """Prints a line every 2 s while a server starts.

    Args:
        usual_s: Usual start-up time, s; None: unknown.
    """

    def __init__(self, usual_s: float | None) -> None:
        self._usual = "" if usual_s is None else f" (usually {usual_s:.0f} s)"
        self._next_s = 0.0

    def __call__(self, elapsed_s: float, last_line: str) -> None:
        """Print the elapsed time and the last line of the log."""
        if time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + LINE_INTERVAL_S
            _print(f"starting {elapsed_s:.0f} s{self._usual}: {last_line or 'no output yet'}")


def _parser(engine: Engine) -> argparse.ArgumentParser:
    parser = OneLineParser(
        f"loadgen serve {engine.name}",
        usage="%(prog)s MODEL [flags] [-- the engine's own flags]",
        description="Start a server, print its URL when it is ready, and stop it at Ctrl-C.",
    )
    # Only the simulator has a default: it needs no model.
    model = getattr(engine, "default_model", None)
    model_help = "a folder, a file or a hub name" if model is None else f"any name ({model})"
    parser.add_argument(
        "model", metavar="MODEL", nargs="?" if model else None, default=model, help=model_help
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    parser.add_argument(
        "--port", type=integer_within(1, 65535), help="port to listen on (a free one)"
    )
    parser.add_argument(
        "--devices", metavar="ID,ID", help="accelerators that it may use (all that it finds)"
    )
    parser.add_argument(
        "--timeout",
        type=number,
        default=READY_S,
        metavar="S",
        help="maximum start-up time (%(default)g)",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print the command without starting it"
    )
    named = engine.knobs()
    knobs = parser.add_argument_group(
        "knobs", "settings under names that all engines share; [this engine's own name]"
    )
    for knob in KNOBS.values():
        own = named.get(knob.name, f"{engine.name} has no such knob")
        knobs.add_argument(flag(knob.name), help=f"{knob.help} [{own}]", **_ARGUMENTS[knob.kind])
    for name in own_knobs(named):
        knobs.add_argument(flag(name), help=f"a knob of {engine.name} alone [{named[name]}]")
    return parser


def _mapping(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f"{text!r} is not a JSON object")
    return value


_ARGUMENTS: dict[type, dict[str, Any]] = {
    int: {"type": integer, "metavar": "N"},
    float: {"type": number, "metavar": "X"},
    str: {"metavar": "WORD"},
    bool: {"action": argparse.BooleanOptionalAction},
    dict: {"type": _mapping, "metavar": "JSON"},
}


def _as_flag(flags: argparse.Namespace, path: Place) -> Place:
    """Return where a setting of the engine was written: in its flag, if it has one."""
    name, *part = str(path[0]).split(".")
    return (".".join((setting(name), *part)), *path[1:]) if name in vars(flags) else path


def _handle(signals: Sequence[signal.Signals], handler: Callable[[], None]) -> None:
    for each in signals:
        signal.signal(each, lambda *_: handler())


def _interrupt() -> None:
    raise KeyboardInterrupt


def _print(text: str) -> None:
    print(f"loadgen: {printable(text)}", file=sys.stderr, flush=True)
