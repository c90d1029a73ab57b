"""Terms: what each number means, as docs/numbers.md defines it, and as a page of a run says it beside the number."""

from dataclasses import dataclass

from loadgen.report.html import Span

DUE = "when the schedule wants the request sent"
SENT = "when its last byte leaves this machine"
FROM = {"due": f"from due, {DUE},", "sent": f"from sent, {SENT},"}


@dataclass(frozen=True, slots=True)
class Term:
    """A number of a run; where its text says {clock}, it is counted from due and from sent."""

    name: str
    about: str


REQUEST = {
    "due": Term(
        "due",
        f"{DUE.capitalize()}. All due times are drawn before the clock starts. A later turn of a session is due one "
        "think time after the previous answer. In a closed loop a request is due when a slot is free, "
        "or when its user has thought.",
    ),
    "sent": Term("sent", f"{SENT.capitalize()}, by the kernel's stamp; without one, just before it is written."),
    "requests": Term(
        "ok", "A request is ok when it was answered with status 200, a token and a finish reason, and no error."
    ),
    "error_rate": Term(
        "error rate",
        "Requests that failed on the server, divided by all requests that ended. Turns that were not sent because an "
        "earlier turn had failed count as failed. Requests cancelled at the end of the run, and those whose users "
        "left, are not counted. Requests that the client failed to send have their own rate, client_error_rate in "
        "JSON.",
    ),
    "output_tokens": Term(
        "output tokens",
        "Tokens of ok requests. They are counted by the first of these that is available: the server's usage, the "
        "token ids or logprobs of the events, --tokenizer (after the run), one token per event. The report says which.",
    ),
}
LATENCIES = {
    "ttft": Term("TTFT", "Time to first token: {clock} until the first event with tokens."),
    "ttfo": Term(
        "TTFO",
        "Time to first output: {clock} until the first event of the answer itself, after any reasoning. It is printed "
        "if the model sent reasoning.",
    ),
    "tpot": Term(
        "TPOT",
        "Time per output token of a request: the time from its first to its last event with tokens, divided by the "
        "number of output tokens after the first event. Tokens that were never streamed are not counted. A request "
        "whose tokens came in one event has no TPOT.",
    ),
    "itl": Term(
        "ITL",
        "Inter-token latency: the gap between two tokens. If an event has k tokens, the gap before it is divided into "
        "k equal gaps; the report says how many gaps were imputed in this way. ITL is printed if any event had "
        "several tokens.",
    ),
    "icl": Term(
        "ICL",
        "Inter-chunk latency: the measured gap between two events with tokens. vLLM calls it ITL.",
    ),
    "e2el": Term("E2EL", "End-to-end latency: {clock} until the last event with tokens."),
    "token_weighted": Term(
        "TPOT weighted by tokens",
        "TPOT of all requests together: the sum of their times divided by the sum of their tokens. A long answer has "
        "more weight than a short one.",
    ),
}
WAITS = {
    "lag": Term(
        "Lag",
        "How late loadgen itself sent a request: sent minus due, minus the wait for a slot, minus the time to connect.",
    ),
    "pool_wait": Term("Wait for a slot", "From due until --max-concurrency allows the request to be sent."),
    "connect": Term("Connect", "The time to open a connection; 0 if a connection was already open."),
}
RATES = {
    "duration": Term(
        "duration",
        "From the first send until the last request has ended, successful or not. Every throughput is divided by it, "
        "so every throughput includes ramp and tail.",
    ),
    "request_throughput": Term("request throughput", "Ok requests per second of the duration."),
    "output_throughput": Term("output throughput", "Output tokens per second of the duration."),
    "total_throughput": Term(
        "total token throughput", "Input and output tokens of ok requests per second of the duration."
    ),
    "uncached_throughput": Term(
        "uncached input throughput",
        "Input tokens that the server did not have in its prefix cache, per second of the duration.",
    ),
    "answer_rate": Term(
        "rate of answers",
        "Ok answers per second from the end of the first to the end of the last: (n - 1) / the time between them. "
        "It is near the asked rate if the server keeps up, and the server's capacity if it does not, since the time "
        "in which the last answers are awaited does not lower it. The page and the last line of a run, and the table "
        "of a sweep or search over rates, show it. Below 10 ok answers there is none. In closed loops and bursts it "
        "would be wrong, since answers end in waves; there the request throughput is shown.",
    ),
    "steady_throughput": Term(
        "steady output throughput",
        "Output tokens per second without ramp and tail: tokens that arrive between (first send + p99 of E2EL) and "
        "the last send. It is n/a if that interval is shorter than a second.",
    ),
    "peak_throughput": Term(
        "peak output throughput",
        "The maximum number of output tokens in any one second that begins at a multiple of 10 ms. In a run shorter "
        "than a second it is the output throughput of the run.",
    ),
    "peak_concurrency": Term(
        "peak concurrent requests",
        "The maximum number of requests in flight (sent and not ended) at any instant. It is exact.",
    ),
    "goodput": Term(
        "goodput",
        "Ok requests that meet every --goodput limit, per second of the duration; and their share of all scheduled "
        "requests. A request without a TPOT is judged by the other limits.",
    ),
    "slo": Term(
        "SLO",
        "The limits that --slo sets for the whole run. A failed request misses every limit on a latency percentile: "
        "ttft_p99<500ms means that 99 % of all requests have a TTFT below 500 ms. Means and gaps are computed from ok "
        "requests; if no other limit counts failed requests, error_rate<1% is required too.",
    ),
}
CLIENT = {
    "loop_stall": Term(
        "loop stall",
        "How late the client's event loop read data that had arrived. Tokens without a stamp of the kernel's may be "
        "late by as much.",
    ),
    "gc_pause": Term("GC pause", "How long Python's garbage collector stopped the client."),
    "busy_share": Term(
        "loop busy", "The share of the time in which the event loop was busy. Above 70 % it may send late."
    ),
}
GROUPS = {
    "Requests": REQUEST,
    "Latencies": LATENCIES,
    "Waits in the client": WAITS,
    "Rates and totals": RATES,
    "The client itself": CLIENT,
}
TERMS = REQUEST | LATENCIES | WAITS | RATES | CLIENT


def term(name: str, text: str) -> Span:
    """A text with what it means, by a name of TERMS, or of a latency with the clock it counts from, as ttft_due."""
    metric, _, clock = name.rpartition("_")
    if clock in FROM:
        return Span(text, about=TERMS[metric].about.format(clock=FROM[clock]))
    return Span(text, about=TERMS[name].about)
