"""Faults of HTTP's framing: lengths, chunks and encodings."""

import gzip as gz
import zlib

from loadgen.testing.answer import Answer
from loadgen.testing.ask import Ask
from loadgen.testing.faults.fault import Step, Steps, fault
from loadgen.testing.replies import HEAD, LAST_CHUNK, STREAM, chunk, chunked, streamed

GZIP = HEAD + b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"


def body(ask: Ask) -> bytes:
    """The body of the good answer."""
    return b"".join(Answer.to(ask).events(with_usage=ask.wants_usage))


@fault
def length(ask: Ask) -> Steps:
    """Answers well, framed by Content-Length."""
    data = body(ask)
    yield HEAD + b"Content-Length: %d\r\n\r\n" % len(data)
    yield data


@fault
def until_close(ask: Ask) -> Steps:
    """Answers well, framed by the end of the connection."""
    yield HEAD + b"\r\n"
    yield body(ask)
    yield Step.CLOSE


@fault
def cut_chunk(ask: Ask) -> Steps:
    """Closes the connection in the middle of a chunk."""
    data = body(ask)
    yield STREAM + chunk(data)[: len(data) // 2]
    yield Step.CLOSE


@fault
def bad_chunk(ask: Ask) -> Steps:
    """Sends a chunk whose size is no number, after the first token."""
    answer = Answer.to(ask)
    yield STREAM + chunk(answer.role + answer.tokens[0])
    yield b"wrong\r\n"
    yield Step.SILENCE


@fault
def long_chunk(ask: Ask) -> Steps:
    """Sends a chunk that is longer than its size says, after the first token."""
    answer = Answer.to(ask)
    yield STREAM + chunk(answer.role + answer.tokens[0])
    yield b"1\r\ntwo\r\n"
    yield Step.SILENCE


@fault
def cut_chunking(ask: Ask, size: int = 7) -> Steps:
    """Answers well, in chunks of NUMBER bytes that fit no event."""
    yield streamed(body(ask), max(1, size))


@fault
def short_length(ask: Ask) -> Steps:
    """Sends more than its Content-Length says."""
    data = body(ask)
    yield HEAD + b"Content-Length: %d\r\n\r\n" % (len(data) // 2)
    yield data


@fault
def long_length(ask: Ask) -> Steps:
    """Sends less than its Content-Length says, and closes the connection."""
    data = body(ask)
    yield HEAD + b"Content-Length: %d\r\n\r\n" % (len(data) + 100)
    yield data
    yield Step.CLOSE


@fault
def gzip(ask: Ask) -> Steps:
    """Answers well, compressed although that was not asked."""
    yield GZIP + chunked(gz.compress(body(ask)), 20)


@fault
def bad_gzip(ask: Ask) -> Steps:
    """Says that the body is compressed, and it is not."""
    yield GZIP + chunked(body(ask))


@fault
def bad_gzip_later(ask: Ask) -> Steps:
    """Sends a compressed body that is broken after its first tokens."""
    packer = zlib.compressobj(wbits=31)
    answer = Answer.to(ask)
    yield GZIP
    yield chunk(packer.compress(answer.role + answer.tokens[0]) + packer.flush(zlib.Z_FULL_FLUSH))
    yield chunk(b"\xff" * 100) + LAST_CHUNK


@fault
def cut_gzip(ask: Ask) -> Steps:
    """Closes the connection in the middle of a compressed body."""
    data = gz.compress(body(ask))
    yield GZIP + chunk(data[: len(data) // 2])
    yield Step.CLOSE
