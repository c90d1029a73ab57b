"""Messages of Anthropic: blocks of text, thinking and tool calls, the counts at both ends, and no [DONE]."""

from typing import Any

from loadgen.core.dialect import Delta, Dialect
from loadgen.core.event_flags import CHOICE, CONTENT, FINISH, OTHER, REASONING, ROLE, TOOL, USAGE
from loadgen.core.json_fields import count_of, object_of, to_json, word_of
from loadgen.workload.endpoints.api import Api, Fields, messages_of
from loadgen.workload.prompt import Prompt

VERSION = "2023-06-01"  # of the API; servers other than Anthropic's do not look at it
START, END = "message_start", "message_delta"
TEXTS = {"delta.text": CONTENT, "delta.thinking": REASONING, "delta.partial_json": OTHER | TOOL}
# Input tokens that were in the cache are not among `input_tokens`.
CACHED = "cache_read_input_tokens"
INPUT = ("input_tokens", "cache_creation_input_tokens", CACHED)


def _read(event: dict[str, Any]) -> Delta:
    name = event.get("type")
    if name == "error":
        return Delta(error=to_json(event))
    if name not in (START, END):
        return Delta()
    message, ended = object_of(event, "message") if name == START else event, object_of(event, "delta")
    usage, reason = object_of(message, "usage"), word_of(ended, "stop_reason")
    return Delta(
        says=CHOICE
        | ROLE * ("role" in message)
        | FINISH * (reason is not None)
        | USAGE * (message.get("usage") is not None),
        finish_reason=reason,
        matched_stop=word_of(ended, "stop_sequence"),
        # A server that does not know it yet says 0.
        prompt_tokens=sum(max(count_of(usage, key), 0) for key in INPUT) or -1,
        # At the start it is that of the first token, or 0.
        completion_tokens=count_of(usage, "output_tokens") if name == END else -1,
        cached_tokens=count_of(usage, CACHED),
    )


def _body(prompt: Prompt, model: str, fields: Fields) -> Fields:
    """Make a body; messages of the system stand apart."""
    messages = messages_of(prompt)
    system = [message["content"] for message in messages if message["role"] == "system"]
    body = {"model": model, "max_tokens": prompt.output_tokens}
    if system:
        body["system"] = system[0] if len(system) == 1 else [{"type": "text", "text": text} for text in system]
    return body | {"messages": [message for message in messages if message["role"] != "system"]} | fields


MESSAGES = Api(
    "/v1/messages",
    _body,
    takes_messages=True,
    dialect=Dialect(
        texts={"content_block_delta": TEXTS},
        silent=("content_block_start", "content_block_stop", "message_stop", "ping"),
        read=_read,
    ),
    ending="/messages",
    headers={"anthropic-version": VERSION},
    key_header="x-api-key",
)
