"""`loadgen doctor`: show the limits of this machine, the commands that raise them, and the load it can make."""

import json
import signal
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from loadgen.cli import exit_codes
from loadgen.cli.doctor import State, examine, screen, software
from loadgen.cli.live.progress_line import ERASE
from loadgen.metrics.provenance import versions
from loadgen.util import terminal_text
from loadgen.util.argument_parser import OneLineParser

if TYPE_CHECKING:
    from loadgen.cli.doctor.capacity import Capacity


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code."""
    parser = OneLineParser(
        "loadgen doctor",
        description="Show the limits of this machine and the commands that raise them. Then measure for about 15 s how "
        "much load one loadgen process can generate here.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.add_argument("--no-measure", action="store_true", help="show only the limits")
    flags = parser.parse_args(argv)
    found = examine()
    (built,) = (limit for limit in found if limit.name == software.MODULES)
    release_build = built.state is State.OK  # figures of a debug build would mislead
    runs = release_build and not flags.no_measure
    if flags.json:
        limits, capacity = list(map(asdict, found)), _measure() if runs else None
        measured = asdict(capacity) if capacity else None
        print(json.dumps({"limits": limits, "versions": versions(), "measured": measured}))
        return exit_codes.DONE
    print("\n".join((*screen.limits(found), *screen.versions(versions()))), flush=True)
    if runs:
        print("\n".join(("", *screen.capacity_lines(_measure()))))
    elif not release_build:
        print("\nNot measured: the compiled modules are missing, or a debug build.")
    return exit_codes.DONE


def _measure() -> "Capacity":
    """Measure the capacity and print the phases; a signal ends the test server, too."""
    from loadgen.cli.doctor import capacity

    terminal_text.log_to_stderr("error")  # the warnings of a run are among the limits
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        # With Python's own handler, asyncio cancels what runs. An exception that is raised in a callback may be lost.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):  # treated as Ctrl-C
        if signal.getsignal(number) != signal.SIG_IGN:  # under nohup the command outlives the terminal
            signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))
    on_terminal = sys.stderr.isatty()

    def show(phase: str) -> None:
        begin, end = (ERASE, "") if on_terminal else ("loadgen: ", "\n")
        print(f"{begin}measuring {phase}", file=sys.stderr, end=end, flush=True)

    try:
        return capacity.measure(show)
    finally:
        if on_terminal:
            print(ERASE, file=sys.stderr, end="", flush=True)
