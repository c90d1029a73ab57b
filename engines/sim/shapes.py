"""The JSON of the two completion APIs, as vLLM writes it."""

from dataclasses import dataclass
from typing import Any

import orjson

DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class Shape:
    """How one of the APIs writes an answer.

    Attributes:
        id_prefix: Of the answer's id.
        whole: The `object` of an answer that is not streamed.
        part: The `object` of an event.
        role: The choice of an event before the first token; empty where there is none.
        token: A choice up to the token's text.
        reasoning: As `token`, where the token is reasoning; empty where the API has none.
        token_end: The rest of the choice up to the finish reason.
        unfinished: What follows that where the answer goes on.
        finish: The choice of an event without a token, up to the finish reason.
    """

    id_prefix: str
    whole: str
    part: str
    role: str
    token: str
    reasoning: str
    token_end: str
    unfinished: str
    finish: str


CHAT = Shape(
    id_prefix="chatcmpl-",
    whole="chat.completion",
    part="chat.completion.chunk",
    role='{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}',
    token='{"index":0,"delta":{"content":"',
    reasoning='{"index":0,"delta":{"reasoning":"',
    token_end='"},"logprobs":null,"finish_reason":',
    unfinished="null}",
    finish='{"index":0,"delta":{"content":""},"logprobs":null,"finish_reason":',
)
COMPLETION = Shape(
    id_prefix="cmpl-",
    whole="text_completion",
    part="text_completion",
    role="",
    token='{"index":0,"text":"',
    reasoning="",
    token_end='","logprobs":null,"finish_reason":',
    unfinished='null,"stop_reason":null}',
    finish='{"index":0,"text":"","logprobs":null,"finish_reason":',
)


@dataclass(frozen=True, slots=True)
class Usage:
    """The token counts of one answer."""

    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    cached_tokens: int | None = None

    def json(self) -> dict[str, Any]:
        """Return it as the APIs have it."""
        usage: dict[str, Any] = {
            "prompt_tokens": self.prompt_tokens,
            "total_tokens": self.prompt_tokens + self.completion_tokens,
            "completion_tokens": self.completion_tokens,
        }
        if self.cached_tokens is not None:
            usage["prompt_tokens_details"] = {"cached_tokens": self.cached_tokens}
        if self.reasoning_tokens:
            usage["completion_tokens_details"] = {"reasoning_tokens": self.reasoning_tokens}
        return usage


class Writer:
    """Writes the events, or the whole, of one answer.

    Args:
        shape: Of the API that was asked.
        answer_id: Unique part of the answer's id.
        created: Unix time, s.
        model: Name of the model, as JSON.
    """

    def __init__(self, shape: Shape, answer_id: str, created: int, model: str) -> None:
        self._shape, self._created, self._model = shape, created, model
        self._id = shape.id_prefix + answer_id
        self._opening = (
            f'data: {{"id":"{self._id}","object":"{shape.part}","created":{created},"model":{model},"choices":['
        )

    @property
    def token_head(self) -> bytes:
        """An answer token's event up to its text."""
        return (self._opening + self._shape.token).encode()

    @property
    def reasoning_head(self) -> bytes:
        """A reasoning token's event up to its text."""
        return (self._opening + self._shape.reasoning).encode()

    def token_tail(self, reason: str | None = None) -> bytes:
        """The rest of a token's event, which says why the answer ends where it is the last."""
        return f"{self._ended(self._shape.token_end, reason)}]}}\n\n".encode()

    def counted_tail(self, prompt_tokens: int, reason: str | None = None) -> tuple[bytes, bytes, bytes]:
        """The same with usage: up to the count of all tokens, from there to the answer's, and what is left."""
        choice = self._ended(self._shape.token_end, reason)
        tail = f'{choice}],"usage":{{"prompt_tokens":{prompt_tokens},"total_tokens":'
        return tail.encode(), b',"completion_tokens":', b"}}\n\n"

    def role(self, usage: Usage | None = None) -> bytes:
        """Return the event before the first token, with the counts if they are given; empty where the API has none."""
        return self._event(self._shape.role, usage) if self._shape.role else b""

    def finish(self, reason: str, usage: Usage | None = None) -> bytes:
        """Return the event that says why the answer ended, with the counts if they are given."""
        return self._event(self._ended(self._shape.finish, reason), usage)

    def usage(self, usage: Usage) -> bytes:
        """Return the event with nothing but the token counts."""
        return self._event("", usage)

    def _ended(self, choice: str, reason: str | None) -> str:
        """The whole of a choice, with the reason why the answer ends if it does."""
        return choice + (f'"{reason}","stop_reason":null}}' if reason else self._shape.unfinished)

    def _event(self, choice: str, usage: Usage | None) -> bytes:
        counts = "" if usage is None else f',"usage":{orjson.dumps(usage.json()).decode()}'
        return f"{self._opening}{choice}]{counts}}}\n\n".encode()

    def whole(self, content: str, reasoning: str | None, reason: str, usage: Usage) -> bytes:
        """Return the body of an answer that is not streamed."""
        choice: dict[str, Any] = {"index": 0, "logprobs": None, "finish_reason": reason, "stop_reason": None}
        if self._shape is CHAT:
            choice["message"] = {"role": "assistant", "content": content, "reasoning": reasoning}
        else:
            choice["text"] = content
        return orjson.dumps(
            {
                "id": self._id,
                "object": self._shape.whole,
                "created": self._created,
                "model": orjson.loads(self._model),
                "choices": [choice],
                "usage": usage.json(),
            }
        )
