"""Faults of one response: its framing by lengths, chunks and encodings, its status, and bodies
that are no stream.
"""

import gzip as gz
import zlib

import orjson

from loadgen.engines.sim.http1 import LAST_CHUNK, Request, chunk, error_body, whole
from loadgen.testing.faults.connections import good
from loadgen.testing.faults.fault import Step, Steps, always, fault
from loadgen.testing.replies import GZIP, HEAD, STREAM, GoodAnswer, chunked, good_body, streamed

RETRY_AFTER = {429, 503}
CHOICE = {
    "index": 0,
    "message": {"role": "assistant", "content": "all of it"},
    "finish_reason": "stop",
}


def _head_of(length: int) -> bytes:
    return HEAD + b"Content-Length: %d\r\n\r\n" % length


def _begun(request: Request, then: bytes) -> Steps:
    """Return the steps of a stream that sends these bytes after its first token, and falls
    silent.
    """
    answer = GoodAnswer.to(request)
    return [STREAM + chunk(answer.role + answer.tokens[0]), then, Step.SILENCE]


@fault
def length(request: Request) -> Steps:
    """Frames its answer by Content-Length."""
    data = good_body(request)
    return [_head_of(len(data)), data]


@fault
def until_close(request: Request) -> Steps:
    """Frames its answer by the end of the connection."""
    return [HEAD + b"\r\n", good_body(request), Step.CLOSE]


@fault
def cut_chunk(request: Request) -> Steps:
    """Closes the connection in the middle of a chunk."""
    data = good_body(request)
    return [STREAM + chunk(data)[: len(data) // 2], Step.CLOSE]


@fault
def bad_chunk(request: Request) -> Steps:
    """Sends a chunk whose size is no number, after the first token."""
    return _begun(request, b"wrong\r\n")


@fault
def long_chunk(request: Request) -> Steps:
    """Sends a chunk that is longer than its size says, after the first token."""
    return _begun(request, b"1\r\ntwo\r\n")


@fault
def cut_chunking(request: Request, size: int = 7) -> Steps:
    """Sends chunks of NUMBER bytes that fit no event."""
    return [streamed(good_body(request), max(1, size))]


@fault
def short_length(request: Request) -> Steps:
    """Sends more than its Content-Length says."""
    data = good_body(request)
    return [_head_of(len(data) // 2), data]


@fault
def long_length(request: Request) -> Steps:
    """Sends less than its Content-Length says, and closes the connection."""
    data = good_body(request)
    return [_head_of(len(data) + 100), data, Step.CLOSE]


@fault
def gzip(request: Request) -> Steps:
    """Compresses its answer, although that was not requested."""
    return [GZIP + chunked(gz.compress(good_body(request)), 20)]


@fault
def bad_gzip(request: Request) -> Steps:
    """Says that the body is compressed, and it is not."""
    return [GZIP + chunked(good_body(request))]


@fault
def bad_gzip_later(request: Request) -> Steps:
    """Sends a compressed body that is broken after its first tokens."""
    packer = zlib.compressobj(wbits=31)
    answer = GoodAnswer.to(request)
    first = packer.compress(answer.role + answer.tokens[0]) + packer.flush(zlib.Z_FULL_FLUSH)
    return [GZIP, chunk(first), chunk(b"\xff" * 100) + LAST_CHUNK]


@fault
def cut_gzip(request: Request) -> Steps:
    """Closes the connection in the middle of a compressed body."""
    data = gz.compress(good_body(request))
    return [GZIP + chunk(data[: len(data) // 2]), Step.CLOSE]


@fault
def status(request: Request, code: int = 500) -> Steps:
    """Answers with the HTTP status NUMBER and an error as JSON; 429 and 503 with Retry-After: 1."""
    headers = ["retry-after: 1"] if code in RETRY_AFTER else []
    return [whole(code, error_body(f"the fault status:{code}", code), *headers)]


@fault
def redirect(request: Request, code: int = 307) -> Steps:
    """Answers with the redirect NUMBER, to where an answer would be good."""
    return [whole(code, b"{}", "location: /elsewhere/v1/chat/completions")]


always(
    "json-error",
    "Answers 200 with an error as JSON.",
    whole(200, error_body("the fault json-error", 500)),
)
always(
    "json-answer",
    "Answers 200 with the whole answer as one JSON object, although a stream was requested.",
    whole(200, orjson.dumps({"id": "x", "choices": [CHOICE], "usage": {"completion_tokens": 3}})),
)
always("not-http", "Answers with the greeting of another protocol.", b"SSH-2.0-OpenSSH_9.6\r\n\r\n")


@fault
def interim(request: Request) -> Steps:
    """Sends an interim response (103) before a good one."""
    return [b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n", *good(request)]
