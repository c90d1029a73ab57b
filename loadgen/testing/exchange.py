"""Exchange: one connection of a test server, HTTP/1.1, one request at a time.

Small and fast rather than complete: a body has a Content-Length, and a client that sends ahead waits.
"""

import asyncio
import re
from dataclasses import dataclass
from typing import Any, cast

import orjson

from loadgen.clock import now_ns
from loadgen.errors import BadInput

MAX_HEAD_BYTES = 64 << 10
JSON, BINARY = "application/json", "application/octet-stream"
PHRASES = {200: "OK", 400: "Bad Request", 404: "Not Found", 431: "Request Header Fields Too Large"}
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
STREAM_END = b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"

_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,9})[ \t]*\r\n", re.IGNORECASE)
_ID = re.compile(rb"\r\nx-request-id:[ \t]*([^\r]*?)[ \t]*\r\n", re.IGNORECASE)
_REQUEST_LINE = re.compile(rb"([A-Z]+) ([^ ?]+)[^ ]* HTTP/1\.1\r\n")


@dataclass(frozen=True, slots=True)
class Request:
    """One whole request: `id` is its X-Request-Id, `arrival_ns` when its last byte was read (CLOCK_MONOTONIC)."""

    method: str
    path: str
    id: bytes
    body: bytes
    arrival_ns: int

    def json(self) -> dict[str, Any]:
        """The body, which must be a JSON object.

        Raises:
            BadInput: It is not.
        """
        try:
            found = orjson.loads(self.body)
        except orjson.JSONDecodeError as error:
            raise BadInput("body", f"is not JSON ({error})", "send a JSON object") from error
        if not isinstance(found, dict):
            raise BadInput("body", "is not a JSON object", "send one")
        return found


class Exchange(asyncio.Protocol):
    """Reads requests, and hands each to `asked` once the one before has been answered."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self._received = bytearray()
        self._busy = False

    def asked(self, request: Request) -> None:
        """Answer: with `reply` at once, or by other means and then `answered`. BadInput becomes a 400."""
        raise NotImplementedError

    def reply(self, body: bytes, *, status: int = 200, kind: str = JSON) -> None:
        """Answer the request in one piece."""
        head = f"HTTP/1.1 {status} {PHRASES[status]}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
        self.transport.write(head.encode() + body)
        self.answered()

    def answered(self) -> None:
        """The response is whole: go on to the next request."""
        self._busy = False
        if self._received:
            asyncio.get_running_loop().call_soon(self._next, now_ns())

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin; asyncio and uvloop have set TCP_NODELAY."""
        # uvloop's transports have the methods of asyncio's, but not the type.
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Take in bytes, and answer the request they complete."""
        at_ns = now_ns()
        self._received += data
        self._next(at_ns)

    def _next(self, at_ns: int) -> None:
        if self._busy or self.transport.is_closing():
            return
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            if len(self._received) > MAX_HEAD_BYTES:
                self._refuse(431, BadInput("headers", "too long", f"send at most {MAX_HEAD_BYTES} bytes"))
                self.transport.close()
            return
        head = bytes(self._received[: end + 2])
        length = _LENGTH.search(head)
        whole = end + 4 + (int(length[1]) if length else 0)
        if len(self._received) < whole:
            return
        body = bytes(self._received[end + 4 : whole])
        del self._received[:whole]
        line, request_id = _REQUEST_LINE.match(head), _ID.search(head)
        self._busy = True
        if line is None:
            self._refuse(400, BadInput("request line", "is not HTTP/1.1", "write METHOD PATH HTTP/1.1"))
            self.transport.close()
            return
        try:
            self.asked(Request(line[1].decode(), line[2].decode(), request_id[1] if request_id else b"", body, at_ns))
        except BadInput as wrong:
            self._refuse(400, wrong)

    def _refuse(self, status: int, error: BadInput) -> None:
        about = {"message": str(error), "type": "invalid_request_error", "param": error.field, "code": status}
        self.reply(orjson.dumps({"error": about}), status=status)


def chunk(data: bytes) -> bytes:
    """`data` as one HTTP chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def event(value: dict[str, Any]) -> bytes:
    """`value` as one server-sent event in one HTTP chunk."""
    return chunk(b"data: %b\n\n" % orjson.dumps(value))


def models(name: str) -> bytes:
    """The answer to GET /v1/models of a server that has one model."""
    return orjson.dumps({"object": "list", "data": [{"id": name, "object": "model", "owned_by": "loadgen"}]})


def wanted_tokens(body: dict[str, Any], default: int) -> int:
    """How many tokens a request asks for.

    Raises:
        BadInput: It is not a number of tokens, or no stream is asked.
    """
    if body.get("stream") is not True:
        raise BadInput("stream", f"{body.get('stream')!r}: this server answers in streams alone", "send true")
    wanted = body.get("max_completion_tokens") or body.get("max_tokens") or default
    if not isinstance(wanted, int) or not 0 < wanted <= 1 << 20:
        raise BadInput("max_completion_tokens", f"{wanted!r} is no number of tokens", "send 1 or more")
    return wanted
