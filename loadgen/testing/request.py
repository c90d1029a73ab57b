"""Request: an HTTP request as a test server reads it, with the fields of the APIs of LLM servers."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson

from loadgen.engines.sim import http1
from loadgen.errors import BadInput

MAX_TOKENS = 1 << 20
LIMITS = ("max_completion_tokens", "max_tokens", "max_output_tokens")  # of an answer, in the words of several APIs

_INDEX = re.compile(r"(?:^|-)(\d{1,18})\Z", re.ASCII)


@dataclass
class Request(http1.Request):
    """One HTTP/1.1 request; `arrival_ns` is not before the answer to the previous request."""

    @property
    def id(self) -> bytes:
        """The header X-Request-Id; empty without one."""
        return self.headers.get("x-request-id", "").encode("latin-1")

    @property
    def index(self) -> int | None:
        """The number after the last hyphen of the id: in a run of loadgen, the request's index; None: there is none."""
        found = _INDEX.search(self.headers.get("x-request-id", ""))
        return int(found[1]) if found else None

    @property
    def chat(self) -> bool:
        """Whether a chat completion is requested, and not a completion."""
        return self.path.endswith("/chat/completions")

    @cached_property
    def json(self) -> dict[str, Any]:
        """The JSON object in the body.

        Raises:
            BadInput: The body is not a JSON object.
        """
        try:
            value = orjson.loads(self.body)
        except orjson.JSONDecodeError as error:
            raise BadInput("body", f"is not JSON ({error})", "send a JSON object") from error
        if not isinstance(value, dict):
            raise BadInput("body", "is not a JSON object", "send one")
        return value

    @cached_property
    def fields(self) -> dict[str, Any]:
        """The JSON object in the body; empty if the body is not one."""
        try:
            return self.json
        except BadInput:
            return {}

    @property
    def tokens(self) -> int:
        """Requested number of tokens of the answer; 16 if the request has no valid number."""
        wanted = next(filter(None, map(self.fields.get, LIMITS)), None)
        return wanted if isinstance(wanted, int) and wanted > 0 else 16

    def stream_tokens(self, default: int) -> int:
        """Return the requested number of tokens of the stream; `default` if the request names none.

        Raises:
            BadInput: The number is invalid, or no stream is requested.
        """
        stream = self.json.get("stream")
        if stream is not True:
            raise BadInput("stream", f"{stream!r}: this server only answers with streams", "send true")
        wanted = self.json.get("max_completion_tokens") or self.json.get("max_tokens") or default
        if not isinstance(wanted, int) or not 0 < wanted <= MAX_TOKENS:
            raise BadInput("max_completion_tokens", f"{wanted!r} is not a number of tokens", "send 1 or more")
        return wanted

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
