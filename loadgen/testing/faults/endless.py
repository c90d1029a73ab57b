"""Endless faults, which go on for as long as the client reads."""

import itertools
import zlib

from loadgen.testing.faults.fault import Steps, fault
from loadgen.testing.faults.framing import GZIP
from loadgen.testing.replies import HEAD, STREAM, chunk, delta
from loadgen.testing.request import Request

BLOCK = 1 << 16


@fault
def endless(request: Request) -> Steps:
    """Sends tokens without end."""
    token = delta(content=" more")
    yield STREAM
    yield from itertools.repeat(chunk(token * (BLOCK // len(token))))


@fault
def endless_pings(request: Request) -> Steps:
    """Sends comments without end, and no token."""
    yield STREAM
    yield from itertools.repeat(chunk(b": ping\n\n" * (BLOCK // 8)))


@fault
def endless_header(request: Request) -> Steps:
    """Sends headers without end."""
    yield HEAD
    yield from itertools.repeat(b"X-More: and more\r\n" * 100)


@fault
def endless_interim(request: Request) -> Steps:
    """Sends interim responses (100) without end."""
    yield from itertools.repeat(b"HTTP/1.1 100 Continue\r\n\r\n" * (BLOCK // 25))


@fault
def endless_line(request: Request) -> Steps:
    """Sends one line without end."""
    yield STREAM + chunk(b"data: ")
    yield from itertools.repeat(chunk(b"x" * BLOCK))


@fault
def endless_event(request: Request) -> Steps:
    """Sends one event of lines without end."""
    yield STREAM
    yield from itertools.repeat(chunk(b"data: more of the same\n" * (BLOCK // 23)))


@fault
def endless_json(request: Request) -> Steps:
    """Sends a JSON text without end."""
    yield b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(b"[")
    yield from itertools.repeat(chunk(b'"x",' * (BLOCK // 4)))


@fault
def endless_error(request: Request) -> Steps:
    """Sends the body of a status 500 without end."""
    yield b"HTTP/1.1 500 Internal Server Error\r\nTransfer-Encoding: chunked\r\n\r\n"
    yield from itertools.repeat(chunk(b"x" * BLOCK))


@fault
def endless_chunk_size(request: Request) -> Steps:
    """Sends a chunk size without end."""
    yield STREAM
    yield from itertools.repeat(b"0" * BLOCK)


@fault
def endless_gzip(request: Request) -> Steps:
    """Sends a compressed body that unpacks to a thousand times its size, without end."""
    packer = zlib.compressobj(wbits=31)
    yield GZIP + chunk(packer.compress(b"") + packer.flush(zlib.Z_FULL_FLUSH))
    packer.compress(b": ping\n\n")
    packer.flush(zlib.Z_FULL_FLUSH)  # what follows depends on nothing before it, and can be sent again and again
    yield from itertools.repeat(chunk(packer.compress(b": ping\n\n" * (1 << 17)) + packer.flush(zlib.Z_FULL_FLUSH)))
