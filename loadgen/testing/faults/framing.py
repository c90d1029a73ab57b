"""Faults of HTTP framing: lengths, chunks and encodings."""

import gzip as gz
import zlib

from loadgen.testing.faults.fault import Step, Steps, fault
from loadgen.testing.good_answer import GoodAnswer
from loadgen.testing.replies import HEAD, LAST_CHUNK, STREAM, chunk, chunked, streamed
from loadgen.testing.request import Request

GZIP = HEAD + b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"


def body(request: Request) -> bytes:
    """Return the body of the correct answer."""
    return b"".join(GoodAnswer.to(request).events(with_usage=request.wants_usage))


def _head_of(length: int) -> bytes:
    return HEAD + b"Content-Length: %d\r\n\r\n" % length


def _begun(request: Request, then: bytes) -> Steps:
    """Return the steps of a stream that sends these bytes after its first token, and falls silent."""
    answer = GoodAnswer.to(request)
    return [STREAM + chunk(answer.role + answer.tokens[0]), then, Step.SILENCE]


@fault
def length(request: Request) -> Steps:
    """Answers well, framed by Content-Length."""
    data = body(request)
    return [_head_of(len(data)), data]


@fault
def until_close(request: Request) -> Steps:
    """Answers well, framed by the end of the connection."""
    return [HEAD + b"\r\n", body(request), Step.CLOSE]


@fault
def cut_chunk(request: Request) -> Steps:
    """Closes the connection in the middle of a chunk."""
    data = body(request)
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
    """Answers well, in chunks of NUMBER bytes that fit no event."""
    return [streamed(body(request), max(1, size))]


@fault
def short_length(request: Request) -> Steps:
    """Sends more than its Content-Length says."""
    data = body(request)
    return [_head_of(len(data) // 2), data]


@fault
def long_length(request: Request) -> Steps:
    """Sends less than its Content-Length says, and closes the connection."""
    data = body(request)
    return [_head_of(len(data) + 100), data, Step.CLOSE]


@fault
def gzip(request: Request) -> Steps:
    """Answers well, compressed although that was not requested."""
    return [GZIP + chunked(gz.compress(body(request)), 20)]


@fault
def bad_gzip(request: Request) -> Steps:
    """Says that the body is compressed, and it is not."""
    return [GZIP + chunked(body(request))]


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
    data = gz.compress(body(request))
    return [GZIP + chunk(data[: len(data) // 2]), Step.CLOSE]
