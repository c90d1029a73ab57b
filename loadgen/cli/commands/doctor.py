"""`loadgen doctor`: show the limits of this machine, the commands that raise them, and the load
it can make.
"""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from loadgen.cli import exit_codes
from loadgen.cli.doctor import examine, software
from loadgen.cli.doctor.limit import Limit, State
from loadgen.cli.doctor.network import STREAMS
from loadgen.cli.live.progress_line import ERASE
from loadgen.document import Block, Paragraph, Table, cell, terminal_writer
from loadgen.metrics.records.header import versions
from loadgen.util import terminal_text
from loadgen.util.argument_parser import OneLineParser
from loadgen.util.number_format import four_digits, percent
from loadgen.util.termination import interrupt_on_termination

if TYPE_CHECKING:  # the limits can be shown without the compiled modules
    from loadgen.cli.doctor.capacity import Capacity, Climb, Drive

WIDTH = 80
MARKS = {State.OK: "ok", State.WARN: "WARN", State.UNKNOWN: "?"}


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code."""
    parser = OneLineParser(
        "loadgen doctor",
        description="Show the limits of this machine and the commands that raise them. Then "
        "measure for about 15 s how much load one loadgen process can generate here.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.add_argument("--no-measure", action="store_true", help="show only the limits")
    flags = parser.parse_args(argv)
    limits = examine()
    (built,) = (limit for limit in limits if limit.name == software.MODULES)
    release_build = built.state is State.OK  # figures of a debug build would mislead
    runs = release_build and not flags.no_measure
    if flags.json:
        capacity = _measure() if runs else None
        measured = asdict(capacity) if capacity else None
        print(
            json.dumps(
                {"limits": list(map(asdict, limits)), "versions": versions(), "measured": measured}
            )
        )
        return exit_codes.DONE
    packages = ", ".join(f"{name} {version or 'missing'}" for name, version in versions().items())
    _print(limit_table(limits, packages))
    if runs:
        print()
        _print(*capacity_sentences(_measure()))
    elif not release_build:
        print("\nNot measured: the compiled modules are missing, or a debug build.")
    return exit_codes.DONE


def _print(*blocks: Block) -> None:
    print(terminal_writer.text(blocks, WIDTH), end="", flush=True)


def _measure() -> "Capacity":
    """Measure the capacity and print the phases; a signal ends the test server, too."""
    from loadgen.cli.doctor import capacity

    terminal_text.log_to_stderr("error")  # the warnings of a run are among the limits
    interrupt_on_termination()
    on_terminal = sys.stderr.isatty()

    def show(phase: str) -> None:
        begin, end = (ERASE, "") if on_terminal else ("loadgen: ", "\n")
        print(f"{begin}measuring {phase}", file=sys.stderr, end=end, flush=True)

    try:
        return capacity.measure(show)
    finally:
        if on_terminal:
            print(ERASE, file=sys.stderr, end="", flush=True)


def limit_table(limits: Sequence[Limit], packages: str) -> Table:
    """List the limits: the state, value and consequence of each, and the remedy of a warning.

    Args:
        limits: The limits.
        packages: The packages with their versions.
    """
    rows = []
    for limit in limits:
        remedy = [f"-> {limit.remedy}"] if limit.state is State.WARN else []
        rows.append(
            (MARKS[limit.state], limit.name, cell(f"{limit.value}: {limit.bounds}", *remedy))
        )
    return Table.of(("", "", ""), [*rows, ("", "versions", packages)])


def capacity_sentences(capacity: "Capacity") -> Iterator[Paragraph]:
    """Yield the measured capacity, a sentence each."""
    shared = "the only core" if capacity.cores == 1 else f"the {capacity.cores} cores"
    yield Paragraph.of(
        _drives("Requests/s of 1 token", capacity.requests, lambda drive: drive.requests_per_s)
    )
    yield Paragraph.of(_drives("Token events/s", capacity.events, lambda drive: drive.events_per_s))
    drive = capacity.streams
    if drive is None:
        streams = f"no, since this process can open only {capacity.connections:,} connections"
    elif drive.streams < STREAMS:
        streams = f"no, since only {drive.streams:,} were open at the same time"
    elif not drive.valid:
        streams = f"not measured: {drive.verdict}, {drive.doubts}"
    else:
        streams = f"yes, with {drive.events_per_s:,.0f} token events/s, {_quality(drive)}"
    yield Paragraph.of(f"{STREAMS:,} concurrent streams: {streams}.")
    yield Paragraph.of(
        f"Server and client shared {shared} of this machine; with a server on another machine "
        "the client has more."
    )
    if any(drive.disturbance for drive in capacity.runs):
        yield Paragraph.of(
            "Other processes kept this machine busy; measure again without them for higher figures."
        )


def _drives(what: str, climb: "Climb", figure: "Callable[[Drive], float]") -> str:
    best, missed = climb.best, climb.missed
    if best is None:
        doubts = f": {missed.verdict}, {missed.doubts}" if missed else ""
        return f"{what}: not measured{doubts}."
    text = f"{what}: {figure(best):,.0f} from one process, {_quality(best)}."
    if missed is None:
        return f"{text} No higher rate was tried."
    return f"{text} At {figure(missed):,.0f}: {_quality(missed)}."


def _quality(drive: "Drive") -> str:
    """Say how far a run can be believed, and if it is not VALID, why not."""
    error = (
        ""
        if drive.client_error_ms is None
        else f", client at most {four_digits(drive.client_error_ms)} ms"
    )
    text = f"{drive.verdict}{error}, loop {percent(drive.busy_share)} busy"
    return text if drive.valid else f"{text} ({drive.doubts})"
