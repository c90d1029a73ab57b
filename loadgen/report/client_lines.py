"""Client lines: the state of the measuring processes, as lines of a report."""

from collections.abc import Iterator

from loadgen.report.result import RunResult
from loadgen.report.result.tokens import Tokens
from loadgen.util.number_format import percent, plural


def lines(result: RunResult) -> Iterator[str]:
    """Write how busy the client was, its connections, and whether its files are complete."""
    client = result.client
    users = result.provenance.settings.users
    if users is not None:
        yield "Closed loop: each request was due when its user had thought; no user has two requests in flight."
    elif result.closed_loop:
        yield "Closed loop: each request was due when a slot was free; no wait in front of the server is measured."
    yield f"Client: {_loop_and_connections(result)}"
    yield from _arrival_times(result.tokens, "tokens" if result.streams else "answers")
    if result.provenance.engine.continuous_usage == "refused":
        yield "The server refuses to count tokens with every event (--continuous-usage): it was not asked to."
    if client.connections_reused is False and not result.outcomes.get("refused"):
        yield "The server closes its connections soon after each response: none was used twice."
    if client.records_error:
        yield f"The records are not complete: {client.records_error}"
    if (capture := client.capture) is not None:
        left_out = f", {capture.left_out} left out for lack of room" if capture.left_out else ""
        yield f"Captured {plural(capture.responses, 'response')}{left_out}"
        if capture.error:
            yield f"The capture is not complete: {capture.error}"


def _loop_and_connections(result: RunResult) -> str:
    """Write the known facts: how busy a killed process was, and what it had opened, is unknown."""
    client, workers = result.client, len(result.workers)
    ahead, late, spare = client.warm_connections, client.late_connections, client.spare_connections or 0
    loop = f"{workers} workers, the busiest loop" if workers > 1 else "loop"
    busy = "" if client.busy_share is None else f"{loop} {percent(client.busy_share)} busy, "
    if ahead is None:
        return f"{busy}{plural(late, 'connection')} opened by requests"
    return f"{busy}connections opened: {ahead} before the clock, {spare} in the background, {late} by requests"


def _arrival_times(tokens: Tokens, what: str) -> Iterator[str]:
    """Write how many arrival times of tokens, or of whole answers, the kernel stamped, and how many are exact."""
    if (events := tokens.token_events) and not tokens.unbounded_events:
        by_kernel, exact = 1 - tokens.user_stamped_events / events, 1 - tokens.inexact_events / events
        yield f"Arrival times: {percent(by_kernel, 1)} of the {what} stamped by the kernel, {percent(exact, 1)} exact"
