"""Stream: one streamed answer of a server, read with the standard library only, independent of what
is tested.

It blocks and parses every event completely; to measure, `loadgen.core` is used.
"""

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any, Self
from urllib.parse import urlsplit

REASONING = ("reasoning", "reasoning_content")
DONE = "[DONE]"


class Stream:
    """A streamed chat completion with usage; as a context manager it closes the connection.

    Args:
        base_url: Scheme http, host and port.
        model: The model's name in requests.
        max_tokens: Maximum tokens of the answer.
        timeout_s: Maximum time between two reads, s.
        more: Further fields of the request.

    Raises:
        OSError: There is no connection, or no answer in time.
        ValueError: The status is not 200; the message has the status and the beginning of the body.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        max_tokens: int = 16,
        timeout_s: float = 180.0,
        **more: object,
    ) -> None:
        address = urlsplit(base_url)
        fields = {
            "model": model,
            "messages": [{"role": "user", "content": "Tell me about the sea."}],
            "max_tokens": max_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        self._connection = HTTPConnection(address.hostname or "", address.port, timeout=timeout_s)
        try:
            body = json.dumps(fields | more)
            self._connection.request(
                "POST", "/v1/chat/completions", body, {"Content-Type": "application/json"}
            )
            self._response = self._connection.getresponse()
            if self._response.status != 200:
                raise ValueError(
                    f"{self._response.status} {self._response.read(500).decode(errors='replace')}"
                )
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        """Yield the JSON of each event as it comes, and `DONE` for the event [DONE].

        Raises:
            OSError: The connection ends, or is silent for too long.
        """
        for line in self._response:
            if line.startswith(b"data:"):
                text = line[5:].strip().decode()
                yield DONE if text == DONE else json.loads(text)

    def first(self) -> Any:
        """Wait for the first event, and return it; the others can still be read."""
        return next(iter(self))

    def close(self) -> None:
        """Close the connection, even before the end of the stream."""
        self._response.close()
        self._connection.close()


class StreamFormat:
    """The format of a server's stream, found from the events of one answer.

    Args:
        events: The events that a `Stream` yields.

    Attributes:
        events: All events, without [DONE].
        deltas: The deltas of the first choice.
        finish_reason: The last finish reason; None: there was none.
        usage: The last usage; None: there was none.
        done: Whether the stream ends with `[DONE]`.
    """

    def __init__(self, events: list[Any]) -> None:
        self.done = bool(events) and events[-1] == DONE
        self.events = [event for event in events if event != DONE]
        choices = [event["choices"][0] for event in self.events if event.get("choices")]
        self.deltas: list[dict[str, Any]] = [choice.get("delta") or {} for choice in choices]
        reasons = [choice["finish_reason"] for choice in choices if choice.get("finish_reason")]
        self.finish_reason: str | None = reasons[-1] if reasons else None
        usages = [event["usage"] for event in self.events if event.get("usage")]
        self.usage: dict[str, Any] | None = usages[-1] if usages else None

    @property
    def token_events(self) -> int:
        """Number of events with text."""
        return sum(any(delta.get(key) for key in ("content", *REASONING)) for delta in self.deltas)
