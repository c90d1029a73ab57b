"""HTTP/1.1 for servers, bytes in and bytes out: a reader of requests, and the bytes of responses.

The simulator and the servers of `loadgen.testing` read requests with this reader. Bodies need a Content-Length.
"""

import time
from dataclasses import dataclass
from typing import Generic, TypeVar

MAX_HEAD_BYTES = 64 << 10
MAX_BODY_BYTES = 64 << 20


class HttpError(Exception):
    """A request that is answered with an error status, after which the connection closes.

    Attributes:
        status: The HTTP status.
        field: The part of the request at fault.
        message: One line for the user.
    """

    def __init__(self, status: int, field: str, message: str) -> None:
        super().__init__(message)
        self.status, self.field, self.message = status, field, message


@dataclass
class Request:
    """One complete request.

    Attributes:
        method: As in the request line.
        path: As in the request line, without the query.
        head: Request line and headers as received, each with its line end.
        headers: Values by lower-case name.
        body: The body.
        arrival_ns: When its last byte was read (CLOCK_MONOTONIC, ns); 0: unknown.
    """

    method: str
    path: str
    head: bytes
    headers: dict[str, str]
    body: bytes
    arrival_ns: int = 0

    @property
    def keep_alive(self) -> bool:
        """Whether the connection may serve another request."""
        return self.headers.get("connection", "").lower() != "close"


R = TypeVar("R", bound=Request)


class RequestReader(Generic[R]):
    """Reads requests from a stream of bytes that may be cut anywhere.

    Args:
        kind: Class of the requests that it returns.

    Attributes:
        continue_wanted: Whether the client waits for "100 Continue"; the caller resets it after sending that.
    """

    def __init__(self, kind: type[R]) -> None:
        self.continue_wanted = False
        self._kind = kind
        self._buffer = bytearray()
        self._head: tuple[str, str, bytes, dict[str, str]] | None = None
        self._body_bytes = 0

    @property
    def has_bytes(self) -> bool:
        """Whether bytes were fed that no returned request has used."""
        return bool(self._buffer) or self._head is not None

    def feed(self, data: bytes) -> None:
        """Take in received bytes.

        Raises:
            HttpError: More was sent ahead than one request can be.
        """
        self._buffer += data
        if len(self._buffer) > MAX_HEAD_BYTES + MAX_BODY_BYTES:
            raise HttpError(413, "body", f"more than {MAX_BODY_BYTES} bytes wait; send one request at a time")

    def next_request(self, arrival_ns: int = 0) -> R | None:
        """Return the next complete request; None until more bytes are fed.

        Raises:
            HttpError: The bytes are not a request that this reader supports.
        """
        if self._head is None and not self._read_head():
            return None
        assert self._head is not None
        if len(self._buffer) < self._body_bytes:
            return None
        body = bytes(self._buffer[: self._body_bytes])
        del self._buffer[: self._body_bytes]
        method, path, head, headers = self._head
        self._head, self.continue_wanted = None, False
        return self._kind(method, path, head, headers, body, arrival_ns)

    def _read_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if self._buffer and not self._buffer[:1].isalpha():  # perhaps TLS, whose client waits for an answer
                raise HttpError(400, "request line", "the request line is not HTTP/1.1")
            if len(self._buffer) > MAX_HEAD_BYTES:
                raise HttpError(431, "headers", f"the request's head is longer than {MAX_HEAD_BYTES} bytes")
            return False
        head = bytes(self._buffer[: end + 2])
        del self._buffer[: end + 4]
        first, *lines = head[:-2].decode("latin-1").split("\r\n")
        words = first.split(" ")
        if len(words) != 3 or not words[0].isalpha() or not words[2].startswith("HTTP/"):
            raise HttpError(400, "request line", "the request line is not HTTP/1.1")
        if words[2] != "HTTP/1.1":
            raise HttpError(505, "request line", f"{words[2][:16]} is not supported; use HTTP/1.1")
        headers: dict[str, str] = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon or not name or name != name.strip():
                raise HttpError(400, "headers", "a header line is not of the form Name: value")
            headers[name.lower()] = value.strip()
        if "transfer-encoding" in headers:
            raise HttpError(411, "headers", "a request body needs a Content-Length; chunked requests are not supported")
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()):
            raise HttpError(400, "headers", "Content-Length is not a number")
        if len(length) > 12 or int(length) > MAX_BODY_BYTES:
            raise HttpError(413, "body", f"the request's body is longer than {MAX_BODY_BYTES} bytes")
        self._body_bytes = int(length)
        self.continue_wanted = headers.get("expect", "").lower() == "100-continue"
        self._head = words[0], words[1].partition("?")[0], head, headers
        return True


CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
JSON = "application/json"
EVENTS = "text/event-stream; charset=utf-8"
PHRASES = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    411: "Length Required",
    413: "Content Too Large",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
    505: "HTTP Version Not Supported",
}


def response(status: int, content_type: str, body: bytes, *, keep_alive: bool = True, fields: str = "") -> bytes:
    """Return a complete response; `fields` are further header lines, each with its line end."""
    return _head(status, content_type, keep_alive, f"{fields}content-length: {len(body)}") + body


def stream_head(*, keep_alive: bool = True) -> bytes:
    """Return the head of a response whose body is a chunked stream of server-sent events."""
    return _head(200, EVENTS, keep_alive, "transfer-encoding: chunked")


def _head(status: int, content_type: str, keep_alive: bool, framing: str) -> bytes:
    date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime())
    connection = "" if keep_alive else "connection: close\r\n"
    return (
        f"HTTP/1.1 {status} {PHRASES[status]}\r\ndate: {date}\r\nserver: loadgen-sim\r\n"
        f"content-type: {content_type}\r\n{connection}{framing}\r\n\r\n"
    ).encode()


LAST_CHUNK = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """Return `data` as one chunk of the chunked transfer coding."""
    return b"%x\r\n%b\r\n" % (len(data), data)
