"""Terms: what the numbers on a page mean, in a sentence each; docs/numbers.md defines them."""

from loadgen.pages import Span

FROM = {
    "due": "from when the schedule wanted the request sent",
    "sent": "from when the bytes of the request were handed to the connection",
}
ABOUT = {
    "ttft": "Time to first token: until the first event with a token, {clock}.",
    "ttfo": "Time to first token of the answer proper, after any reasoning, {clock}.",
    "e2el": "End-to-end latency: until the last token, {clock}.",
    "tpot": "Time per output token of a request: from its first token to its last, divided by the tokens after its "
    "first event.",
    "itl": "Inter-token latency: the gap between two tokens. Where an event brings several, the gap before it is taken "
    "to be shared equally by them.",
    "icl": "Inter-chunk latency: the gap between two events with tokens, as it was measured. vLLM calls it ITL.",
    "lag": "How much later than due a request was sent, the wait for a slot and for a connection left out: this "
    "client's own lateness.",
    "pool_wait": "From when a request was due until --max-concurrency let it go.",
    "connect": "How long a request waited for a connection to be opened.",
    "requests": "A request is ok when it brought a token and a finish reason.",
    "request_throughput": "Requests that succeeded, by the time from the first send until the last has ended.",
    "output_throughput": "Output tokens of requests that succeeded, over the same time as their throughput.",
    "goodput": "Requests that meet every --goodput limit; one that fails is not good.",
    "slo": "The limits that --slo demands of the run.",
    "loop_stall": "How late the client's event loop was for an appointment: so late may it have stamped a token.",
    "gc_pause": "How long Python's garbage collector stopped the client.",
    "busy_share": "How much of the time the event loop ran; above 70 % its stamps may be late.",
}


def term(name: str, text: str) -> Span:
    """A text, with what it means.

    Args:
        name: Of ABOUT, or one of its latencies with the clock that it counts from, as ttft_due.
        text: What is read.
    """
    metric, _, clock = name.rpartition("_")
    if clock in FROM:
        return Span(text, about=ABOUT[metric].format(clock=FROM[clock]))
    return Span(text, about=ABOUT[name])
