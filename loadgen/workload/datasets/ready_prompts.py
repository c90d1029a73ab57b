"""`ReadyDataset`: ready prompts from the rows of a file.

`ChatSessions` are the chats of a file as sessions, with several messages in a turn where the chat
has them. Rows of `custom_image` have a prompt with image files, or content parts in any order, as
`vllm bench serve` reads them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Self

from loadgen.config.data import CUSTOM_IMAGE
from loadgen.config.settings import RunSettings, seed_of
from loadgen.errors import BadInput, setting
from loadgen.workload import endpoints, image
from loadgen.workload.datasets.prompt_rows import (
    ALIASES,
    REMEDY,
    Kind,
    Row,
    RowFile,
    count_tokens,
    message_texts,
    shuffled_list,
)
from loadgen.workload.datasets.session import (
    NO_ANSWER,
    TURNS,
    EndlessSessions,
    ThinkTimes,
    Turn,
    parse_recorded_turns,
    session_prompts,
)
from loadgen.workload.encoded_images import referred
from loadgen.workload.files.mapped_file import DATASET_PATH, dataset_path
from loadgen.workload.prompt import UNPLANNED, Message, Prompt
from loadgen.workload.tokenizer.tokenizer import LazyTokenizer, tokenizer_file

OF_IMAGES = "give JSON lines with prompt and image_files, or with content"
KINDS: dict[str, Kind] = {"csv": "csv", "text": "text"}  # others have JSON lines
BATCH = 256  # rows read and encoded at a time
IMAGE_ROW_FIELDS = ("id", "input_tokens", "output_tokens", "extra_body")
TURNS_REMEDY = (
    "give rows of messages in which each answer (assistant) follows what asks for it "
    "(user, tool, ...)"
)
Exchange = tuple[list[Message], Message]  # what is new in a turn, and its answer


@dataclass(frozen=True, slots=True)
class ReadyDataset:
    """The rows of a file: `jsonl`, `csv` and `text` in its order, `custom` and `custom_image`
    shuffled by `seed_order`.

    They are shuffled as in `vllm bench serve`. If the file has too few rows, they are repeated.
    Lengths of a row are not counted.

    Attributes:
        rows: The file.
        settings: The settings of the run: the name of the data set, lengths of answers, and the
            order of rows.
        tokenizer: Loaded for the first row without `input_tokens`.
    """

    rows: RowFile
    settings: RunSettings
    tokenizer: LazyTokenizer

    @classmethod
    def from_settings(cls, settings: RunSettings) -> "ReadyDataset | ChatSessions":
        """Create the data set from `--dataset-path`, `--custom-output-len`, `--disable-shuffle` and
        `--tokenizer`.

        With `--turns`, the chats of `jsonl` and `csv` are sessions.

        Raises:
            BadInput: The file cannot be used.
        """
        name = settings.dataset_name
        if name == CUSTOM_IMAGE:
            convert = partial(image_message, embeds=settings.custom_ensure_client_side_data)
            rows = RowFile(
                dataset_path(settings, OF_IMAGES),
                "jsonl",
                strict=False,
                convert=convert,
                remedy=OF_IMAGES,
            )
        else:
            path = dataset_path(settings, REMEDY)
            kind: Kind = KINDS.get(name, "jsonl")
            if name == "custom":
                rows = RowFile(path, kind, strict=False)
            else:
                convert = partial(as_named_here, of_sessions=settings.turns not in (None, "1"))
                rows = RowFile(path, kind, convert=convert)
        if settings.turns not in (None, "1"):
            return ChatSessions.of(rows, settings)
        return cls(rows, settings, LazyTokenizer(settings))

    @classmethod
    def made_of(cls, settings: RunSettings) -> list[Path] | None:
        """Return the file and the tokenizer's file; None if the first row has its length: nothing
        is counted then.

        Sessions are not cached either, nor rows with images: those would be in the cache, too.
        """
        if settings.dataset_name == CUSTOM_IMAGE or settings.timed_by_data:
            return None
        tokenizer = tokenizer_file(settings)
        rows = cls.from_settings(settings).rows
        return (
            None
            if tokenizer is None or rows[0].input_tokens is not None
            else [rows.path, tokenizer]
        )

    def prompts(self, count: int) -> Iterator[Prompt]:
        """Yield `count` prompts, the first k of which are those of `prompts(k)`. One batch at a
        time is in memory.

        Raises:
            BadInput: A row cannot be used, or has no length and there is no tokenizer.
        """
        return self._generate(islice(cycle(self._order()), count))

    def beyond(self, count: int) -> Iterator[Prompt]:
        """Yield the rows after the first `count`, each once.

        Raises:
            BadInput: As `prompts`.
        """
        return self._generate(islice(self._order(), count, None))

    def _generate(self, numbers: Iterator[int]) -> Iterator[Prompt]:
        while batch := [self.rows[number] for number in islice(numbers, BATCH)]:
            for row, tokens in zip(batch, count_tokens(batch, self.tokenizer), strict=True):
                if row.output_tokens is None and self.settings.custom_output_len < 0:
                    raise BadInput(
                        setting.custom_output_len,
                        "is -1, and a row has no output_tokens",
                        "give a length",
                    )
                if row.fields:
                    where = f"extra_body of {row.source} in {self.rows.path}"
                    endpoints.check_row_fields(where, row.fields, self.settings)
                yield row.prompt(tokens, row.output_tokens or self.settings.custom_output_len)

    def provenance(self) -> dict[str, Any]:
        """As `Dataset.provenance`."""
        return {
            "name": self.settings.dataset_name,
            "rule": "in a shuffled order" if self._is_shuffled else "in the file's order",
            "seed_order": seed_of(self.settings, "order") if self._is_shuffled else None,
            "output_tokens": self.settings.custom_output_len,
            **self.rows.provenance(),
            **self.tokenizer.provenance(),
        }

    @property
    def _is_shuffled(self) -> bool:
        return (
            self.settings.dataset_name in ("custom", CUSTOM_IMAGE)
            and not self.settings.disable_shuffle
        )

    def _order(self) -> "range | list[int]":
        order = range(len(self.rows))
        return shuffled_list(order, seed_of(self.settings, "order")) if self._is_shuffled else order


@dataclass(frozen=True, slots=True)
class ChatSessions(EndlessSessions):
    """The rows of a file in its order, each a session: all messages between two answers are one
    turn.

    If the file has too few rows, they are repeated.

    Attributes:
        rows: The file.
        turns: Maximum turns of a session; None for all.
        think_times: The times from an answer to the next turn.
        settings: The settings of the run: lengths of answers, history, and what bodies may have.
        tokenizer: Counts the tokens, if there is one.
    """

    rows: RowFile
    turns: int | None
    think_times: ThinkTimes
    settings: RunSettings
    tokenizer: LazyTokenizer

    @classmethod
    def of(cls, rows: RowFile, settings: RunSettings) -> Self:
        """Create the data set from `--turns`, `--think-time`, `--history`, `--custom-output-len`
        and `--tokenizer`.

        Args:
            rows: The file.
            settings: The settings of the run.

        Raises:
            BadInput: Turns or think time cannot be read.
        """
        turns = parse_recorded_turns(settings.turns)
        think_times = ThinkTimes.from_settings(settings)
        return cls(rows, turns, think_times, settings, LazyTokenizer(settings))

    def provenance(self) -> dict[str, Any]:
        """As `Dataset.provenance`."""
        return {
            "name": self.settings.dataset_name,
            "rule": "whole chats in the file's order",
            "turns": self.turns,
            "history": self.settings.history,
            **self.think_times.provenance(),
            "output_tokens": self.settings.custom_output_len,
            **self.rows.provenance(),
            **self.tokenizer.provenance(),
        }

    def endless(self) -> Iterator[Iterator[Prompt]]:
        """Yield the prompts of each session.

        Raises:
            BadInput: A row is no chat that can be sent turn by turn.
        """
        numbers = enumerate(cycle(range(len(self.rows))))
        return (self._session(session, self.rows[number]) for session, number in numbers)

    def _session(self, number: int, row: Row) -> Iterator[Prompt]:
        where = f"{row.source} in {self.rows.path}"
        if row.fields:
            endpoints.check_row_fields(f"extra_body of {where}", row.fields, self.settings)
        if row.input_tokens is not None:
            raise BadInput(
                DATASET_PATH,
                f"{where} has input_tokens, which its turns do not share",
                "leave them out",
            )
        turns = []
        for messages, answer in _exchanges(row, where)[: self.turns]:
            tokens = self._count(messages)
            answer_tokens = self._count([answer])
            output_tokens = (
                row.output_tokens or max(answer_tokens, 0) or self.settings.custom_output_len
            )
            if output_tokens < 0:
                problem = f"is -1, and {where} has no output_tokens"
                raise BadInput(setting.custom_output_len, problem, "give a length")
            turns.append(Turn(tuple(messages), tokens, output_tokens, answer, answer_tokens))
        recorded = self.settings.history == "recorded"
        return session_prompts(
            number, row.source, turns, self.think_times, recorded=recorded, fields=row.fields
        )

    def _count(self, messages: Sequence[Message]) -> int:
        if self.tokenizer.absent:
            return UNPLANNED
        texts = message_texts(messages)
        return sum(self.tokenizer().count(texts)) if texts else 0


def image_message(fields: Mapping[str, Any], *, embeds: bool) -> dict[str, Any]:
    """Return the fields of a row with a chat of one message in place of prompt, image_files or
    content.

    Args:
        fields: The fields: `content`, or `prompt` and `image_files`; others than those of rows are
            left out.
        embeds: Whether image files are sent in the body.

    Raises:
        ValueError: A field is missing or has the wrong type, or an image file cannot be read.
    """
    if "content" in fields:
        content = fields["content"]
        if not isinstance(content, list) or not content:
            raise ValueError("has content that is not a list, or empty")
        parts = [_image_part(part, embeds) for part in content]
    else:
        prompt = fields.get("prompt")
        files = fields.get("image_files")
        if not isinstance(prompt, str) or not isinstance(files, list) or not files:
            raise ValueError("has neither content nor a prompt with a list of image_files")
        pictures = [image.part(referred(file, embeds=embeds)) for file in files]
        parts = [{"type": "text", "text": prompt}, *pictures]
    message = {"role": "user", "content": parts}
    return {name: fields[name] for name in IMAGE_ROW_FIELDS if name in fields} | {
        "messages": [message]
    }


def as_named_here(fields: Mapping[str, Any], *, of_sessions: bool) -> dict[str, Any]:
    """Return the fields of a row of AIPerf or genai-perf under the names of here: `turns` of users
    are messages without answers.

    Args:
        fields: The fields.
        of_sessions: Whether chats are sent turn by turn.

    Raises:
        ValueError: Turns are no texts, or are not sent turn by turn.
    """
    if twice := [name for name in ALIASES if name in fields and ALIASES[name] in fields]:
        raise ValueError(f"has both {twice[0]} and {ALIASES[twice[0]]}")
    row = {ALIASES.get(name, name): value for name, value in fields.items() if name != "type"}
    turns = row.pop("turns", None)
    if turns is None:
        return row
    texts = [turn.get("text") if isinstance(turn, dict) else turn for turn in turns]
    if not texts or not all(isinstance(text, str) and text for text in texts):
        raise ValueError("has turns without a text")
    if not of_sessions:
        raise ValueError(f"has turns, which are sent with {TURNS} all")
    messages = [
        message for text in texts for message in ({"role": "user", "content": text}, NO_ANSWER)
    ]
    return row | {"messages": messages[:-1]}


def _exchanges(row: Row, where: str) -> list[Exchange]:
    """Divide a chat at its answers; one that ends with a question has an empty answer to it."""
    exchanges: list[Exchange] = []
    new: list[Message] = []
    for message in row.messages:
        if message["role"] != "assistant":
            new.append(message)
            continue
        if not new:
            raise BadInput(
                DATASET_PATH,
                f"{where} has an answer to nothing, so {TURNS} cannot divide it",
                TURNS_REMEDY,
            )
        exchanges.append((new, message))
        new = []
    if new:
        exchanges.append((new, NO_ANSWER))
    if not exchanges:
        raise BadInput(
            DATASET_PATH, f"{where} has no messages, which {TURNS} divides", TURNS_REMEDY
        )
    return exchanges


def _image_part(part: object, embeds: bool) -> image.Part:
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(part, dict) or kind not in ("text", "image", "image_url"):
        raise ValueError(f"has a content part of type {kind!r}: send text, image and image_url")
    if kind == "text":
        if not isinstance(part.get("text"), str):
            raise ValueError("has a text part without a text")
        return {"type": "text", "text": part["text"]}
    reference = part.get(kind)
    if kind == "image" or not isinstance(reference, dict):
        return image.part(referred(reference, embeds=embeds))
    # The URL stands first, before further fields such as `detail`.
    return {
        "type": kind,
        kind: {"url": None} | reference | {"url": referred(reference.get("url"), embeds=embeds)},
    }
