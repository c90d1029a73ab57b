"""`Row`: a ready prompt in a file, with at most six fields, and the export of prompts as rows.

The fields are `prompt` (a text) or `messages` (a chat), and optionally `id`, `input_tokens`,
`output_tokens` and `extra_body`. `RowFile` has the rows of a JSON lines or CSV file of any size,
each read when it is needed. Rows are shuffled as the package `datasets` and Python's `random`
shuffle them.
"""

import mmap
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal, Self, TypeVar

import numpy as np
import orjson
from msgspec import Struct
from numpy.typing import NDArray

from loadgen.errors import BadInput
from loadgen.workload import image
from loadgen.workload.datasets.lengths import MAX_TOKENS
from loadgen.workload.files.mapped_file import DATASET_PATH, map_file, provenance
from loadgen.workload.prompt import DATASET_NAME, UNPLANNED, Prompt
from loadgen.workload.tokenizer.tokenizer import LazyTokenizer

FIELDS = ("id", "prompt", "messages", "input_tokens", "output_tokens", "extra_body")
# Names that AIPerf and genai-perf have for some of them, and for further ones.
ALIASES = {"text": "prompt", "session_id": "id", "output_length": "output_tokens"}
OF_OTHERS = (*ALIASES, "turns", "type")
TIME = "timestamp"  # of a request of a trace
REMEDY = f"give rows of {', '.join(FIELDS)}; prompt or messages is required"
CHUNK = 1 << 24  # bytes scanned at a time
NEWLINE, QUOTE = b'\n"'
MARK = b"\xef\xbb\xbf"  # byte order mark
CELL = r'(?:"((?:[^"]++|"")*+)"|([^",\r\n]*+))(,|\r?\n?\Z)'
BUFFER = 1000  # records that `datasets` shuffles at a time when it streams
Kind = Literal["jsonl", "csv", "text"]
T = TypeVar("T")


class Row(Struct, frozen=True):
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
    fields: dict[str, Any] = {}

    @classmethod
    def of(cls, values: Mapping[str, Any], source: str) -> Self:
        """Create a row from its fields. None counts as missing.

        Args:
            values: The fields; names that are not in FIELDS are ignored.
            source: The source of a row without an id.

        Raises:
            ValueError: A field has the wrong type, or there are none or both of prompt and
                messages.
        """
        prompt, messages, name = (values.get(field) for field in ("prompt", "messages", "id"))
        if (prompt is None) == (messages is None):
            raise ValueError(
                f"has {'neither' if prompt is None else 'both'} prompt "
                f"{'nor' if prompt is None else 'and'} messages"
            )
        if prompt is not None and not (isinstance(prompt, str) and prompt):
            raise ValueError("has a prompt that is not a text")
        chat = _chat(messages) if messages is not None else ()
        fields = values.get("extra_body")
        if not isinstance(fields, dict | None):
            raise ValueError("has an extra_body that is not an object")
        return cls(
            text=prompt or "\n".join(message_texts(chat)),
            messages=chat,
            input_tokens=checked_count("input_tokens", values.get("input_tokens")),
            output_tokens=checked_count("output_tokens", values.get("output_tokens")),
            source=source if name is None else str(name),
            fields=fields or {},
        )

    def prompt(self, input_tokens: int, output_tokens: int) -> Prompt:
        """Create the prompt, with its lengths."""
        return Prompt(
            self.text, input_tokens, output_tokens, self.source, self.messages, fields=self.fields
        )


