"""Faults of events: the content of a stream, its form, and streams that go on for as long as the
client reads.
"""

import itertools
import zlib
from collections.abc import Callable

import orjson

from loadgen.engines.sim.http1 import CONTINUE, LAST_CHUNK, Request, chunk
from loadgen.testing.faults.fault import FAULTS, Fault, Steps, always, fault
from loadgen.testing.replies import (
    DONE,
    GZIP,
    HEAD,
    STREAM,
    GoodAnswer,
    delta,
    event,
    good_body,
    streamed,
    usage,
)

BLOCK = 1 << 16  # bytes of a write
JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
ERROR = b"HTTP/1.1 500 Internal Server Error\r\nTransfer-Encoding: chunked\r\n\r\n"


def endless(
    name: str, does: str, begin: bytes, unit: bytes, frame: Callable[[bytes], bytes] = bytes
) -> None:
    """Add a fault that sends `begin`, and then blocks of the same unit, each framed by `frame`."""

    def play(request: Request) -> Steps:
        return itertools.chain([begin], itertools.repeat(frame(unit * (BLOCK // len(unit)))))

    FAULTS[name] = Fault(name, does, None, play)


endless("endless", "Sends tokens without end.", STREAM, delta(content=" more"), chunk)
endless("endless-pings", "Sends comments without end, and no token.", STREAM, b": ping\n\n", chunk)
endless("endless-header", "Sends headers without end.", HEAD, b"X-More: and more\r\n")
endless("endless-interim", "Sends interim responses (100) without end.", CONTINUE, CONTINUE)
endless("endless-line", "Sends one line without end.", STREAM + chunk(b"data: "), b"x", chunk)
endless(
    "endless-event",
    "Sends one event of lines without end.",
    STREAM,
    b"data: more of the same\n",
    chunk,
)
endless("endless-json", "Sends a JSON text without end.", JSON + chunk(b"["), b'"x",', chunk)
endless("endless-error", "Sends the body of a status 500 without end.", ERROR, b"x", chunk)
endless("endless-chunk-size", "Sends a chunk size without end.", STREAM, b"0")


@fault
def endless_gzip(request: Request) -> Steps:
    """Sends a compressed body that unpacks to a thousand times its size, without end."""
    packer = zlib.compressobj(wbits=31)
    yield GZIP + chunk(packer.compress(b"") + packer.flush(zlib.Z_FULL_FLUSH))
    packer.compress(b": ping\n\n")
    # What follows depends on nothing before it, and can be sent again and again.
    packer.flush(zlib.Z_FULL_FLUSH)
    yield from itertools.repeat(
        chunk(packer.compress(b": ping\n\n" * (1 << 17)) + packer.flush(zlib.Z_FULL_FLUSH))
    )


def streaming(*events: bytes) -> tuple[bytes, ...]:
    """Return the steps of a complete response, each event in its own chunk and write."""
    return STREAM, *map(chunk, filter(None, events)), LAST_CHUNK


def with_odd(request: Request, odd: bytes) -> Steps:
    """Return the steps of a correct answer with another event after its first token."""
    answer = GoodAnswer.to(request)
    return streaming(
        answer.role + answer.tokens[0],
        odd,
        *answer.tokens[1:],
        answer.finish,
        answer.usage,
        answer.done,
    )


def written(name: str, does: str, old: bytes, new: bytes) -> None:
    """Add a fault that answers well, but writes one thing of events in another way."""
    FAULTS[name] = Fault(
        name, does, None, lambda request: [streamed(good_body(request).replace(old, new))]
    )


@fault
def no_finish(request: Request) -> Steps:
    """Ends a stream with [DONE] that never gave a finish reason."""
    answer = GoodAnswer.to(request)
    return streaming(answer.role, *answer.tokens, answer.usage, answer.done)


@fault
def no_done(request: Request) -> Steps:
    """Ends a stream after finish reason and usage without [DONE]."""
    answer = GoodAnswer.to(request)
    return streaming(answer.role, *answer.tokens, answer.finish, answer.usage)


@fault
def after_done(request: Request) -> Steps:
    """Sends further events, broken ones too, after [DONE]."""
    return streaming(
        *GoodAnswer.to(request).events(with_usage=True), b"data: {broken\n\n", delta(content="late")
    )


@fault
def stream_error(request: Request) -> Steps:
    """Sends an error as an event after the first token, and ends the stream."""
    answer = GoodAnswer.to(request)
    return streaming(answer.role + answer.tokens[0], answer.error("the fault stream-error"))


@fault
def error_after_end(request: Request) -> Steps:
    """Sends an error as an event after the last token to a request with ignore_eos; else a good
    answer.
    """
    answer = GoodAnswer.to(request)
    end = [answer.finish, answer.usage, answer.done]
    if request.fields.get("ignore_eos"):
        end = [answer.error("the fault error-after-end")]
    return streaming(answer.role, *answer.tokens, *end)


@fault
def stream_error_done(request: Request) -> Steps:
    """Sends an error as an event after the first token, then finish reason and [DONE] as if all
    were well.
    """
    return with_odd(request, GoodAnswer.to(request).error("the fault stream-error-done"))


NO_CHOICES = event(id="x"), event(id="x", choices=[]), event(id="x", choices=None)
always("done-only", "Sends nothing but [DONE].", *streaming(DONE))
always("no-choices", "Sends events that have no choices.", *streaming(*NO_CHOICES, DONE))
ROLE_ONLY = streaming(delta(role="assistant", content=""), delta("stop"), DONE)
always("role-only", "Sends role and finish reason, and no token.", *ROLE_ONLY)


@fault
def reasoning(request: Request) -> Steps:
    """Sends reasoning first: two tokens of it."""
    answer = GoodAnswer.to(request)
    thoughts = [delta(reasoning=" so"), delta(reasoning_content=" then")]
    return streaming(answer.role, *thoughts, *answer.tokens, answer.finish, DONE)


@fault
def tool_calls(request: Request) -> Steps:
    """Sends the arguments of a tool's call instead of text."""
    name = delta(
        tool_calls=[{"index": 0, "id": "call", "function": {"name": "find", "arguments": ""}}]
    )
    parts = [delta(tool_calls=[{"index": 0, "function": {"arguments": " 1"}}])] * request.tokens
    return streaming(delta(role="assistant"), name, *parts, delta("tool_calls"), DONE)


@fault
def usage_end(request: Request) -> Steps:
    """Sends token counts at the end, requested or not."""
    return streaming(*GoodAnswer.to(request).events(with_usage=True))


@fault
def usage_each(request: Request) -> Steps:
    """Sends the counts of tokens so far with each of them."""
    answer = GoodAnswer.to(request)
    counted = []
    for number in range(request.tokens):
        choices = [{"index": 0, "delta": {"content": f" word{number}"}}]
        counted.append(
            event(choices=choices, usage={"prompt_tokens": 1, "completion_tokens": number + 1})
        )
    return streaming(answer.role, *counted, answer.finish, answer.usage, DONE)


@fault
def usage_absent(request: Request) -> Steps:
    """Sends no token counts, requested or not."""
    answer = GoodAnswer.to(request)
    return streaming(answer.role, *answer.tokens, answer.uncounted, answer.done)


@fault
def many_tokens(request: Request, tokens: int = 3) -> Steps:
    """Sends NUMBER tokens in each event."""
    answer = GoodAnswer.to(request)
    size = max(1, tokens)
    groups = [min(size, request.tokens - start) for start in range(0, request.tokens, size)]
    return streaming(
        answer.role,
        *(delta(content=" word" * group) for group in groups),
        answer.finish,
        answer.usage,
        DONE,
    )


@fault
def one_segment(request: Request) -> Steps:
    """Sends all of the response in one write."""
    return [streamed(good_body(request), BLOCK)]


@fault
def byte_by_byte(request: Request) -> Steps:
    """Sends each byte in a write of its own."""
    return (bytes([byte]) for byte in streamed(good_body(request)))


@fault
def split_utf8(request: Request) -> Steps:
    """Ends each write inside a character of several bytes."""
    data = streamed(
        b"".join([*(delta(content=" é€😀") for _ in range(request.tokens)), delta("stop"), DONE]),
        BLOCK,
    )
    while data:
        cut = next((i for i in range(1, len(data)) if data[i] & 0xC0 == 0x80), len(data))
        yield data[:cut]
        data = data[cut:]


written("cr", "Sends lines that end in CR.", b"\n", b"\r")
written("crlf", "Sends lines that end in CRLF.", b"\n", b"\r\n")


@fault
def bom(request: Request) -> Steps:
    """Sends a byte order mark first."""
    return [streamed(b"\xef\xbb\xbf" + good_body(request))]


@fault
def comments(request: Request) -> Steps:
    """Sends comments and other fields between events."""
    events = GoodAnswer.to(request).events(with_usage=True)
    return streaming(*(b": ping\n\nevent: message\nid: 7\nretry: 10\n" + data for data in events))


SEVERAL_LINES = "Sends events whose data is spread over several lines."
written("multi-line", SEVERAL_LINES, b',"choices"', b'\ndata: ,"choices"')
written("no-space", "Sends `data:` and no space after it.", b"data: ", b"data:")


@fault
def no_blank_line(request: Request) -> Steps:
    """Ends the last event, which has the finish reason, without a blank line."""
    answer = GoodAnswer.to(request)
    return streaming(answer.role, *answer.tokens, answer.finish.removesuffix(b"\n\n"))


@fault
def long_line(request: Request, size: int = 1_000_000) -> Steps:
    """Sends one line of NUMBER bytes of text."""
    return [streamed(delta(content="x" * size) + delta("stop") + DONE, BLOCK)]


@fault
def many_events(request: Request, count: int = 100_000) -> Steps:
    """Sends NUMBER events, many in a write."""
    token = delta(content=" a")
    at_once = BLOCK // len(token)
    yield STREAM
    for start in range(0, count, at_once):
        yield chunk(token * min(at_once, count - start))
    yield (
        chunk(
            delta("stop")
            + usage(prompt_tokens=request.prompt_tokens, completion_tokens=count)
            + DONE
        )
        + LAST_CHUNK
    )


@fault
def bad_json(request: Request) -> Steps:
    """Sends an event that is not JSON after the first token."""
    return with_odd(request, b'data: {"choices": [}\n\n')


@fault
def null_delta(request: Request) -> Steps:
    """Sends an event whose delta is null."""
    return with_odd(request, event(choices=[{"index": 0, "delta": None, "finish_reason": None}]))


@fault
def wrong_shape(request: Request, which: int = 0) -> Steps:
    """Sends, after the first token, JSON of a wrong shape: 0 choices no list, 1 a choice no object,
    2 content no text, 3 a delta no object, 4 usage no object, 5 not an object at all, 6 a count
    below 0.
    """
    shapes: list[object] = [
        {"choices": {}},
        {"choices": [3]},
        {"choices": [{"delta": {"content": 7}}]},
        {"choices": [{"delta": "x"}]},
        {"choices": [], "usage": 1},
        [1],
        {"choices": [], "usage": {"completion_tokens": -4}},
    ]
    return with_odd(request, b"data: " + orjson.dumps(shapes[which % len(shapes)]) + b"\n\n")


@fault
def choice_index(request: Request) -> Steps:
    """Answers with a second choice (index 1) beside the first, one event for each token of each."""
    answer = GoodAnswer.to(request)
    second = event(
        id="x", choices=[{"index": 1, "delta": {"content": " other"}, "finish_reason": None}]
    )
    ends = [answer.finish, event(choices=[{"index": 1, "delta": {}, "finish_reason": "stop"}])]
    return streaming(answer.role, *(token + second for token in answer.tokens), *ends, DONE)
