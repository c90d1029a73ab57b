"""Sections of the report of a run: each as lines for the console, and as blocks of a page; and what
each number means, as a page says it beside the number. docs/numbers.md defines more.
"""

from collections.abc import Container, Iterator

from loadgen.document import Span
from loadgen.util.number_format import plural

DUE = "when the schedule wants the request sent"
SENT = "when its last byte leaves this machine"
CLOCKS = {"due": "scheduled send", "sent": "actual send"}  # from which a latency counts
FROM = {"due": f"from the scheduled send, {DUE},", "sent": f"from the actual send, {SENT},"}
ABOUT = {  # where a text says {clock}, the number is counted from due and from sent
    "requests": "A request is ok if it was answered with a status of success (2xx), a token, a "
    "finish reason or [DONE], and no error.",
    "ttft": "Time to first token: {clock} until the first event with tokens.",
    "ttfo": "Time to first output: {clock} until the first event of the answer itself, after any "
    "reasoning. It is printed if the model sent reasoning.",
    "tpot": "Time per output token of a request: the time from its first to its last event with "
    "tokens, divided by the number of output tokens after the first event. Tokens that were never "
    "streamed are not counted. A request whose tokens came in one event has no TPOT.",
    "itl": "Inter-token latency: the gap between two tokens. If an event has k tokens, the gap "
    "before it is divided into k equal gaps; the report says how many gaps were imputed in this "
    "way. ITL is printed if any event had several tokens.",
    "icl": "Inter-chunk latency: the measured gap between two events with tokens. vLLM calls it "
    "ITL.",
    "e2el": "End-to-end latency: {clock} until the last event with tokens.",
    "lag": "How late loadgen itself sent a request: sent minus due, minus the wait for a slot, "
    "minus the time to connect.",
    "pool_wait": "From due until --max-concurrency allows the request to be sent.",
    "connect": "The time that a request waited for a connection; 0 if one was ready.",
    "request_throughput": "Ok requests per second of the duration.",
    "output_throughput": "Output tokens per second of the duration.",
    "answer_rate": "Ok answers per second from the end of the first to the end of the last: (n - "
    "1) / the time between them. It is near the requested rate if the server keeps up, and else "
    "the server's capacity, because the wait for the last answers does not lower it. The page and "
    "the answer of a run show it, and the table of a sweep or search over rates. With fewer "
    "than 10 ok answers there is none. Closed loops and bursts show the request throughput "
    "instead, because their answers end in waves.",
    "loop_stall": "How late the client's event loop read data that had arrived. Tokens without a "
    "stamp of the kernel's may be late by as much.",
    "gc_pause": "How long Python's garbage collector stopped the client.",
}


LEGEND = {
    "ttft": "TTFT: time to first token",
    "tpot": "TPOT: time per token after it",
    "itl": "ITL: time between tokens",
    "icl": "ICL: time between chunks",
    "e2el": "E2EL: whole request",
}


def legend(metrics: Container[str | None]) -> str:
    """Say what some latencies are, in a line."""
    return "; ".join(text for metric, text in LEGEND.items() if metric in metrics)


def said(text: str, *values: object) -> Iterator[str]:
    """Write a sentence with these values; nothing where one is None."""
    if None not in values:
        yield text.format(*values)


def some(number: int | None, noun: str) -> str | None:
    """Write a count with its noun; None if there is none."""
    return plural(number, noun) if number else None


def term(name: str, text: str) -> Span:
    """Return a text, with what it means.

    Args:
        name: Of ABOUT, or one of its latencies with the clock that it counts from, as ttft_due.
        text: What is read.
    """
    metric, _, clock = name.rpartition("_")
    if clock in FROM:
        return Span(text, about=ABOUT[metric].format(clock=FROM[clock]))
    return Span(text, about=ABOUT[name])
