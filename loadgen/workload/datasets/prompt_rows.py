"""`Row`: a ready prompt in a file, with at most six fields, and the export of prompts as rows.

The fields are `prompt` (a text) or `messages` (a chat), and optionally `id`, `input_tokens`, `output_tokens` and
`extra_body`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Self

import orjson

from loadgen.errors import BadInput
from loadgen.workload import image
from loadgen.workload.datasets.lengths import MAX_TOKENS
from loadgen.workload.prompt import UNPLANNED, Prompt
from loadgen.workload.tokenizer.tokenizer import LazyTokenizer

FIELDS = ("id", "prompt", "messages", "input_tokens", "output_tokens", "extra_body")


@dataclass(frozen=True, slots=True)
class Row:
    """One ready prompt, whose lengths may be unknown.

    Attributes:
        text: The prompt, or the texts of all messages.
        messages: The chat; empty for a prompt.
        input_tokens: Tokens of the text; None if unknown.
        output_tokens: Maximum tokens of the answer; None if unknown.
        source: Its id, or its position.
        fields: Its extra_body: further fields of the body of its request.
    """

    text: str
    messages: tuple[dict[str, Any], ...]
    input_tokens: int | None
    output_tokens: int | None
    source: str
    fields: dict[str, Any] = field(default_factory=dict, hash=False)

    @classmethod
    def of(cls, found: Mapping[str, Any], source: str) -> Self:
        """Create a row from its fields. None counts as missing.

        Args:
            found: The fields; names that are not in FIELDS are ignored.
            source: The source of a row without an id.

        Raises:
            ValueError: A field has the wrong type, or there are none or both of prompt and messages.
        """
        prompt, messages, name = (found.get(field) for field in ("prompt", "messages", "id"))
        if (prompt is None) == (messages is None):
            raise ValueError(
                f"has {'neither' if prompt is None else 'both'} prompt {'nor' if prompt is None else 'and'} messages"
            )
        if prompt is not None and not (isinstance(prompt, str) and prompt):
            raise ValueError("has a prompt that is not a text")
        chat = _chat(messages) if messages is not None else ()
        fields = found.get("extra_body")
        if not isinstance(fields, dict | None):
            raise ValueError("has an extra_body that is not an object")
        return cls(
            text=prompt or "\n".join(message_texts(chat)),
            messages=chat,
            input_tokens=_count("input_tokens", found.get("input_tokens")),
            output_tokens=_count("output_tokens", found.get("output_tokens")),
            source=source if name is None else str(name),
            fields=fields or {},
        )

    def prompt(self, input_tokens: int, output_tokens: int) -> Prompt:
        """Create the prompt, with its lengths."""
        return Prompt(self.text, input_tokens, output_tokens, self.source, self.messages, fields=self.fields)


def count_tokens(rows: Sequence[Row], tokenizer: LazyTokenizer) -> list[int]:
    """Return the input tokens of each row: its own number, else the count of the tokenizer.

    The count of a prompt includes special tokens. That of a chat covers the texts of its messages alone, because the
    chat template adds its own. If every row has a number, the tokenizer is not loaded.
    """
    if tokenizer.absent:
        return [UNPLANNED if row.input_tokens is None else row.input_tokens for row in rows]
    unknown = [row for row in rows if row.input_tokens is None]
    prompts = [row.text for row in unknown if not row.messages]
    chats = [message_texts(row.messages) for row in unknown]
    of_prompts = iter(tokenizer().count(prompts, special=True) if prompts else [])
    flat = [text for chat in chats for text in chat]
    of_texts = iter(tokenizer().count(flat) if flat else [])
    found = {
        id(row): sum(next(of_texts) for _ in own) if row.messages else next(of_prompts)
        for row, own in zip(unknown, chats, strict=True)
    }
    return [found[id(row)] if row.input_tokens is None else row.input_tokens for row in rows]


def line(prompt: Prompt) -> bytes:
    """Write a prompt as a JSON line, from which the data set jsonl makes the same prompt."""
    asked = {"messages": prompt.messages} if prompt.messages else {"prompt": prompt.text}
    lengths = {"input_tokens": prompt.input_tokens, "output_tokens": prompt.output_tokens}
    row = {"id": prompt.source} | asked | lengths | ({"extra_body": prompt.fields} if prompt.fields else {})
    return orjson.dumps(row, image.to_json, orjson.OPT_PASSTHROUGH_DATACLASS) + b"\n"


def export_rows(prompts: Iterable[Prompt], file: BinaryIO) -> Iterator[Prompt]:
    """Yield prompts, and write each one as a row that the data set jsonl can send.

    Raises:
        BadInput: A prompt follows another, has a due time or several texts, which rows cannot hold.
    """
    for prompt in prompts:
        if prompt.follows or prompt.due_ns is not None or prompt.texts:
            what = "sessions" if prompt.follows else "several texts" if prompt.texts else "due times"
            raise BadInput("--export", f"rows cannot hold {what}", "send the data set itself")
        file.write(line(prompt))
        yield prompt


def is_whole_in_a_row(prompt: Prompt) -> bool:
    """Return whether a row can hold everything of a prompt: no sessions, due times, server tokens or several texts."""
    return not prompt.texts and not prompt.follows and prompt.due_ns is None and prompt.server_tokens is None


def message_texts(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the texts of messages: the content, or the text parts of it."""
    found = []
    for message in messages:
        content = message.get("content")
        parts = content if isinstance(content, list) else [{"text": content}]
        found += [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
    return found


def _chat(messages: object) -> tuple[dict[str, Any], ...]:
    if not isinstance(messages, list) or not messages:
        raise ValueError("has messages that are not a list, or empty")
    for message in messages:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise ValueError("has a message that is not an object with a role")
        content = message.get("content")
        calls = message["role"] == "assistant" and message.get("tool_calls")  # then the content may be missing
        if not isinstance(content, str | list) and not (content is None and calls):
            raise ValueError("has a message whose content is neither a text nor a list of parts")
    return tuple(messages)


def _count(name: str, value: object) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_TOKENS):
        return value
    raise ValueError(f"has {name} {value!r}, which is not a number of tokens from 1 to {MAX_TOKENS:,}")
