"""`loadgen doctor`: what this machine can do, what is in the way, and which command helps."""

import json
import signal
import sys
from typing import TYPE_CHECKING

from loadgen.cli import exit_codes
from loadgen.cli.doctor import State, examine, screen, software
from loadgen.cli.live.long_task import ERASED
from loadgen.metrics.provenance import versions
from loadgen.util import log_setup
from loadgen.util.argument_parser import OneLineParser

if TYPE_CHECKING:
    from loadgen.cli.doctor.capacity import Capacity


def main(argv: list[str]) -> int:
    """Carry out the command; returns its exit code."""
    parser = OneLineParser(
        "loadgen doctor",
        description="Show the limits of this machine and the commands that raise them, then measure for some 15 s how "
        "much load one process of loadgen makes here.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.add_argument("--no-measure", action="store_true", help="leave the measurement out")
    flags = parser.parse_args(argv)
    found = examine()
    (built,) = (limit for limit in found if limit.name == software.MODULES)
    worth = built.state is State.OK  # a debug build says nothing of others
    runs = worth and not flags.no_measure
    if flags.json:
        limits, capacity = [limit.to_dict() for limit in found], _measured() if runs else None
        measured = capacity.to_dict() if capacity else None
        print(json.dumps({"limits": limits, "versions": versions(), "measured": measured}))
        return exit_codes.DONE
    print("\n".join((*screen.limits(found), *screen.versions(versions()))), flush=True)
    if runs:
        print("\n".join(("", *screen.measured(_measured()))))
    elif not worth:
        print("\nNot measured: the compiled modules are not those that users run.")
    return exit_codes.DONE


def _measured() -> "Capacity":
    """Measure, and say meanwhile what; whoever ends us has the server ended too."""
    from loadgen.cli.doctor import capacity

    log_setup.to_stderr("error")  # what else a run would warn of is among the limits
    for number in (signal.SIGTERM, signal.SIGHUP):  # as Ctrl-C, which a running loop takes as its end
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup has a command outlive its terminal
            signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))
    on_terminal = sys.stderr.isatty()

    def tell(phase: str) -> None:
        begin, end = (ERASED, "") if on_terminal else ("loadgen: ", "\n")
        print(f"{begin}measuring {phase}", file=sys.stderr, end=end, flush=True)

    try:
        return capacity.measure(tell)
    finally:
        if on_terminal:
            print(ERASED, file=sys.stderr, end="", flush=True)
