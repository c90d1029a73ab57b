"""Client lines: how the measuring processes fared, as lines of a report."""

from collections.abc import Iterator
from typing import Any

from loadgen.util.number_format import percent, plural


def of_client(own: dict[str, Any]) -> Iterator[str]:
    """How the measuring process fared, and what it kept."""
    client = own["client"]
    if own["closed_loop"]:
        yield "Closed loop: each request was due when a slot was free; no wait in front of the server is measured."
    yield f"Client: {_loop_and_connections(own)}"
    if own["provenance"]["engine"].get("continuous_usage") == "refused":
        yield "The server refuses to count tokens with every event (--continuous-usage): it was not asked to."
    if client["connections_reused"] is False and not own["outcomes"].get("refused"):
        yield "The server closes its connections soon after each response: none was used twice."
    if client["records_error"]:
        yield f"The records are not complete: {client['records_error']}"
    if client["capture"]:
        yield from _capture(client["capture"])


def _loop_and_connections(own: dict[str, Any]) -> str:
    """What is known of them: a process that was killed has not told how busy it was, nor what it had opened before."""
    client, workers = own["client"], len(own.get("workers", ""))  # results of runs that knew one alone do not say
    ahead, late = client["warm_connections"], client["late_connections"]
    spare = client.get("spare_connections") or 0  # results of earlier versions do not say
    loop = f"{workers} workers, the busiest loop" if workers > 1 else "loop"
    busy = "" if client["busy_share"] is None else f"{loop} {percent(client['busy_share'])} busy, "
    if ahead is None:
        return f"{busy}{plural(late, 'connection')} opened by requests"
    return f"{busy}connections opened: {ahead} before the clock, {spare} in the background, {late} by requests"


def _capture(capture: dict[str, Any]) -> Iterator[str]:
    left_out = f", {capture['left_out']} left out for want of room" if capture["left_out"] else ""
    yield f"Captured {plural(capture['responses'], 'response')}{left_out}"
    if capture["error"]:
        yield f"The capture is not complete: {capture['error']}"
