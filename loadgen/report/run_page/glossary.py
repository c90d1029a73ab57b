"""Terms: what each number means, as docs/numbers.md defines it, and as a page of a run says it beside the number."""

from dataclasses import dataclass

from loadgen.report.html import Span

DUE = "when the schedule wants the request sent"
SENT = "when its bytes are handed to the connection"
FROM = {"due": f"from due, {DUE},", "sent": f"from sent, {SENT},"}


@dataclass(frozen=True, slots=True)
class Term:
    """A number of a run.

    Attributes:
        name: As it is printed.
        about: What it is, in whole sentences; where they say {clock}, it is counted from due and from sent.
    """

    name: str
    about: str


REQUEST = {
    "due": Term(
        "due",
        f"{DUE.capitalize()}. All due times are drawn before the clock starts; a further turn of a session is due its "
        "think time after the answer before it, and in a closed loop a request is due when a slot is free.",
    ),
    "sent": Term("sent", f"{SENT.capitalize()}: the moment just before they are written."),
    "requests": Term(
        "ok", "A request is ok when it was answered with status 200, a token and a finish reason, and no error."
    ),
    "error_rate": Term(
        "error rate",
        "The share of the requests that ended which the server failed, turns among them that were not sent because one "
        "before them had failed. What the end of the run cancelled is not counted; what the client failed to send has "
        "a rate of its own, client_error_rate in JSON.",
    ),
    "output_tokens": Term(
        "output tokens",
        "Tokens of ok requests, as the server's usage counts them; else by the token ids or logprobs of the events; "
        "else by --tokenizer, once the run is over; else one for each event with tokens. The report says which.",
    ),
}
LATENCIES = {
    "ttft": Term("TTFT", "Time to first token: {clock} until the first event with tokens."),
    "ttfo": Term(
        "TTFO",
        "Time to first output: {clock} until the first event of the answer itself, after any reasoning. It is printed "
        "where the model reasoned.",
    ),
    "tpot": Term(
        "TPOT",
        "Time per output token of a request: from its first event with tokens to its last, divided by the output "
        "tokens that came after that first event; tokens that were never streamed are not among them. A request whose "
        "tokens came in one event has none.",
    ),
    "itl": Term(
        "ITL",
        "Inter-token latency: the gap between two tokens. Where an event brings k tokens, the gap before it counts as "
        "k gaps of a k-th of it, and the report says how many were made so. It is printed where an event brought "
        "several.",
    ),
    "icl": Term(
        "ICL",
        "Inter-chunk latency: the gap between two events with tokens, as it was measured. vLLM calls it ITL.",
    ),
    "e2el": Term("E2EL", "End-to-end latency: {clock} until the last event with tokens."),
    "token_weighted": Term(
        "TPOT weighted by tokens",
        "TPOT of all requests together: the sum of their times by the sum of their tokens, so that a long answer "
        "counts for more than a short one.",
    ),
}
WAITS = {
    "lag": Term(
        "Lag",
        "How late loadgen itself sent: from due to sent, less the wait for a slot and the opening of a connection.",
    ),
    "pool_wait": Term("Wait for a slot", "From due until --max-concurrency lets the request go."),
    "connect": Term("Connect", "How long the opening of a connection took; 0 where one was open."),
}
RATES = {
    "duration": Term(
        "duration",
        "From the first send until the last request has ended, whichever way. Every throughput divides by it, so ramp "
        "and tail are in them.",
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
    "steady_throughput": Term(
        "steady output throughput",
        "Output tokens per second, when they came, without ramp and tail: from the p99 of E2EL after the first send "
        "until the last send. It is n/a where that is less than a second.",
    ),
    "peak_throughput": Term(
        "peak output throughput",
        "The most output tokens in any one second that begins on a hundredth of a second.",
    ),
    "peak_concurrency": Term(
        "peak concurrent requests", "The most requests at any one instant that were sent and not ended: exact."
    ),
    "goodput": Term(
        "goodput",
        "Ok requests within every --goodput limit, per second of the duration; and their share of all scheduled "
        "requests. A request without a TPOT is held to the other limits.",
    ),
    "slo": Term(
        "SLO",
        "The limits that --slo sets to the run as a whole. A request that failed is beyond every limit on a latency: "
        "ttft_p99<500ms is that 99 % of the requests have a TTFT below 500 ms. Means and gaps are of ok requests; "
        "where nothing else is limited, error_rate<1% is demanded too.",
    ),
}
CLIENT = {
    "loop_stall": Term(
        "loop stall", "How late the client's event loop read what had come: so late may it have stamped a token."
    ),
    "gc_pause": Term("GC pause", "How long Python's garbage collector stopped the client."),
    "busy_share": Term(
        "loop busy", "The share of the time in which the event loop ran; above 70 % its stamps may be late."
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
    """A text, with what it means.

    Args:
        name: Of TERMS, or one of its latencies with the clock that it counts from, as ttft_due.
        text: What is read.
    """
    metric, _, clock = name.rpartition("_")
    if clock in FROM:
        return Span(text, about=TERMS[metric].about.format(clock=FROM[clock]))
    return Span(text, about=TERMS[name].about)
