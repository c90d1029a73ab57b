"""HTTP/1.1 as bytes in and bytes out: reads requests from what a connection received, and writes responses."""

import time
from dataclasses import dataclass

MAX_HEAD_BYTES = 64 << 10
MAX_BODY_BYTES = 64 << 20


class HttpError(Exception):
    """A request that is answered with an error status, after which the connection closes."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


@dataclass(frozen=True, slots=True)
class Request:
    """One whole request; `path` is without its query, `keep_alive` whether the connection may serve another."""

    method: str
    path: str
    keep_alive: bool
    body: bytes


class RequestReader:
    """Takes requests from a stream of bytes that may be cut anywhere.

    Attributes:
        continue_wanted: Whether the client waits for leave to send the body; the caller resets it when it has given it.
    """

    def __init__(self) -> None:
        self.continue_wanted = False
        self._buffer = bytearray()
        self._head: Request | None = None
        self._body_bytes = 0

    def feed(self, data: bytes) -> None:
        """Take in received bytes.

        Raises:
            HttpError: More was sent ahead than one request can be.
        """
        self._buffer += data
        if len(self._buffer) > MAX_HEAD_BYTES + MAX_BODY_BYTES:
            raise HttpError(413, f"more than {MAX_BODY_BYTES} bytes wait; send one request at a time")

    def next_request(self) -> Request | None:
        """Return the next whole request, or None until more is fed.

        Raises:
            HttpError: What was received is no request that this server takes.
        """
        if self._head is None and not self._take_head():
            return None
        assert self._head is not None
        if len(self._buffer) < self._body_bytes:
            return None
        head, body = self._head, bytes(self._buffer[: self._body_bytes])
        del self._buffer[: self._body_bytes]
        self._head, self.continue_wanted = None, False
        return Request(head.method, head.path, head.keep_alive, body)

    def _take_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > MAX_HEAD_BYTES:
                raise HttpError(431, f"the request's head is longer than {MAX_HEAD_BYTES} bytes")
            return False
        first, *lines = self._buffer[:end].decode("latin-1").split("\r\n")
        del self._buffer[: end + 4]
        words = first.split(" ")
        if len(words) != 3 or not words[0].isalpha() or not words[2].startswith("HTTP/"):
            raise HttpError(400, "the request line is not HTTP")
        if words[2] != "HTTP/1.1":
            raise HttpError(505, f"{words[2][:16]} is not spoken here; use HTTP/1.1")
        headers: dict[str, str] = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon or not name or name != name.strip():
                raise HttpError(400, "a header line is not of the form Name: value")
            headers[name.lower()] = value.strip()
        if "transfer-encoding" in headers:
            raise HttpError(411, "a request body needs a Content-Length; chunked requests are not read")
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()):
            raise HttpError(400, "Content-Length is not a number")
        if len(length) > 12 or int(length) > MAX_BODY_BYTES:
            raise HttpError(413, f"the request's body is longer than {MAX_BODY_BYTES} bytes")
        self._body_bytes = int(length)
        self.continue_wanted = headers.get("expect", "").lower() == "100-continue"
        keep_alive = headers.get("connection", "").lower() != "close"
        self._head = Request(words[0], words[1].partition("?")[0], keep_alive, b"")
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
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
    505: "HTTP Version Not Supported",
}


def response(status: int, content_type: str, body: bytes, *, keep_alive: bool = True) -> bytes:
    """Return a whole response."""
    return _head(status, content_type, keep_alive, f"content-length: {len(body)}") + body


def stream_head(*, keep_alive: bool = True) -> bytes:
    """Return the head of a response whose body comes as chunks of server-sent events."""
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
    """Return `data` as one HTTP chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)