class RowFile:
    """The rows of a file in its order: JSON objects, or lists of messages, one a line, the records
    of a CSV file (RFC 4180) with a header, or prompts as plain lines.

    The file is memory-mapped and scanned for line ends; a row is parsed when it is read. Empty
    lines are ignored.

    Attributes:
        path: The file.
        size: Its size in bytes.
        columns: The names in the header of a CSV file.
    """

    def __init__(
        self,
        path: Path,
        kind: Kind,
        *,
        strict: bool = True,
        convert: Callable[[dict[str, Any]], dict[str, Any]] = dict,
        remedy: str = REMEDY,
    ) -> None:
        """Map and scan the file.

        Args:
            path: The file.
            kind: Its format.
            strict: Whether to refuse unknown fields; else they are ignored.
            convert: Makes the fields of a Row from those of the file; raises ValueError.
            remedy: What to give in place of a file that cannot be used.

        Raises:
            BadInput: The file cannot be read, or has no rows.
        """
        self.path = path
        self._kind = kind
        self._strict = strict
        self._convert = convert
        self._remedy = remedy
        self._data = map_file(path, remedy)
        self._starts, self._ends = _lines(self._data, quoted=kind == "csv")
        self.columns: list[str] = []
        if kind == "csv":
            self.columns = self._cells("its header", 0)
            self._refuse_unknown("its header", self.columns)
            twice = next((name for name in self.columns if self.columns.count(name) > 1), None)
            if twice is not None:
                raise self._bad("its header", f"contains {twice!r} twice")
            self._starts, self._ends = self._starts[1:], self._ends[1:]
        if not len(self):
            raise BadInput(DATASET_PATH, f"{path} has no rows", remedy)

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, number: int) -> Row:
        """Read one row.

        Raises:
            BadInput: The row is invalid.
        """
        values = self.values(number)
        try:
            return Row.of(self._convert(values), f"{self._kind}/{number + 1}")
        except BadInput as error:
            problem, remedy = error.texts
            place = f"{self.path}: row {number + 1}: {problem}"
            raise BadInput(DATASET_PATH, place, remedy) from error
        except ValueError as error:
            raise self.refusal(number, str(error)) from error

    def values(self, number: int) -> dict[str, Any]:
        """Read the fields of one row as they are in the file.

        Raises:
            BadInput: The row cannot be read, or has an unknown field.
        """
        location = f"row {number + 1}"
        read = {"jsonl": self._object, "csv": self._record, "text": self._line}[self._kind]
        values = read(location, number)
        self._refuse_unknown(location, values)
        return values

    def refusal(self, number: int, problem: str) -> BadInput:
        """Return the error that names a row, and what is wrong with it."""
        return self._bad(f"row {number + 1}", problem)

    def provenance(self) -> dict[str, Any]:
        """Return name, size and hash of the file and the number of its rows, as JSON.

        Reads the whole file.
        """
        return provenance(self.path) | {"rows": len(self)}

    def _object(self, location: str, number: int) -> dict[str, Any]:
        try:
            value = orjson.loads(self._bytes(number))
        except ValueError as error:
            self._text(location, number)  # UTF-8?
            raise self._bad(location, f"is not JSON ({error})") from error
        if isinstance(value, list):
            return {"messages": value}
        if not isinstance(value, dict):
            raise self._bad(location, "is not a JSON object")
        return value

    def _line(self, location: str, number: int) -> dict[str, Any]:
        return {"prompt": self._text(location, number).removesuffix("\r")}

    def _record(self, location: str, number: int) -> dict[str, Any]:
        cells = self._cells(location, number)
        if len(cells) != len(self.columns):
            raise self._bad(
                location, f"has {len(cells)} columns, and the header has {len(self.columns)}"
            )
        record: dict[str, Any] = {
            name: cell for name, cell in zip(self.columns, cells, strict=True) if cell
        }
        try:
            for name in record.keys() & {"input_tokens", "output_tokens"}:
                record[name] = int(record[name])
            for name in record.keys() & {"messages", "extra_body"}:
                record[name] = orjson.loads(record[name])
        except ValueError as error:
            raise self._bad(
                location, f"has a number, messages or extra_body that cannot be read ({error})"
            ) from error
        return record

    def _cells(self, location: str, number: int) -> list[str]:
        text = self._text(location, number)
        if "\0" in text:
            raise self._bad(location, "contains NUL bytes")
        cell = re.compile(CELL)
        cells, at = [], 0
        while match := cell.match(text, at):
            quoted, plain, end = match.groups()
            cells.append(plain if quoted is None else quoted.replace('""', '"'))
            at = match.end()
            if end != ",":
                return cells
        raise self._bad(location, "is not CSV: a quote is misplaced, or not closed")

    def _text(self, location: str, number: int) -> str:
        try:
            return self._bytes(number).decode()
        except UnicodeDecodeError as error:
            raise self._bad(location, "is not UTF-8") from error

    def _bytes(self, number: int) -> bytes:
        return self._data[self._starts[number] : self._ends[number]]

    def _refuse_unknown(self, location: str, names: "dict[str, Any] | list[str]") -> None:
        if self._strict and (
            unknown := [name for name in names if name not in (*FIELDS, *OF_OTHERS)]
        ):
            if TIME in unknown:
                remedy = f"send the rows at their times with {DATASET_NAME} trace, each with a body"
                raise BadInput(
                    DATASET_PATH, f"{self.path}: {location} has a {TIME}, and no body", remedy
                )
            raise self._bad(location, f"has an unknown field {unknown[0]!r}")

    def _bad(self, location: str, problem: str) -> BadInput:
        return BadInput(DATASET_PATH, f"{self.path}: {location} {problem}", self._remedy)


