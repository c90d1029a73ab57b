"""HTTP/1.1 for servers, bytes in and bytes out: a reader of requests, and the bytes of responses
and errors.

The simulator and the servers of `loadgen.testing` share it. Bodies of requests need a
Content-Length.
"""

import http
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson

MAX_HEAD_BYTES = 64 << 10
MAX_BODY_BYTES = 64 << 20
MAX_TOKENS = 1 << 20
# Of an answer, in the words of several APIs.
LIMITS = ("max_completion_tokens", "max_tokens", "max_output_tokens")

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"
JSON = "application/json"
BINARY = "application/octet-stream"
PHRASES = {status.value: status.phrase for status in http.HTTPStatus} | {413: "Content Too Large"}
# Error classes with vLLM's names; those of other statuses are bad requests.
KINDS = {
    404: "NotFoundError",
    405: "MethodNotAllowed",
    429: "TooManyRequests",
    500: "InternalServerError",
    503: "ServiceUnavailableError",
}

_INDEX = re.compile(r"(?:^|-)(\d{1,18})\Z", re.ASCII)


def head(status: int, *fields: str) -> bytes:
    """Return the head of a response; `fields` are its header lines."""
    return "\r\n".join(
        [f"HTTP/1.1 {status} {PHRASES.get(status, 'Unknown')}", *fields, "", ""]
    ).encode()


def whole(status: int, body: bytes, *fields: str, kind: str = JSON) -> bytes:
    """Return a complete response.

    Args:
        status: The HTTP status.
        body: The body.
        fields: Header lines besides those of the body.
        kind: Content type of the body.
    """
    return head(status, *fields, f"content-type: {kind}", f"content-length: {len(body)}") + body


def chunk(data: bytes) -> bytes:
    """Return `data` as one chunk of the chunked transfer coding."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def error_body(message: str, status: int, param: str | None = None, kind: str = "") -> bytes:
    """Return the error object of OpenAI-compatible servers as JSON.

    Args:
        message: One line for the user.
        status: The HTTP status.
        param: The field at fault.
        kind: The error class; empty: that of the status.
    """
    kind = kind or KINDS.get(status, "BadRequestError")
    return orjson.dumps(
        {"error": {"message": message, "type": kind, "param": param, "code": status}}
    )


class RequestError(Exception):
    """A request that is answered with an error object.

    Attributes:
        status: The HTTP status.
        message: One line for the user.
        param: The field or the part of the request at fault.
        kind: The error class; empty: that of the status.
        retry_after_s: When the client may send the request again, s; 0: not said.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        kind: str = "",
        retry_after_s: int = 0,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.param = param
        self.kind = kind
        self.retry_after_s = retry_after_s


