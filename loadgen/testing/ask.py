"""Ask: one request as a test server reads it."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson

MOST_HEAD = 64 * 1024


@dataclass(frozen=True)
class Ask:
    """One HTTP/1.1 request.

    Attributes:
        method, path: As in the request line.
        headers: Values by lower-case name.
        body: Its bytes.
    """

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @classmethod
    def take(cls, received: bytearray) -> "Ask | None":
        """Cut the first whole request out of `received`; None while it is not all there.

        Raises:
            ValueError: These bytes are no request.
        """
        if received and not received[:1].isalpha():
            raise ValueError("no request begins so")  # TLS, perhaps
        end = received.find(b"\r\n\r\n")
        if end < 0:
            if len(received) > MOST_HEAD:
                raise ValueError("a request head without end")
            return None
        first, *lines = received[:end].decode("latin-1").split("\r\n")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        size = int(headers.get("content-length", "0"))
        method, path, _ = first.split(" ")
        if len(received) < end + 4 + size:
            return None
        body = bytes(received[end + 4 : end + 4 + size])
        del received[: end + 4 + size]
        return cls(method, path, headers, body)

    @cached_property
    def fields(self) -> dict[str, Any]:
        """The JSON object of the body; empty where it is none."""
        try:
            found = orjson.loads(self.body)
        except orjson.JSONDecodeError:
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def chat(self) -> bool:
        """Whether a chat completion is asked, and not a completion."""
        return self.path.partition("?")[0].endswith("/chat/completions")

    @property
    def tokens(self) -> int:
        """Tokens wanted of the answer; 16 where nothing is said."""
        wanted = self.fields.get("max_completion_tokens") or self.fields.get("max_tokens")
        return wanted if isinstance(wanted, int) and wanted > 0 else 16

    @property
    def prompt_tokens(self) -> int:
        """The words of the prompt: what this kit's servers count as its tokens."""
        texts = [message.get("content") for message in self.fields.get("messages") or ()]
        return sum(len(text.split()) for text in (*texts, self.fields.get("prompt")) if isinstance(text, str))

    @property
    def wants_usage(self) -> bool:
        """Whether the counts of tokens are asked for at the end of the stream."""
        return bool((self.fields.get("stream_options") or {}).get("include_usage"))
