"""The output of `loadgen doctor`, as text of 80 columns."""

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from loadgen.cli.doctor.connections import STREAMS
from loadgen.cli.doctor.limit import Limit, State
from loadgen.util.number_format import four_digits, percent
from loadgen.util.terminal_text import printable

if TYPE_CHECKING:  # the rest can be shown without the compiled modules
    from loadgen.cli.doctor.capacity import Capacity, Climb, Drive

WIDTH = 80
MARKS = {State.OK: "ok", State.LOW: "LOW", State.UNKNOWN: "?"}


def limits(found: Sequence[Limit]) -> Iterator[str]:
    """Yield lines for each limit: its state, value and consequence, and the remedy if it is low."""
    for limit in found:
        head = f"{MARKS[limit.state]:<4}{limit.name:<19}"
        yield from _wrapped(head, f"{limit.value}: {limit.bounds}")
        if limit.state is State.LOW:
            yield from _wrapped(" " * len(head) + "-> ", limit.remedy)


def versions(found: Mapping[str, str | None]) -> Iterator[str]:
    """Yield the versions on a line or two."""
    text = ", ".join(f"{name} {version or 'missing'}" for name, version in found.items())
    yield from _wrapped(f"{'':<4}{'versions':<19}", text)


def capacity_lines(found: "Capacity") -> Iterator[str]:
    """Yield the measured capacity, in sentences."""
    shared = "the only core" if found.cores == 1 else f"the {found.cores} cores"
    yield from _wrapped("", _drives("Requests/s of 1 token", found.requests, lambda drive: drive.requests_per_s))
    yield from _wrapped("", _drives("Token events/s", found.events, lambda drive: drive.events_per_s))
    yield from _wrapped("", f"{STREAMS:,} concurrent streams: {_streams(found)}.")
    text = f"Server and client shared {shared} of this machine; with a server on another machine the client has more."
    yield from _wrapped("", text)
    if any(drive.disturbance for drive in found.runs):
        text = "Other processes kept this machine busy; measure again without them for higher figures."
        yield from _wrapped("", text)


def _drives(what: str, climb: "Climb", figure: "Callable[[Drive], float]") -> str:
    best, missed = climb.best, climb.missed
    shown = best or missed
    if shown is None:
        return f"{what}: not measured."
    found = f"{what}: {figure(shown):,.0f} from one process, {_quality(shown)}."
    if best is None:
        return found
    if missed is None:
        return f"{found} No higher rate was tried."
    return f"{found} At {figure(missed):,.0f}: {_quality(missed)}."


def _streams(found: "Capacity") -> str:
    drive = found.streams
    if drive is None:
        return f"no, since this process can open only {found.connections:,} connections"
    if drive.streams < STREAMS:
        return f"no, since only {drive.streams:,} were open at the same time"
    return f"yes, with {drive.events_per_s:,.0f} token events/s, {_quality(drive)}"


def _quality(drive: "Drive") -> str:
    """Say how far a run can be believed, and if it is not VALID, why not."""
    error = "" if drive.client_error_ms is None else f", client at most {four_digits(drive.client_error_ms)} ms"
    text = f"{drive.verdict}{error}, loop {percent(drive.busy_share)} busy"
    because = "; ".join(filter(None, (", ".join(drive.failed), drive.disturbance)))
    return text if drive.valid else f"{text} ({because})"


def _wrapped(head: str, text: str) -> list[str]:
    return textwrap.wrap(
        printable(text),
        WIDTH,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    )