@dataclass
class Request:
    """One complete request, and the fields of its JSON that the APIs of LLM servers share.

    Attributes:
        method: As in the request line.
        path: As in the request line, without the query.
        head: Request line and headers as received, each with its line end.
        headers: Values by lower-case name.
        body: The body.
        arrival_ns: When its last byte was read (CLOCK_MONOTONIC, ns), but not before the answer to
            the request before it; 0: unknown.
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

    @property
    def id(self) -> bytes:
        """The header X-Request-Id; empty without one."""
        return self.headers.get("x-request-id", "").encode("latin-1")

    @property
    def index(self) -> int | None:
        """The number after the last hyphen of the id: in a run of loadgen, the request's index;
        None: there is none.
        """
        match = _INDEX.search(self.headers.get("x-request-id", ""))
        return int(match[1]) if match else None

    @cached_property
    def json(self) -> dict[str, Any]:
        """The JSON object in the body.

        Raises:
            RequestError: The body is not JSON, or not an object.
        """
        try:
            value = orjson.loads(self.body)
        except orjson.JSONDecodeError as error:
            raise RequestError(
                400, f"JSON decode error: {error}", param="body", kind="Bad Request"
            ) from None
        if not isinstance(value, dict):
            raise RequestError(
                400, "the body must be a JSON object", param="body", kind="Bad Request"
            )
        return value

    @cached_property
    def fields(self) -> dict[str, Any]:
        """The JSON object in the body; empty if the body is not one."""
        try:
            return self.json
        except RequestError:
            return {}

    @property
    def tokens(self) -> int:
        """Requested number of tokens of the answer; 16 if the request has no valid number."""
        limit = next(filter(None, map(self.fields.get, LIMITS)), None)
        return limit if isinstance(limit, int) and limit > 0 else 16

    def stream_tokens(self, default: int) -> int:
        """Return the requested number of tokens of the stream; `default` if the request names none.

        Raises:
            RequestError: The number is invalid, or no stream is requested.
        """
        stream = self.json.get("stream")
        if stream is not True:
            problem = f"stream: {stream!r}: this server only answers with streams; send true"
            raise RequestError(400, problem, param="stream")
        limit = self.json.get("max_completion_tokens") or self.json.get("max_tokens") or default
        if not isinstance(limit, int) or not 0 < limit <= MAX_TOKENS:
            problem = f"max_completion_tokens: {limit!r} is not a number of tokens; send 1 or more"
            raise RequestError(400, problem, param="max_completion_tokens")
        return limit

    @property
    def prompt_tokens(self) -> int:
        """Number of words in the prompt, which the test servers report as its tokens."""
        texts = [message.get("content") for message in self.fields.get("messages") or ()]
        texts += [self.fields.get("prompt"), self.fields.get("input")]
        return sum(len(text.split()) for text in texts if isinstance(text, str))

    @property
    def wants_usage(self) -> bool:
        """Whether the request asks for token counts at the end of the stream."""
        return bool((self.fields.get("stream_options") or {}).get("include_usage"))


class RequestReader:
    """Reads requests from a stream of bytes that may be cut anywhere.

    Attributes:
        continue_wanted: Whether the client waits for "100 Continue"; the caller resets it after
            sending that.
    """

    def __init__(self) -> None:
        self.continue_wanted = False
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
            RequestError: More was sent ahead than one request can be.
        """
        self._buffer += data
        if len(self._buffer) > MAX_HEAD_BYTES + MAX_BODY_BYTES:
            raise RequestError(
                413,
                f"more than {MAX_BODY_BYTES} bytes wait; send one request at a time",
                param="body",
            )

    def next_request(self, arrival_ns: int = 0) -> Request | None:
        """Return the next complete request; None until more bytes are fed.

        Raises:
            RequestError: The bytes are not a request that this reader supports.
        """
        if self._head is None and not self._read_head():
            return None
        assert self._head is not None
        if len(self._buffer) < self._body_bytes:
            return None
        body = bytes(self._buffer[: self._body_bytes])
        del self._buffer[: self._body_bytes]
        method, path, head, headers = self._head
        self._head = None
        self.continue_wanted = False
        return Request(method, path, head, headers, body, arrival_ns)

    def _read_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if (
                self._buffer and not self._buffer[:1].isalpha()
            ):  # perhaps TLS, whose client waits for an answer
                raise RequestError(400, "the request line is not HTTP/1.1", param="request line")
            if len(self._buffer) > MAX_HEAD_BYTES:
                raise RequestError(
                    431,
                    f"the request's head is longer than {MAX_HEAD_BYTES} bytes",
                    param="headers",
                )
            return False
        head = bytes(self._buffer[: end + 2])
        del self._buffer[: end + 4]
        first, *lines = head[:-2].decode("latin-1").split("\r\n")
        words = first.split(" ")
        if len(words) != 3 or not words[0].isalpha() or not words[2].startswith("HTTP/"):
            raise RequestError(400, "the request line is not HTTP/1.1", param="request line")
        if words[2] != "HTTP/1.1":
            raise RequestError(
                505, f"{words[2][:16]} is not supported; use HTTP/1.1", param="request line"
            )
        headers: dict[str, str] = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon or not name or name != name.strip():
                raise RequestError(
                    400, "a header line is not of the form Name: value", param="headers"
                )
            headers[name.lower()] = value.strip()
        if "transfer-encoding" in headers:
            raise RequestError(
                411,
                "a request body needs a Content-Length; chunked requests are not supported",
                param="headers",
            )
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()):
            raise RequestError(400, "Content-Length is not a number", param="headers")
        if len(length) > 12 or int(length) > MAX_BODY_BYTES:
            raise RequestError(
                413, f"the request's body is longer than {MAX_BODY_BYTES} bytes", param="body"
            )
        self._body_bytes = int(length)
        self.continue_wanted = headers.get("expect", "").lower() == "100-continue"
        self._head = words[0], words[1].partition("?")[0], head, headers
        return True
