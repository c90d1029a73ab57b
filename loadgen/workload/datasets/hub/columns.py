"""The layout of a data set by its columns: those that the user names, else those of well-known names, as in vllm-rs."""

from collections.abc import Mapping, Sequence
from typing import Any

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload.datasets.hub.known_sets import READING
from loadgen.workload.datasets.hub.layout import Layout, Record
from loadgen.workload.datasets.prompt_rows import Row, message_texts

COLUMN = "--hf-column"
MAPPED = ("id", "prompt", "messages", "input_tokens", "output_tokens", "answer")
CHATS = ("conversation", "conversations")  # columns whose first question is asked
PROMPTS = ("prompt", "turns", "question", "problem", "input", "text", "content", "instruction")
ANSWERS = ("completion", "response", "answer", "output", "solution", "answers")
ASKS, REPLIES = ("user", "human"), ("assistant", "gpt")  # names of speakers


def layout_of(settings: RunSettings, first: Record) -> Layout:
    """Return the layout of a data set from `--hf-column` and its first record.

    Raises:
        BadInput: A column is unknown, or none has prompts.
    """
    if not settings.hf_column and {"context", "input"} <= first.keys() and not {"messages", *CHATS} & first.keys():
        return READING
    columns = _columns(settings, first)

    def read(record: Record, source: str) -> Row | None:
        return _row({field: record.get(column) for field, column in columns.items()}, source)

    def answer(record: Record) -> str:
        chat = record.get(columns["messages"]) if "messages" in columns else None
        own = _text(record.get(columns["answer"]), REPLIES) if "answer" in columns else ""
        return own or ("\n".join(message_texts(chat[-1:])) if chat and _is_answered(chat) else "")

    return Layout(read, answer, split=None, columns=columns)


def _row(fields: dict[str, Any], source: str) -> Row:
    chat, prompt = fields.get("messages"), fields.get("prompt")
    if chat and _is_answered(chat):
        fields["messages"] = chat[:-1]
    if isinstance(prompt, list):
        fields["prompt"] = _text(prompt, ASKS)
    return Row.of(fields, source)


def _columns(settings: RunSettings, first: Record) -> dict[str, str]:
    given = dict(pair.partition("=")[::2] for pair in settings.hf_column)
    for field, column in given.items():
        if field not in MAPPED or not column:
            problem = f"unknown field or empty column in {field!r}"
            raise BadInput(COLUMN, problem, f"write FIELD=COLUMN with {', '.join(MAPPED)}")
        if column not in first:
            raise BadInput(COLUMN, f"unknown column {column!r}", f"choose from {', '.join(first)}")
    columns = {name: name for name in ("id", "input_tokens", "output_tokens") if name in first}
    if not {"prompt", "messages"} & given.keys():
        columns |= _prompt(settings.dataset_path, first)
    if "answer" not in given and (known := _first_of(ANSWERS, first)):
        columns.setdefault("answer", known)
    return columns | given


def _prompt(name: str | None, first: Record) -> dict[str, str]:
    """Find the column of prompts or chats; a conversation also has the answers."""
    if "messages" in first:
        return {"messages": "messages"}
    if chat := next((name for name in CHATS if isinstance(first.get(name), list)), None):
        return {"prompt": chat, "answer": chat}
    if prompt := _first_of(PROMPTS, first):
        return {"prompt": prompt}
    remedy = f"give it: {COLUMN} prompt=COLUMN, with one of {', '.join(first)}"
    raise BadInput(COLUMN, f"{name} has no column prompt or messages", remedy)


def _first_of(names: Sequence[str], record: Record) -> str | None:
    return next((name for name in names if name in record), None)


def _is_answered(chat: Any) -> bool:
    last = chat[-1] if isinstance(chat, list) and len(chat) > 1 else None
    return isinstance(last, dict) and last.get("role") == "assistant"


def _text(value: Any, speakers: Sequence[str]) -> str:
    """Return a text, the first of several, or the first message of some speakers; "" if there is none.

    Raises:
        ValueError: The value is something else.
    """
    if value is None or value == []:
        return ""
    if isinstance(value, list):
        if isinstance(value[0], Mapping):
            asked = (turn for turn in value if turn.get("role", turn.get("from")) in speakers)
            return next((str(turn.get("content") or turn.get("value") or "") for turn in asked), "")
        value = value[0]
    if not isinstance(value, str):
        raise ValueError("has a column that is neither a text nor a conversation")
    return value
