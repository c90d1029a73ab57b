"""Endless faults, which go on for as long as the client reads."""

import itertools
import zlib
from collections.abc import Callable

from loadgen.testing.faults.fault import FAULTS, Fault, Steps, fault
from loadgen.testing.faults.framing import GZIP
from loadgen.testing.replies import HEAD, STREAM, chunk, delta
from loadgen.testing.request import Request

BLOCK = 1 << 16
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"
JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
ERROR = b"HTTP/1.1 500 Internal Server Error\r\nTransfer-Encoding: chunked\r\n\r\n"


def endless(name: str, does: str, begin: bytes, unit: bytes, frame: Callable[[bytes], bytes] = bytes) -> None:
    """Add a fault that sends `begin`, and then blocks of the same unit, each framed by `frame`."""

    def play(request: Request) -> Steps:
        return itertools.chain([begin], itertools.repeat(frame(unit * (BLOCK // len(unit)))))

    FAULTS[name] = Fault(name, does, None, play)


endless("endless", "Sends tokens without end.", STREAM, delta(content=" more"), chunk)
endless("endless-pings", "Sends comments without end, and no token.", STREAM, b": ping\n\n", chunk)
endless("endless-header", "Sends headers without end.", HEAD, b"X-More: and more\r\n")
endless("endless-interim", "Sends interim responses (100) without end.", INTERIM, INTERIM)
endless("endless-line", "Sends one line without end.", STREAM + chunk(b"data: "), b"x", chunk)
endless("endless-event", "Sends one event of lines without end.", STREAM, b"data: more of the same\n", chunk)
endless("endless-json", "Sends a JSON text without end.", JSON + chunk(b"["), b'"x",', chunk)
endless("endless-error", "Sends the body of a status 500 without end.", ERROR, b"x", chunk)
endless("endless-chunk-size", "Sends a chunk size without end.", STREAM, b"0")


@fault
def endless_gzip(request: Request) -> Steps:
    """Sends a compressed body that unpacks to a thousand times its size, without end."""
    packer = zlib.compressobj(wbits=31)
    yield GZIP + chunk(packer.compress(b"") + packer.flush(zlib.Z_FULL_FLUSH))
    packer.compress(b": ping\n\n")
    packer.flush(zlib.Z_FULL_FLUSH)  # what follows depends on nothing before it, and can be sent again and again
    yield from itertools.repeat(chunk(packer.compress(b": ping\n\n" * (1 << 17)) + packer.flush(zlib.Z_FULL_FLUSH)))
