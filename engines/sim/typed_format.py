"""Typed formats: the JSON of OpenAI's Responses and Anthropic's Messages, whose events name their
type.

Their requests follow the rules of chats.
"""

from typing import Any

import orjson

from loadgen.engines.sim.api_format import ResponseWriter, Usage
from loadgen.engines.sim.http1 import RequestError

CUT = {"length": "max_output_tokens"}  # finish reasons of Responses that are incomplete
REASONS = {"length": "max_tokens", "stop": "end_turn"}  # finish reasons in the words of Messages


def typed_event(kind: str, **fields: Any) -> bytes:
    """Return an event whose type is a member of its object, and stands in a line before it."""
    return f"event: {kind}\ndata: ".encode() + orjson.dumps({"type": kind, **fields}) + b"\n\n"


class ResponsesWriter(ResponseWriter):
    """Writes the answer of OpenAI's Responses.

    Events have no `sequence_number`, and reasoning has no output item of its own.
    """

    done = b""
    counts_at_end = True

    def __init__(self, answer_id: str, created: int, model: str, reason: str) -> None:
        super().__init__(answer_id, created, model, reason)
        self._item = {"id": f"msg_{answer_id}", "type": "message", "role": "assistant"}
        self._place = {"item_id": self._item["id"], "output_index": 0, "content_index": 0}
        self._about = {"id": f"resp_{answer_id}", "object": "response", "created_at": created}
        self._about["model"] = orjson.loads(model)

    @staticmethod
    def as_openai(body: dict[str, Any], model: str) -> dict[str, Any]:
        """Return the body of a chat request that asks for the same.

        Raises:
            RequestError: There is no input.
        """
        question = body.get("input")
        system = body.get("instructions")
        if question is None:
            raise RequestError(400, "input must be given", param="input")
        messages = (
            [{"role": "user", "content": question}] if isinstance(question, str) else question
        )
        if system is not None and isinstance(messages, list):
            messages = [{"role": "system", "content": system}, *messages]
        limit = {"max_completion_tokens": body.get("max_output_tokens")}
        return body | limit | {"messages": messages, "stream_options": {"include_usage": True}}

    @property
    def token_head(self) -> bytes:
        """The event of an answer token, up to the text."""
        return self._head("response.output_text.delta")

    @property
    def reasoning_head(self) -> bytes:
        """The event of a reasoning token, up to the text."""
        return self._head("response.reasoning_text.delta")

    def token_tail(self, *, last: bool = False) -> bytes:
        """Return the rest of a token's event."""
        return b'","logprobs":[]}\n\n'

    def role(self, usage: Usage | None = None) -> bytes:
        """Return the events before the first token."""
        begun = self._about | {"status": "in_progress", "output": [], "usage": None}
        part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        return b"".join(
            (
                typed_event("response.created", response=begun),
                typed_event("response.in_progress", response=begun),
                typed_event(
                    "response.output_item.added", output_index=0, item=self._item | {"content": []}
                ),
                typed_event("response.content_part.added", **self._place, part=part),
            )
        )

    def finish(self, usage: Usage | None = None) -> bytes:
        """Return the events after the last token; their texts are left empty."""
        part = {"type": "output_text", "text": "", "annotations": []}
        kind = "response.incomplete" if self._reason in CUT else "response.completed"
        return b"".join(
            (
                typed_event("response.output_text.done", **self._place, text="", logprobs=[]),
                typed_event("response.content_part.done", **self._place, part=part),
                typed_event(
                    "response.output_item.done",
                    output_index=0,
                    item=self._item | {"content": [part]},
                ),
                typed_event(kind, response=self._ended([], usage)),
            )
        )

    def error(self, message: str) -> bytes:
        """Return the event of an error that ends the stream."""
        return typed_event("error", code="server_error", message=message, param=None)

    def whole(self, content: str, reasoning: str | None, usage: Usage) -> bytes:
        """Return the body of an answer in one piece."""
        texts = {"output_text": content, "reasoning_text": reasoning}
        parts = [{"type": kind, "text": text} for kind, text in texts.items() if text is not None]
        return orjson.dumps(self._ended([self._item | {"content": parts}], usage))

    def _head(self, kind: str) -> bytes:
        opened = typed_event(kind, **self._place, delta="")
        return opened.removesuffix(b'"}\n\n')

    def _ended(self, output: list[Any], usage: Usage | None) -> dict[str, Any]:
        cut = CUT.get(self._reason)
        counts = usage and {
            "input_tokens": usage.prompt_tokens,
            "input_tokens_details": {"cached_tokens": usage.cached_tokens or 0},
            "output_tokens": usage.completion_tokens,
            "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
            "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        }
        return self._about | {
            "status": "incomplete" if cut else "completed",
            "incomplete_details": {"reason": cut} if cut else None,
            "error": None,
            "output": output,
            "usage": counts,
            **({} if usage is None else usage.beside),
        }


def _head(index: int, **delta: str) -> bytes:
    return typed_event("content_block_delta", index=index, delta=delta).removesuffix(b'"}}\n\n')


class MessagesWriter(ResponseWriter):
    """Writes the answer of Anthropic's Messages, which has no time.

    Thinking is a block of its own before that of the answer; both are opened at the start and
    closed at the end.
    """

    done = typed_event("message_stop")
    counts_at_end = True
    token_head = _head(1, type="text_delta", text="")
    reasoning_head = _head(0, type="thinking_delta", thinking="")

    def __init__(self, answer_id: str, created: int, model: str, reason: str) -> None:
        super().__init__(answer_id, created, model, reason)
        self._message = {
            "id": f"msg_{answer_id}",
            "type": "message",
            "role": "assistant",
            "model": orjson.loads(model),
        }
        self._ended = {"stop_reason": REASONS[reason], "stop_sequence": None}

    @staticmethod
    def as_openai(body: dict[str, Any], model: str) -> dict[str, Any]:
        """Return the body of a chat request that asks for the same.

        Raises:
            RequestError: There is no limit of tokens, which this API needs, or the messages are no
                list.
        """
        system = body.get("system")
        messages = body.get("messages")
        if body.get("max_tokens") is None:
            raise RequestError(400, "max_tokens must be given", param="max_tokens")
        if not isinstance(messages, list):
            raise RequestError(400, "messages must be a list", param="messages")
        if system is not None:
            messages = [{"role": "system", "content": system}, *messages]
        return body | {"messages": messages, "stream_options": {"include_usage": True}}

    def token_tail(self, *, last: bool = False) -> bytes:
        """Return the rest of a token's event."""
        return b'"}}\n\n'

    def role(self, usage: Usage | None = None) -> bytes:
        """Return the events before the first token."""
        usage_so_far = {"input_tokens": 0, "output_tokens": 0}
        message = self._message | {
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage_so_far,
        }
        return b"".join(
            (
                typed_event("message_start", message=message),
                typed_event(
                    "content_block_start",
                    index=0,
                    content_block={"type": "thinking", "thinking": ""},
                ),
                typed_event(
                    "content_block_start", index=1, content_block={"type": "text", "text": ""}
                ),
            )
        )

    def finish(self, usage: Usage | None = None) -> bytes:
        """Return the events after the last token, without `done`."""
        counts = {} if usage is None else {"usage": _counts(usage)}
        return b"".join(
            (
                typed_event("content_block_stop", index=0),
                typed_event("content_block_stop", index=1),
                typed_event("message_delta", delta=self._ended, **counts),
            )
        )

    def error(self, message: str) -> bytes:
        """Return the event of an error that ends the stream."""
        return typed_event("error", error={"type": "api_error", "message": message})

    def whole(self, content: str, reasoning: str | None, usage: Usage) -> bytes:
        """Return the body of an answer in one piece."""
        blocks = [{"type": "thinking", "thinking": reasoning}] if reasoning is not None else []
        blocks.append({"type": "text", "text": content})
        return orjson.dumps(
            self._message | {"content": blocks} | self._ended | {"usage": _counts(usage)}
        )


def _counts(usage: Usage) -> dict[str, int]:
    """Return the counts. Tokens that were in the prefix cache are not among `input_tokens`."""
    cached = usage.cached_tokens or 0
    counts = {
        "input_tokens": usage.prompt_tokens - cached,
        "output_tokens": usage.completion_tokens,
    }
    return counts if usage.cached_tokens is None else counts | {"cache_read_input_tokens": cached}
