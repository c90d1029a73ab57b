"""Ask: one request as a test server reads it.

Small and fast rather than complete: a body has a Content-Length.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson

from loadgen.errors import BadInput

MAX_HEAD_BYTES = 64 << 10
MOST_TOKENS = 1 << 20

_NO_REQUEST = "request line", "is not HTTP/1.1", "write METHOD PATH HTTP/1.1"
_REQUEST_LINE = re.compile(rb"([A-Z]+) ([^ ?]+)[^ ]* HTTP/1\.1\r\n")
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,9})[ \t]*\r\n", re.IGNORECASE)
_INDEX = re.compile(rb"(?:^|-)(\d{1,18})\Z")
_ID = re.compile(rb"\r\nx-request-id:[ \t]*([^\r]*?)[ \t]*\r\n", re.IGNORECASE)


@dataclass(frozen=True)
class Ask:
    """One HTTP/1.1 request.

    Attributes:
        method, path: As in the request line, without the query.
        head: Request line and headers as they came, each with its line end.
        body: Its bytes.
        arrival_ns: When its last byte was read, or the request before it had been answered, whichever was later
            (CLOCK_MONOTONIC).
    """

    method: str
    path: str
    head: bytes
    body: bytes
    arrival_ns: int = 0

    @classmethod
    def take(cls, received: bytearray, at_ns: int = 0) -> "Ask | None":
        """Cut the first whole request out of `received`, which arrived at `at_ns`; None while it is not all there.

        Raises:
            BadInput: These bytes are no request.
        """
        end = received.find(b"\r\n\r\n")
        if end < 0:
            if received and not received[:1].isalpha():  # TLS, perhaps
                raise BadInput(*_NO_REQUEST)
            if len(received) > MAX_HEAD_BYTES:
                raise BadInput("headers", "too long", f"send at most {MAX_HEAD_BYTES} bytes")
            return None
        head = bytes(received[: end + 2])
        line, length = _REQUEST_LINE.match(head), _LENGTH.search(head)
        if line is None:
            raise BadInput(*_NO_REQUEST)
        whole = end + 4 + (int(length[1]) if length else 0)
        if len(received) < whole:
            return None
        body = bytes(received[end + 4 : whole])
        del received[:whole]
        return cls(line[1].decode(), line[2].decode("latin-1"), head, body, at_ns)

    @cached_property
    def headers(self) -> dict[str, str]:
        """Values by lower-case name."""
        lines = self.head.decode("latin-1").split("\r\n")[1:-1]
        return {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}

    @property
    def id(self) -> bytes:
        """Its X-Request-Id; empty without one."""
        found = _ID.search(self.head)
        return found[1] if found else b""

    @property
    def index(self) -> int | None:
        """The number after the last hyphen of its id: in a run of loadgen, that of the request."""
        found = _INDEX.search(self.id)
        return int(found[1]) if found else None

    @property
    def chat(self) -> bool:
        """Whether a chat completion is asked, and not a completion."""
        return self.path.endswith("/chat/completions")

    @cached_property
    def json(self) -> dict[str, Any]:
        """The JSON object of the body.

        Raises:
            BadInput: It is none.
        """
        try:
            found = orjson.loads(self.body)
        except orjson.JSONDecodeError as error:
            raise BadInput("body", f"is not JSON ({error})", "send a JSON object") from error
        if not isinstance(found, dict):
            raise BadInput("body", "is not a JSON object", "send one")
        return found

    @cached_property
    def fields(self) -> dict[str, Any]:
        """The JSON object of the body; empty where it is none."""
        try:
            return self.json
        except BadInput:
            return {}

    @property
    def tokens(self) -> int:
        """Tokens wanted of the answer; 16 where nothing is said, or no number."""
        wanted = self.fields.get("max_completion_tokens") or self.fields.get("max_tokens")
        return wanted if isinstance(wanted, int) and wanted > 0 else 16

    def stream_tokens(self, default: int) -> int:
        """Tokens wanted of the stream that is asked for; `default` where nothing is said.

        Raises:
            BadInput: It is not a number of tokens, or no stream is asked.
        """
        stream = self.json.get("stream")
        if stream is not True:
            raise BadInput("stream", f"{stream!r}: this server answers in streams alone", "send true")
        wanted = self.json.get("max_completion_tokens") or self.json.get("max_tokens") or default
        if not isinstance(wanted, int) or not 0 < wanted <= MOST_TOKENS:
            raise BadInput("max_completion_tokens", f"{wanted!r} is no number of tokens", "send 1 or more")
        return wanted

    @property
    def prompt_tokens(self) -> int:
        """The words of the prompt: what this kit's servers count as its tokens."""
        texts = [message.get("content") for message in self.fields.get("messages") or ()]
        return sum(len(text.split()) for text in (*texts, self.fields.get("prompt")) if isinstance(text, str))

    @property
    def wants_usage(self) -> bool:
        """Whether the counts of tokens are asked for at the end of the stream."""
        return bool((self.fields.get("stream_options") or {}).get("include_usage"))
