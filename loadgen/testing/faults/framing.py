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


@fault
def length(request: Request) -> Steps:
    """Answers well, framed by Content-Length."""
    data = body(request)
    yield HEAD + b"Content-Length: %d\r\n\r\n" % len(data)
    yield data


@fault
def until_close(request: Request) -> Steps:
    """Answers well, framed by the end of the connection."""
    yield HEAD + b"\r\n"
    yield body(request)
    yield Step.CLOSE


@fault
def cut_chunk(request: Request) -> Steps:
    """Closes the connection in the middle of a chunk."""
    data = body(request)
    yield STREAM + chunk(data)[: len(data) // 2]
    yield Step.CLOSE


@fault
def bad_chunk(request: Request) -> Steps:
    """Sends a chunk whose size is no number, after the first token."""
    answer = GoodAnswer.to(request)
    yield STREAM + chunk(answer.role + answer.tokens[0])
    yield b"wrong\r\n"
    yield Step.SILENCE


@fault
def long_chunk(request: Request) -> Steps:
    """Sends a chunk that is longer than its size says, after the first token."""
    answer = GoodAnswer.to(request)
    yield STREAM + chunk(answer.role + answer.tokens[0])
    yield b"1\r\ntwo\r\n"
    yield Step.SILENCE


@fault
def cut_chunking(request: Request, size: int = 7) -> Steps:
    """Answers well, in chunks of NUMBER bytes that fit no event."""
    yield streamed(body(request), max(1, size))


@fault
def short_length(request: Request) -> Steps:
    """Sends more than its Content-Length says."""
    data = body(request)
    yield HEAD + b"Content-Length: %d\r\n\r\n" % (len(data) // 2)
    yield data


@fault
def long_length(request: Request) -> Steps:
    """Sends less than its Content-Length says, and closes the connection."""
    data = body(request)
    yield HEAD + b"Content-Length: %d\r\n\r\n" % (len(data) + 100)
    yield data
    yield Step.CLOSE


@fault
def gzip(request: Request) -> Steps:
    """Answers well, compressed although that was not requested."""
    yield GZIP + chunked(gz.compress(body(request)), 20)


@fault
def bad_gzip(request: Request) -> Steps:
    """Says that the body is compressed, and it is not."""
    yield GZIP + chunked(body(request))


@fault
def bad_gzip_later(request: Request) -> Steps:
    """Sends a compressed body that is broken after its first tokens."""
    packer = zlib.compressobj(wbits=31)
    answer = GoodAnswer.to(request)
    yield GZIP
    yield chunk(packer.compress(answer.role + answer.tokens[0]) + packer.flush(zlib.Z_FULL_FLUSH))
    yield chunk(b"\xff" * 100) + LAST_CHUNK


@fault
def cut_gzip(request: Request) -> Steps:
    """Closes the connection in the middle of a compressed body."""
    data = gz.compress(body(request))
    yield GZIP + chunk(data[: len(data) // 2])
    yield Step.CLOSE
