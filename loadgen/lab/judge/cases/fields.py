"""Cases of the form of a stream: what the standard of server-sent events allows."""

from collections.abc import Callable

from loadgen.lab.judge.case import WORD, Ask, Case, Plan, add, delta, ends, good, paced, streamed

FIGURES = ("completed", "output_tokens", "ttft_mean_ms", "tpot_mean_ms")
STANDARD = "WHATWG HTML, server-sent events"


def written(change: Callable[[bytes], bytes]) -> Callable[[Ask], Plan]:
    """Return the play of a correct answer, each of whose events is changed."""

    def play(ask: Ask) -> Plan:
        answer = good(ask)
        events = [(at, change(data), n) for at, data, n in paced(answer.tokens)]
        return streamed(events, *map(change, ends(ask, answer)))

    return play


def split_utf8(ask: Ask) -> Plan:
    """Each token is cut inside a character, whose rest comes with the next write."""
    word = " é".encode()
    events = []
    for at_ms, data, tokens in paced([delta(content=" é")] * ask.request.tokens, gap_ms=20):
        cut = data.index(word) + len(word) - 1
        events += [(at_ms - 5, data[:cut], 0), (at_ms, data[cut:], tokens)]
    return streamed(events, *ends(ask, good(ask)))


def no_blank_line(ask: Ask) -> Plan:
    """The last event, [DONE], has no blank line behind it."""
    answer = good(ask)
    *closing, done = ends(ask, answer)
    return streamed(paced(answer.tokens), *closing, done.rstrip(b"\n") + b"\n")


def long_event(ask: Ask) -> Plan:
    """One event has 200 kB beside its token."""
    events = [delta(content=WORD)] * ask.request.tokens
    events[0] = delta(content=WORD, extra="x" * 200_000)
    return streamed(paced(events), *ends(ask, good(ask)))


PLAYS: dict[str, tuple[str, str, Callable[[Ask], Plan]]] = {
    "comments": (
        "A comment stands before each event.",
        "vllm-bench streaming.rs (D3)",
        written(lambda data: b": ping\n\n" + data),
    ),
    "ids": (
        "Each event has lines `id:` and `event:`.",
        "evalscope#1474 (D3)",
        written(lambda data: b"event: message\nid: 7\n" + data),
    ),
    "crlf": ("Lines end in CRLF.", STANDARD, written(lambda data: data.replace(b"\n", b"\r\n"))),
    "no-space": (
        "No space stands after `data:`.",
        STANDARD,
        written(lambda data: data.replace(b"data: ", b"data:")),
    ),
    "several-lines": (
        "The data of an event are on two lines.",
        STANDARD,
        written(lambda data: data.replace(b',"choices"', b'\ndata: ,"choices"')),
    ),
    "split-utf8": ("Cuts a character in two writes.", "vllm-bench streaming.rs (D3)", split_utf8),
    "no-blank-line": ("No blank line ends the stream.", STANDARD, no_blank_line),
    "long-event": ("An event is 200 kB long.", "aiohttp's limit of a line", long_event),
}
CHAT_ONLY = ("split-utf8", "long-event")
for name, (does, source, play) in PLAYS.items():
    add(Case(name, "tokens", does, source, play, FIGURES, chat=name in CHAT_ONLY))