def count_tokens(rows: Sequence[Row], tokenizer: LazyTokenizer) -> list[int]:
    """Return the input tokens of each row: its own number, else the count of the tokenizer.

    The count of a prompt includes special tokens. That of a chat covers the texts of its messages
    alone, because the chat template adds its own. If every row has a number, the tokenizer is not
    loaded.
    """
    if tokenizer.absent:
        return [UNPLANNED if row.input_tokens is None else row.input_tokens for row in rows]
    unknown = [row for row in rows if row.input_tokens is None]
    prompts = [row.text for row in unknown if not row.messages]
    chats = [message_texts(row.messages) for row in unknown]
    of_prompts = iter(tokenizer().count(prompts, special=True) if prompts else [])
    flat = [text for chat in chats for text in chat]
    of_texts = iter(tokenizer().count(flat) if flat else [])
    counts = {
        id(row): sum(next(of_texts) for _ in chat_texts) if row.messages else next(of_prompts)
        for row, chat_texts in zip(unknown, chats, strict=True)
    }
    return [counts[id(row)] if row.input_tokens is None else row.input_tokens for row in rows]


def line(prompt: Prompt) -> bytes:
    """Write a prompt as a JSON line, from which the data set jsonl makes the same prompt."""
    content = {"messages": prompt.messages} if prompt.messages else {"prompt": prompt.text}
    lengths = {"input_tokens": prompt.input_tokens, "output_tokens": prompt.output_tokens}
    row = (
        {"id": prompt.source}
        | content
        | lengths
        | ({"extra_body": prompt.fields} if prompt.fields else {})
    )
    return orjson.dumps(row, image.to_json, orjson.OPT_PASSTHROUGH_DATACLASS) + b"\n"


def export_rows(prompts: Iterable[Prompt], file: BinaryIO) -> Iterator[Prompt]:
    """Yield prompts, and write each one as a row that the data set jsonl can send.

    Raises:
        BadInput: A prompt follows another, has a due time or several texts, which rows cannot hold.
    """
    for prompt in prompts:
        if prompt.follows or prompt.due_ns is not None or prompt.texts:
            what = (
                "sessions" if prompt.follows else "several texts" if prompt.texts else "due times"
            )
            raise BadInput("--export", f"rows cannot hold {what}", "send the data set itself")
        file.write(line(prompt))
        yield prompt


