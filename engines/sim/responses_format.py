"""OpenAI's Responses: its requests as those of chat, and the JSON of its answers.

Events have no `sequence_number`, and reasoning has no output item of its own.
"""

from typing import Any

import orjson

from loadgen.engines.sim.api_format import ResponseWriter, Usage, typed_event
from loadgen.engines.sim.completion_request import ApiError

CUT = {"length": "max_output_tokens"}  # finish reasons of an answer that is incomplete


def as_chat(body: dict[str, Any], model: str) -> dict[str, Any]:
    """Return the body of a chat request that asks for the same.

    Raises:
        ApiError: There is no input.
    """
    asked, system = body.get("input"), body.get("instructions")
    if asked is None:
        raise ApiError(400, "input must be given", param="input")
    messages = [{"role": "user", "content": asked}] if isinstance(asked, str) else asked
    if system is not None and isinstance(messages, list):
        messages = [{"role": "system", "content": system}, *messages]
    limit = {"max_completion_tokens": body.get("max_output_tokens")}
    return body | limit | {"messages": messages, "stream_options": {"include_usage": True}}


class ResponsesWriter(ResponseWriter):
    """Writes the events or the single response of one answer.

    Args:
        answer_id: Unique part of the answer's id.
        created: Unix time, s.
        model: Name of the model, as JSON.
        reason: Why the answer ends: length or stop.
    """

    done = b""

    def __init__(self, answer_id: str, created: int, model: str, reason: str) -> None:
        super().__init__(answer_id, created, model, reason)
        self._item = {"id": f"msg_{answer_id}", "type": "message", "role": "assistant"}
        self._place = {"item_id": self._item["id"], "output_index": 0, "content_index": 0}
        self._about = {"id": f"resp_{answer_id}", "object": "response", "created_at": created}
        self._about["model"] = orjson.loads(model)

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
                typed_event("response.output_item.added", output_index=0, item=self._item | {"content": []}),
                typed_event("response.content_part.added", **self._place, part=part),
            )
        )

    def finish(self, usage: Usage | None = None) -> bytes:
        """Return nothing: the last event has the reason and the counts."""
        return b""

    def usage(self, usage: Usage) -> bytes:
        """Return the events after the last token; their texts are left empty."""
        part = {"type": "output_text", "text": "", "annotations": []}
        kind = "response.incomplete" if self._reason in CUT else "response.completed"
        return b"".join(
            (
                typed_event("response.output_text.done", **self._place, text="", logprobs=[]),
                typed_event("response.content_part.done", **self._place, part=part),
                typed_event("response.output_item.done", output_index=0, item=self._item | {"content": [part]}),
                typed_event(kind, response=self._ended([], usage)),
            )
        )

    def whole(self, content: str, reasoning: str | None, usage: Usage) -> bytes:
        """Return the body of an answer in one piece."""
        texts = {"output_text": content, "reasoning_text": reasoning}
        parts = [{"type": kind, "text": text} for kind, text in texts.items() if text is not None]
        return orjson.dumps(self._ended([self._item | {"content": parts}], usage))

    def _head(self, kind: str) -> bytes:
        opened = typed_event(kind, **self._place, delta="")
        return opened.removesuffix(b'"}\n\n')

    def _ended(self, output: list[Any], usage: Usage) -> dict[str, Any]:
        cut = CUT.get(self._reason)
        return self._about | {
            "status": "incomplete" if cut else "completed",
            "incomplete_details": {"reason": cut} if cut else None,
            "error": None,
            "output": output,
            "usage": {
                "input_tokens": usage.prompt_tokens,
                "input_tokens_details": {"cached_tokens": usage.cached_tokens or 0},
                "output_tokens": usage.completion_tokens,
                "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
                "total_tokens": usage.prompt_tokens + usage.completion_tokens,
            },
        }
