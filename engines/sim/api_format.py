"""API formats: the JSON of chat completions and completions, as vLLM writes it."""

from dataclasses import dataclass
from typing import Any

import orjson

DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class ApiFormat:
    """The JSON of one API's answers.

    Attributes:
        id_prefix: Prefix of the answer's id.
        whole: The field `object` of an answer in one piece.
        part: The field `object` of an event.
        role: The choice of the event before the first token; empty: there is no such event.
        token: A choice up to the token's text.
        reasoning: A choice up to the text of a reasoning token; empty: the API has none.
        token_end: The rest of the choice up to the finish reason.
        unfinished: The rest after `token_end`, if the answer goes on.
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


CHAT = ApiFormat(
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
COMPLETION = ApiFormat(
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
        """Return the counts as the API's object."""
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


def typed_event(kind: str, **fields: Any) -> bytes:
    """Return an event whose type is a member of its object, and stands in a line before it."""
    return f"event: {kind}\ndata: ".encode() + orjson.dumps({"type": kind, **fields}) + b"\n\n"


class ResponseWriter:
    """Writes the events or the single response of one answer: a chat, unless a class of it has another API.

    Args:
        answer_id: Unique part of the answer's id.
        created: Unix time, s.
        model: Name of the model, as JSON.
        reason: Why the answer ends: length or stop.

    Attributes:
        api: The API of the request.
        done: The event that ends a stream; empty: the API has none.
    """

    api = CHAT
    done = DONE

    def __init__(self, answer_id: str, created: int, model: str, reason: str) -> None:
        self._answer_id, self._created, self._model, self._reason = answer_id, created, model, reason
        self._id = self.api.id_prefix + answer_id
        self._opening = (
            f'data: {{"id":"{self._id}","object":"{self.api.part}","created":{created},"model":{model},"choices":['
        )

    @property
    def token_head(self) -> bytes:
        """The event of an answer token, up to the text."""
        return (self._opening + self.api.token).encode()

    @property
    def reasoning_head(self) -> bytes:
        """The event of a reasoning token, up to the text."""
        return (self._opening + self.api.reasoning).encode()

    def token_tail(self, *, last: bool = False) -> bytes:
        """Return the rest of a token's event; the last token's event has the finish reason."""
        return f"{self._complete_choice(self.api.token_end, last=last)}]}}\n\n".encode()

    def counted_tail(self, prompt_tokens: int, *, last: bool = False) -> tuple[bytes, bytes, bytes]:
        """Return the rest of a token's event with usage, in three parts around its two token counts."""
        choice = self._complete_choice(self.api.token_end, last=last)
        tail = f'{choice}],"usage":{{"prompt_tokens":{prompt_tokens},"total_tokens":'
        return tail.encode(), b',"completion_tokens":', b"}}\n\n"

    def role(self, usage: Usage | None = None) -> bytes:
        """Return the event before the first token, with the counts if they are given; empty if the API has none."""
        return self._event(self.api.role, usage) if self.api.role else b""

    def finish(self, usage: Usage | None = None) -> bytes:
        """Return the event with the finish reason, with the counts if they are given."""
        return self._event(self._complete_choice(self.api.finish, last=True), usage)

    def usage(self, usage: Usage) -> bytes:
        """Return the event with only the token counts."""
        return self._event("", usage)

    def _complete_choice(self, choice: str, *, last: bool) -> str:
        return choice + (f'"{self._reason}","stop_reason":null}}' if last else self.api.unfinished)

    def _event(self, choice: str, usage: Usage | None) -> bytes:
        counts = "" if usage is None else f',"usage":{orjson.dumps(usage.json()).decode()}'
        return f"{self._opening}{choice}]{counts}}}\n\n".encode()

    def whole(self, content: str, reasoning: str | None, usage: Usage) -> bytes:
        """Return the body of an answer in one piece."""
        choice: dict[str, Any] = {"index": 0, "logprobs": None, "finish_reason": self._reason, "stop_reason": None}
        if self.api is CHAT:
            choice["message"] = {"role": "assistant", "content": content, "reasoning": reasoning}
        else:
            choice["text"] = content
        return orjson.dumps(
            {
                "id": self._id,
                "object": self.api.whole,
                "created": self._created,
                "model": orjson.loads(self._model),
                "choices": [choice],
                "usage": usage.json(),
            }
        )


class CompletionWriter(ResponseWriter):
    """Writes the answer of a completion."""

    api = COMPLETION
