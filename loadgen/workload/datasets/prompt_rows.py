"""Rows: ready prompts as files hold them, each a mapping of at most five fields.

`prompt` (a text) or `messages` (a chat), and, where known, `id`, `input_tokens` and `output_tokens`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import orjson

from loadgen.workload.datasets.lengths import MOST
from loadgen.workload.prompt import UNPLANNED, Prompt
from loadgen.workload.tokenizer.tokenizer import OnDemand

FIELDS = ("id", "prompt", "messages", "input_tokens", "output_tokens")


@dataclass(frozen=True, slots=True)
class Row:
    """One ready prompt, of which lengths may not be known yet.

    Attributes:
        text: The prompt, or all that the messages say.
        messages: The chat, nothing for a prompt.
        input_tokens: Tokens of the text, None where nobody has said.
        output_tokens: Tokens wanted in the answer, None where nobody has said.
        source: Its id, or its place.
    """

    text: str
    messages: tuple[dict[str, Any], ...]
    input_tokens: int | None
    output_tokens: int | None
    source: str

    @classmethod
    def of(cls, found: Mapping[str, Any], place: str) -> Self:
        """Make it of the fields that are there; None is as good as nothing.

        Args:
            found: The fields; what has another name than those of FIELDS is left alone.
            place: What names the row where it has no id.

        Raises:
            ValueError: A field is not of its kind, or there are none or both of prompt and messages.
        """
        prompt, messages, name = (found.get(field) for field in ("prompt", "messages", "id"))
        if (prompt is None) == (messages is None):
            raise ValueError(
                f"has {'neither' if prompt is None else 'both'} prompt {'nor' if prompt is None else 'and'} messages"
            )
        if prompt is not None and not (isinstance(prompt, str) and prompt):
            raise ValueError("has a prompt that is no text")
        chat = _chat(messages) if messages is not None else ()
        return cls(
            text=prompt or "\n".join(texts(chat)),
            messages=chat,
            input_tokens=_count("input_tokens", found.get("input_tokens")),
            output_tokens=_count("output_tokens", found.get("output_tokens")),
            source=place if name is None else str(name),
        )

    def prompt(self, input_tokens: int, output_tokens: int) -> Prompt:
        """The prompt, once its lengths are known."""
        return Prompt(self.text, input_tokens, output_tokens, self.source, self.messages)


def counted(rows: Sequence[Row], tokenizer: OnDemand) -> list[int]:
    """Return the input tokens of each row: what it says, else what the tokenizer counts in it, if there is one.

    Of a prompt the special tokens around it are counted too; of a chat only what its messages say, since a template
    puts more around them than a tokenizer knows. Where every row says its own, no tokenizer is asked for.
    """
    if tokenizer.absent:
        return [UNPLANNED if row.input_tokens is None else row.input_tokens for row in rows]
    unknown = [row for row in rows if row.input_tokens is None]
    prompts = [row.text for row in unknown if not row.messages]
    said = [texts(row.messages) for row in unknown]
    of_prompts = iter(tokenizer().count(prompts, special=True) if prompts else [])
    flat = [text for row in said for text in row]
    of_texts = iter(tokenizer().count(flat) if flat else [])
    found = {
        id(row): sum(next(of_texts) for _ in own) if row.messages else next(of_prompts)
        for row, own in zip(unknown, said, strict=True)
    }
    return [found[id(row)] if row.input_tokens is None else row.input_tokens for row in rows]


def line(prompt: Prompt) -> bytes:
    """A prompt as a line of JSON, of which the data set jsonl makes the same prompt."""
    asked = {"messages": prompt.messages} if prompt.messages else {"prompt": prompt.text}
    lengths = {"input_tokens": prompt.input_tokens, "output_tokens": prompt.output_tokens}
    return orjson.dumps({"id": prompt.source} | asked | lengths) + b"\n"


def is_whole_in_a_row(prompt: Prompt) -> bool:
    """Whether a row has a place for all that a prompt says: sessions, due times and the server's counts have none."""
    return not prompt.follows and prompt.due_ns is None and prompt.server_tokens is None


def texts(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """What each of some messages says: its content, or the text among the parts of it."""
    found = []
    for message in messages:
        content = message.get("content")
        parts = content if isinstance(content, list) else [{"text": content}]
        found += [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
    return found


def _chat(messages: object) -> tuple[dict[str, Any], ...]:
    if not isinstance(messages, list) or not messages:
        raise ValueError("has messages that are no list of any")
    for message in messages:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise ValueError("has a message that is no object with a role")
        content = message.get("content")
        calls = message["role"] == "assistant" and message.get("tool_calls")  # then there may be no content
        if not isinstance(content, str | list) and not (content is None and calls):
            raise ValueError("has a message whose content is neither a text nor a list of parts")
    return tuple(messages)


def _count(name: str, value: object) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST):
        return value
    raise ValueError(f"has {name} {value!r}, which is no number of tokens from 1 to {MOST:,}")
