"""Outcomes: how the requests ended, who left or came again, and what of their bodies makes figures
differ.
"""

from collections.abc import Iterator, Mapping

from loadgen.core.outcome import Outcome
from loadgen.document import Block, Cell, Items, Line, Paragraph, Span, Table, Tone, cell, line
from loadgen.report.result import RunResult
from loadgen.report.result.outcomes import Example, Retries, ServerStop
from loadgen.report.run_state import way
from loadgen.report.sections import CLOCKS
from loadgen.util.number_format import fixed, percent, plural
from loadgen.workload import endpoints
from loadgen.workload.endpoints.generation import CHAT

MAX_DETAIL = 160  # characters of a text of a server
PHASES = {"head": " (reading the head)", "first token": ""}  # where the name does not do


def examples(result: RunResult, most: int | None = None) -> Iterator[tuple[str, Line]]:
    """Yield the outcome of requests that failed, and an example; at most so many of each."""
    for name, of_outcome in result.examples.items():
        for number, example in enumerate(of_outcome[:most]):
            seen = f": {'also' if number else 'first seen'} at {_example_text(example, result)}"
            yield name, line(Span(way(name), Tone.STRONG), seen)


def end_lines(result: RunResult) -> Iterator[str]:
    """Write what ends of answers are unusual, and what of the answers no rule took."""
    for name, unread in result.unread.items():
        example = unread.example[:MAX_DETAIL]
        yield f"Not understood in the answers: {name} ({unread.count} times), such as {example}"
    ends = result.answer_ends
    if ends is None:
        return
    if ends.late:
        yield (
            f"Responses that stayed open after the last token: {ends.late}, for "
            f"{fixed(ends.mean_late_ms, 1, 'ms')} on average. No latency contains this time; "
            "loadgen itself closes a response 50 ms after its last event, or 1 s after a finish "
            "reason without usage"
        )
    if ends.unnamed:
        yield f"{plural(ends.unnamed, 'answer')} ended with [DONE] and without a finish reason"
    for reason, count in ends.unknown_reasons.items():
        yield f"Finish reason that loadgen does not know, counted as ok: {reason} ({count})"


def blocks(result: RunResult) -> Iterator[Block]:
    """Write how many requests had each outcome, with examples of those that failed, and what of
    the answers was unusual.
    """
    if result.outcomes:
        rows = []
        for name, count in result.outcomes.items():
            outcome = Span(name, about=Outcome(name.partition("(")[0]).about)
            share = count / result.scheduled if result.scheduled else None
            rows.append((outcome, str(count), percent(share, 2)))
        yield Table.of(("outcome", "requests", "share"), rows, text_columns=1)
    else:
        yield Paragraph.of("No request has ended.")
    items: list[Line | Cell] = [example for _, example in examples(result)]
    items += map(line, _notes(result))
    items += _users(result)
    if items:
        yield Items(tuple(items))


def _notes(result: RunResult) -> Iterator[str]:
    """Write how the answers ended, and what the server adds to the requests."""
    yield from end_lines(result)
    settings = result.provenance.settings
    if endpoints.find(settings) is CHAT and settings.render_chat_template is not None:
        yield (
            "The prompts have the chat template around them, and the server of a chat applies "
            "it again"
        )
    if result.finish_reasons:
        reasons = {name or "none": count for name, count in result.finish_reasons.items()}
        yield f"Finish reasons of those that are ok: {_counts(reasons)}"
    if result.early_stops:
        early = _counts(result.early_stops)
        yield f"Of the requests with fewer output tokens than requested: {early}"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def _example_text(example: Example, result: RunResult) -> str:
    """Describe a request that failed, on one line."""
    to = f" to {result.targets[example.target].base_url}" if isinstance(example.target, int) else ""
    detail = " ".join("".join(c if c.isprintable() else " " for c in example.detail).split())
    if len(detail) > MAX_DETAIL:
        detail = f"{detail[: MAX_DETAIL - 3]}..."
    phase = PHASES.get(example.phase, f" ({example.phase})")
    return f"request {example.index}{to}{phase}: {detail or '(no text)'}"


def users_left(result: RunResult) -> int | None:
    """Return how many requests their users ended; None: no user was to end any."""
    return None if result.departures is None else result.departures.disconnected


def _users(result: RunResult) -> Iterator[Cell]:
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
    text = f"Sent again (--retry {retries.asked}): {plural(retries.requests, 'request')}"
    if retries.requests:
        text += f" ({_counts(retries.first_refusals)}), {retries.ok} ok in the end, "
        text += f"{retries.failed} failed"
    if others := retries.requests - retries.ok - retries.failed:
        text += f", {others} left or cut off"
    most = retries.most_attempts
    yield f"{text}; {retries.attempts} attempts in all, at most {most} of one request"
    if not retries.requests:
        return
    rows = [("first attempts refused, sent to refusal", retries.first_refusal_ms)]
    clock = CLOCKS[result.latency_from]
    if result.streams:
        rows.append((f"TTFT of first attempts, from {clock}", retries.first_ttft_ms))
        rows.append(("TTFT after a retry, from scheduled send", retries.retried_ttft_ms))
    rows.append((f"E2EL of first attempts, from {clock}", retries.first_e2el_ms))
    rows.append(("E2EL after a retry, from scheduled send", retries.retried_e2el_ms))
    for name, latency in rows:
        percentiles = f"p50 {fixed(latency.p50, 1)}, p99 {fixed(latency.p99, 1)} ms"
        yield f"{name}: {percentiles} of {latency.count}"
