"""Outcomes: how the requests ended, who left and who came again, and what of their bodies makes
figures differ.
"""

from collections.abc import Iterator

from loadgen.core.outcome import Outcome
from loadgen.report.html import Block, Items, Paragraph, Span, Table, Tone, line
from loadgen.report.result import RunResult
from loadgen.report.result.outcomes import Example, Retries, ServerStop
from loadgen.util.number_format import fixed, percent, plural
from loadgen.workload import endpoints
from loadgen.workload.endpoints.generation import CHAT, COMPLETIONS

MAX_DETAIL = 160  # characters of a text of a server


def lines(result: RunResult) -> Iterator[str]:
    """Write how the requests ended, where not all were ok, with examples of those that failed."""
    if set(result.outcomes) != {Outcome.OK}:
        yield "Outcomes: " + (
            ", ".join(f"{name} {count}" for name, count in result.outcomes.items()) or "none"
        )
    for name, examples in result.examples.items():
        for example in examples:
            yield f"  {name}: {_example_text(example, result)}"


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


def departure_lines(result: RunResult) -> Iterator[str]:
    """Write who left and who came again after a refusal; nothing where no user was to do either."""
    departures = result.departures
    if departures is not None:
        left, before = departures.disconnected, departures.drawn - departures.disconnected
        yield (
            f"Users who left (--disconnect {departures.asked}): {left}, in no latency and no "
            "error rate"
            + (f"; of {departures.drawn} drawn, {before} ended before that" if before else "")
            + (
                f"; {plural(departures.never_sent, 'further turn')} not sent"
                if departures.never_sent
                else ""
            )
        )
        if left:
            yield f"  Did the server stop for them? {_stop(departures.server, left)}"
    if result.retries is not None:
        yield from _retries(result, result.retries)


def body_lines(result: RunResult) -> Iterator[str]:
    """Write what the server adds to the requests that another tool would have sent otherwise."""
    settings = result.provenance.settings
    api, body = endpoints.find(settings), settings.extra_body or {}
    if api is CHAT and settings.render_chat_template is not None:
        yield (
            "The prompts have the chat template around them, and the server of a chat applies "
            "it again."
        )
    if (
        api is COMPLETIONS
        and settings.repetition_penalty is None
        and "repetition_penalty" not in body
    ):
        yield (
            "No repetition_penalty was sent, so the model's own applied; vllm bench serve sends "
            "1.0 with completions (--repetition-penalty 1)."
        )


def blocks(result: RunResult) -> Iterator[Block]:
    """Write how many requests had each outcome, with examples of those that failed."""
    if result.outcomes:
        rows = []
        for name, count in result.outcomes.items():
            outcome = Span(name, about=Outcome(name.partition("(")[0]).about)
            rows.append(
                (
                    outcome,
                    str(count),
                    percent(count / result.scheduled if result.scheduled else None, 2),
                )
            )
        yield Table.of(("outcome", "requests", "share"), rows, text_columns=1)
        items = []
        for name, examples in result.examples.items():
            for example in examples:
                items.append(line(Span(name, Tone.STRONG), f": {_example_text(example, result)}"))
        if items:
            yield Items(tuple(items))
    else:
        yield Paragraph.of("No request has ended.")
    if ends := list(end_lines(result)):
        yield Items.of(ends)
    if departures := list(departure_lines(result)):
        yield Items.of(departures)
    if result.finish_reasons:
        reasons = ", ".join(
            f"{name or 'none'} {count}" for name, count in result.finish_reasons.items()
        )
        yield Paragraph.of(f"Finish reasons of those that are ok: {reasons}.")
    if result.early_stops:
        reasons = ", ".join(f"{name} {count}" for name, count in result.early_stops.items())
        yield Paragraph.of(f"Of the requests with fewer output tokens than requested: {reasons}.")


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
        busy = (
            f"{plural(round(server.unfinished), 'request')} unfinished"
            if server.unfinished
            else "it was idle"
        )
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
        yield f"  {name:<44}{percentiles} of {latency.count}"


def _example_text(example: Example, result: RunResult) -> str:
    """Describe a request that failed, on one line."""
    to = f" to {result.targets[example.target].base_url}" if isinstance(example.target, int) else ""
    detail = " ".join("".join(c if c.isprintable() else " " for c in example.detail).split())
    if len(detail) > MAX_DETAIL:
        detail = f"{detail[: MAX_DETAIL - 3]}..."
    return f"request {example.index}{to}, {example.phase}: {detail}"
