"""User behavior: who left, whether the server stopped for them, and who came again."""

from collections.abc import Iterator

from loadgen.document import Cell, cell
from loadgen.report.result import RunResult
from loadgen.report.result.user_behavior import Retries, ServerStop
from loadgen.util.number_format import fixed, plural


def users_left(result: RunResult) -> int | None:
    """Return how many requests their users ended; None: no user was to end any."""
    return None if result.departures is None else result.departures.disconnected


def never_sent(result: RunResult) -> int:
    """Return how many requests were never sent, since their user had left."""
    return 0 if result.departures is None else result.departures.never_sent


def items(result: RunResult) -> Iterator[Cell]:
    """Write who left and who came again after a refusal; nothing where no user was to do either."""
    if (departures := result.departures) is not None:
        left, before = departures.disconnected, departures.drawn - departures.disconnected
        text = f"Users who left (--disconnect {departures.asked}): {left}, in no latency and no "
        text += "error rate"
        if before:
            text += f"; of {departures.drawn} drawn, {before} ended before that"
        if departures.never_sent:
            text += f"; {plural(departures.never_sent, 'further turn')} not sent"
        stop = f"Did the server stop for them? {_stop(departures.server, left)}"
        yield cell(text, stop) if left else cell(text)
    if result.retries is not None:
        yield cell(*_retries(result, result.retries))


def _stop(server: ServerStop, left: int) -> str:
    findings = []
    if server.aborted:
        findings.append(f"it counts {server.aborted:.0f} aborted requests")
    if server.finished:
        findings.append(f"it generated {server.finished:.0f} answers of {left} to the end")
    elif server.finished is not None:
        findings.append("it counts no answers as complete beyond those that were read")
    if server.unread_tokens is not None:
        findings.append(
            f"it generated {plural(round(server.unread_tokens), 'token')} that nobody read"
        )
    if server.unfinished is not None and server.scraped_after_s is not None:
        unfinished = f"{plural(round(server.unfinished), 'request')} unfinished"
        busy = unfinished if server.unfinished else "it was idle"
        findings.append(f"{busy} {server.scraped_after_s:.1f} s after the last request ended")
    answer = {True: "Yes", False: "No", None: "Not known"}[server.stopped]
    if server.stopped is None and not server.aborted:
        findings.insert(0, "its metrics do not count requests that were given up")
    return f"{answer}: {', '.join(findings)}"


def _retries(result: RunResult, retries: Retries) -> Iterator[str]:
    refusals = ", ".join(f"{name} {count}" for name, count in retries.first_refusals.items())
    others = retries.requests - retries.ok - retries.failed
    yield (
        f"Sent again (--retry {retries.asked}): {plural(retries.requests, 'request')}"
        + (
            f" ({refusals}), {retries.ok} ok in the end, {retries.failed} failed"
            if retries.requests
            else ""
        )
        + (f", {others} left or cut off" if others else "")
        + f"; {retries.attempts} attempts in all, at most {retries.most_attempts} of one request"
    )
    if not retries.requests:
        return
    rows = [("first attempts refused, sent to refusal", retries.first_refusal_ms)]
    if result.streams:
        rows.append((f"TTFT of first attempts, from {result.latency_from}", retries.first_ttft_ms))
        rows.append(("TTFT after a retry, from due", retries.retried_ttft_ms))
    rows.append((f"E2EL of first attempts, from {result.latency_from}", retries.first_e2el_ms))
    rows.append(("E2EL after a retry, from due", retries.retried_e2el_ms))
    for name, latency in rows:
        percentiles = f"p50 {fixed(latency.p50, 1)}, p99 {fixed(latency.p99, 1)} ms"
        yield f"{name}: {percentiles} of {latency.count}"
