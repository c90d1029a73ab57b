"""Anthropic's Messages: its requests as those of chat, and the JSON of its answers.

Thinking is a block of its own before that of the answer; both are opened at the start and closed at the end.
"""

from typing import Any

import orjson

from loadgen.engines.sim.api_format import ResponseWriter, Usage, typed_event
from loadgen.engines.sim.completion_request import ApiError

REASONS = {"length": "max_tokens", "stop": "end_turn"}


def as_chat(body: dict[str, Any], model: str) -> dict[str, Any]:
    """Return the body of a chat request that asks for the same.

    Raises:
        ApiError: There is no limit of tokens, which this API needs, or the messages are no list.
    """
    system, messages = body.get("system"), body.get("messages")
    if body.get("max_tokens") is None:
        raise ApiError(400, "max_tokens must be given", param="max_tokens")
    if not isinstance(messages, list):
        raise ApiError(400, "messages must be a list", param="messages")
    if system is not None:
        messages = [{"role": "system", "content": system}, *messages]
    return body | {"messages": messages, "stream_options": {"include_usage": True}}


def _head(index: int, **delta: str) -> bytes:
    return typed_event("content_block_delta", index=index, delta=delta).removesuffix(b'"}}\n\n')


class MessagesWriter(ResponseWriter):
    """Writes the events or the single response of one answer, which has no time."""

    done = b""
    token_head = _head(1, type="text_delta", text="")
    reasoning_head = _head(0, type="thinking_delta", thinking="")

    def __init__(self, answer_id: str, created: int, model: str, reason: str) -> None:
        super().__init__(answer_id, created, model, reason)
        self._message = {"id": f"msg_{answer_id}", "type": "message", "role": "assistant", "model": orjson.loads(model)}
        self._ended = {"stop_reason": REASONS[reason], "stop_sequence": None}

    def token_tail(self, *, last: bool = False) -> bytes:
        """Return the rest of a token's event."""
        return b'"}}\n\n'

    def role(self, usage: Usage | None = None) -> bytes:
        """Return the events before the first token."""
        usage_so_far = {"input_tokens": 0, "output_tokens": 0}
        message = self._message | {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage_so_far}
        return b"".join(
            (
                typed_event("message_start", message=message),
                typed_event("content_block_start", index=0, content_block={"type": "thinking", "thinking": ""}),
                typed_event("content_block_start", index=1, content_block={"type": "text", "text": ""}),
            )
        )

    def finish(self, usage: Usage | None = None) -> bytes:
        """Return nothing: an event after the last token has the reason and the counts."""
        return b""

    def usage(self, usage: Usage) -> bytes:
        """Return the events after the last token."""
        return b"".join(
            (
                typed_event("content_block_stop", index=0),
                typed_event("content_block_stop", index=1),
                typed_event("message_delta", delta=self._ended, usage=_counts(usage)),
                typed_event("message_stop"),
            )
        )

    def whole(self, content: str, reasoning: str | None, usage: Usage) -> bytes:
        """Return the body of an answer in one piece."""
        blocks = [{"type": "thinking", "thinking": reasoning}] if reasoning is not None else []
        blocks.append({"type": "text", "text": content})
        return orjson.dumps(self._message | {"content": blocks} | self._ended | {"usage": _counts(usage)})


def _counts(usage: Usage) -> dict[str, int]:
    """Return the counts. Tokens that were in the prefix cache are not among `input_tokens`."""
    cached = usage.cached_tokens or 0
    counts = {"input_tokens": usage.prompt_tokens - cached, "output_tokens": usage.completion_tokens}
    return counts if usage.cached_tokens is None else counts | {"cache_read_input_tokens": cached}
