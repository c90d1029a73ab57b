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
        token_end: The rest of the choice.
        finish: The choice of the event after the last token, up to the finish reason.
    """

    id_prefix: str
    whole: str
    part: str
    role: str
    token: str
    reasoning: str
    token_end: str
    finish: str


CHAT = Shape(
    id_prefix="chatcmpl-",
    whole="chat.completion",
    part="chat.completion.chunk",
    role='{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}',
    token='{"index":0,"delta":{"content":"',
    reasoning='{"index":0,"delta":{"reasoning":"',
    token_end='"},"logprobs":null,"finish_reason":null}',
    finish='{"index":0,"delta":{"content":""},"logprobs":null,"finish_reason":',
)
COMPLETION = Shape(
    id_prefix="cmpl-",
    whole="text_completion",
    part="text_completion",
    role="",
    token='{"index":0,"text":"',
    reasoning="",
    token_end='","logprobs":null,"finish_reason":null,"stop_reason":null}',
    finish='{"index":0,"text":"","logprobs":null,"finish_reason":',
)


@dataclass(frozen=True, slots=True)
class Usage:
    """The token counts of one answer."""

    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int

    def json(self) -> dict[str, Any]:
        """Return it as the APIs have it."""
        usage: dict[str, Any] = {
            "prompt_tokens": self.prompt_tokens,
            "total_tokens": self.prompt_tokens + self.completion_tokens,
            "completion_tokens": self.completion_tokens,
        }
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

    @property
    def token_tail(self) -> bytes:
        """The rest of a token's event."""
        return (self._shape.token_end + "]}\n\n").encode()

    @property
    def role(self) -> bytes:
        """The event before the first token; empty where the API has none."""
        return f"{self._opening}{self._shape.role}]}}\n\n".encode() if self._shape.role else b""

    def finish(self, reason: str) -> bytes:
        """Return the event that says why the answer ended."""
        return f'{self._opening}{self._shape.finish}"{reason}","stop_reason":null}}]}}\n\n'.encode()

    def usage(self, usage: Usage) -> bytes:
        """Return the event with the token counts."""
        return f'{self._opening}],"usage":{orjson.dumps(usage.json()).decode()}}}\n\n'.encode()

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