def is_whole_in_a_row(prompt: Prompt) -> bool:
    """Return whether a row can hold everything of a prompt: no sessions, due times, server
    tokens or several texts.
    """
    return (
        not prompt.texts
        and not prompt.follows
        and prompt.due_ns is None
        and prompt.server_tokens is None
    )


def message_texts(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the texts of messages: the content, or the text parts of it."""
    texts = []
    for message in messages:
        content = message.get("content")
        parts = content if isinstance(content, list) else [{"text": content}]
        texts += [
            part["text"]
            for part in parts
            if isinstance(part, dict) and isinstance(part.get("text"), str)
        ]
    return texts


def shuffled_list(records: Iterable[T], seed: int) -> list[T]:
    """Return records in the order of `random.shuffle` after `random.seed(seed)`."""
    items = list(records)
    random.Random(seed).shuffle(items)
    return items


def shuffled_files(names: Sequence[str], seed: int) -> list[str]:
    """Return the files of a split in the order in which `IterableDataset.shuffle(seed)` opens
    them.
    """
    files = list(names)
    np.random.default_rng(seed).shuffle(files)
    return files


def shuffled_by_buffer(records: Iterable[T], seed: int) -> Iterator[T]:
    """Yield the records of a file in the order of `IterableDataset.shuffle(seed)` of `datasets` 5.

    A full buffer is shuffled, and half of it yielded. Fewer records than BUFFER have this order in
    all its releases. The records of several files are mixed beforehand by `datasets` 5, and are not
    by earlier releases.
    """
    random_numbers, buffer = np.random.default_rng(seed), list[T]()
    for record in records:
        buffer.append(record)
        if len(buffer) == BUFFER:
            order = random_numbers.permutation(BUFFER).tolist()
            yield from (buffer[number] for number in order[: BUFFER // 2])
            buffer = [buffer[number] for number in order[BUFFER // 2 :]]
    yield from (buffer[number] for number in random_numbers.permutation(len(buffer)).tolist())


def _chat(messages: object) -> tuple[dict[str, Any], ...]:
    if not isinstance(messages, list) or not messages:
        raise ValueError("has messages that are not a list, or empty")
    for message in messages:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise ValueError("has a message that is not an object with a role")
        content = message.get("content")
        # Then the content may be missing.
        calls = message["role"] == "assistant" and message.get("tool_calls")
        if not isinstance(content, str | list) and not (content is None and calls):
            raise ValueError("has a message whose content is neither a text nor a list of parts")
    return tuple(messages)


def checked_count(name: str, value: object) -> int | None:
    """Return a number of tokens, or None for none.

    Args:
        name: The field that gives it.
        value: Its value.

    Raises:
        ValueError: It is another value.
    """
    if value is None or (
        isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_TOKENS
    ):
        return value
    raise ValueError(
        f"has {name} {value!r}, which is not a number of tokens from 1 to {MAX_TOKENS:,}"
    )


def _lines(data: mmap.mmap, *, quoted: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return start and end offsets of non-empty lines.

    With `quoted`, line ends between quotes are ignored.
    """
    parts = []
    inside = 0
    for place in range(0, len(data), CHUNK):
        chunk = np.frombuffer(data[place : place + CHUNK], dtype=np.uint8)
        line_ends = np.flatnonzero(chunk == NEWLINE)
        if quoted:
            quotes = np.flatnonzero(chunk == QUOTE)
            line_ends = line_ends[(np.searchsorted(quotes, line_ends) + inside) % 2 == 0]
            inside = (inside + len(quotes)) % 2
        parts.append(line_ends + place)
    begin = len(MARK) if data[: len(MARK)] == MARK else 0
    ends = np.concatenate([*parts, [len(data)]])
    starts = np.concatenate([[begin], ends[:-1] + 1])
    alone = np.flatnonzero(ends - starts == 1)
    empty = ends <= starts
    empty[alone] = [data[at : at + 1] == b"\r" for at in starts[alone].tolist()]
    return starts[~empty], ends[~empty]
