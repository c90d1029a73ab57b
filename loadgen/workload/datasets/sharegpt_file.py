"""`Conversations` of a ShareGPT file, each read when it is needed; `ConversationLines` of a file
of JSON lines.
"""

import contextlib
import json
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import orjson

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput, setting
from loadgen.workload.files.json_index import UNKNOWN, Structure
from loadgen.workload.files.mapped_file import DATASET_PATH, dataset_path, map_file, provenance

ENCODING_REMEDY = "save it as UTF-8"
REMEDY = (
    "give the ShareGPT file (`loadgen dataset fetch sharegpt` downloads it), a JSON list of "
    "conversations"
)
LINES_REMEDY = 'give JSON lines of {"conversations": [{"content": QUESTION}, {"content": ANSWER}]}'
PUBLISHED = (
    "anon8231489123/ShareGPT_Vicuna_unfiltered",
    "ShareGPT_V3_unfiltered_cleaned_split.json",
)
SPACE = b" \t\r\n"
START = re.compile(rb"(\xef\xbb\xbf)?[ \t\r\n]*\[")  # after an optional byte order mark
UTF_16 = (b"\xff\xfe", b"\xfe\xff")  # byte order marks, which also begin those of UTF-32
KEY = "conversations"
LINE_KEYS, LINE_TEXTS = (KEY, "conversation"), ("content", "value")
ASKS, ANSWERS = ("human", "user"), ("gpt", "assistant")  # names of speakers in files
SURROGATE = re.compile("[\ud800-\udfff]")
logger = logging.getLogger("loadgen")


def sharegpt_path(settings: RunSettings) -> Path:
    """Return the path of --dataset-path; without it, that of the published file in the cache of the
    hub.

    If the cache does not have it and the hub can be reached, the file is downloaded, as SGLang and
    vllm-rs do.

    Raises:
        BadInput: There is no file.
    """
    if settings.dataset_path is None:
        from loadgen.workload.datasets.hub_folder import downloaded

        if (path := downloaded(*PUBLISHED)) is not None:
            return path
    return dataset_path(settings, REMEDY)


@dataclass(frozen=True, slots=True)
class Conversation:
    """The first two turns of a conversation, of any speaker.

    Attributes:
        source: Its id, or its number in the file, from 0.
        prompt: The first turn.
        answer: The second turn.
        speakers: The speakers of the turns; None if the file does not name them.
        image: The path or URL of an image, as the file has it; None if it has none.
        video: The same of a video.
    """

    source: str
    prompt: str
    answer: str
    speakers: tuple[Any, Any] = (None, None)
    image: Any = None
    video: Any = None


class ConversationsInOrder:
    """The conversations of a ShareGPT file in order, read only as far as they are needed.

    Attributes:
        path: The file.
        size: Its size in bytes.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._data = map_file(path, REMEDY)
        if self._data[:2] in UTF_16:
            raise BadInput(DATASET_PATH, f"{path} is not UTF-8 from byte 0 on", ENCODING_REMEDY)
        if not START.match(self._data):
            raise BadInput(DATASET_PATH, f"{path} is not a JSON list", REMEDY)

    def provenance(self) -> dict[str, Any]:
        """Return name, size and hash of the file, as JSON. Reads the whole file."""
        return provenance(self.path)

    def __iter__(self) -> Iterator[Conversation]:
        """Yield the conversations whose first two turns have text that can be sent.

        Raises:
            BadInput: The part of the file that is read is not JSON.
        """
        structure = Structure(self._data, KEY.encode())
        number = 0
        for spans in structure:
            for start, end, _ in spans.tolist():
                conversation = _first_turns(self._parsed(start, end), number)
                if conversation is not None:
                    yield conversation
                number += 1
        self._require_nothing_after(structure.end)
        if structure.end is None:
            self._warn_of_cut(number)

    def _parsed(self, start: int, end: int) -> dict[str, Any]:
        content = self._data[start:end]
        entry: dict[str, Any]
        with contextlib.suppress(
            orjson.JSONDecodeError
        ):  # json reads half a surrogate pair, and places an error
            entry = orjson.loads(content)
            return entry
        try:
            entry = json.loads(content.decode())
        except UnicodeDecodeError as error:
            problem = f"{self.path} is not UTF-8 at byte {start + error.start}"
            raise BadInput(DATASET_PATH, problem, ENCODING_REMEDY) from error
        except (ValueError, RecursionError) as error:
            problem = f"{self.path} is not JSON in the object at byte {start} ({error})"
            raise BadInput(DATASET_PATH, problem, REMEDY) from error
        return entry

    def _require_nothing_after(self, end: int | None) -> None:
        if end is not None and self._data[end:].strip(SPACE):
            raise BadInput(
                DATASET_PATH, f"{self.path} has more after its list, from byte {end}", REMEDY
            )

    def _warn_of_cut(self, whole: int) -> None:
        logger.warning(
            "%s: the file is truncated; its %d complete conversations are used", self.path, whole
        )


class Conversations(ConversationsInOrder):
    """The conversations of at least two turns in a ShareGPT file, by number.

    The file is memory-mapped and its structure scanned; a conversation is parsed when it is read.
    If the file is truncated, its complete conversations are used, and a warning is logged.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        structure = Structure(self._data, KEY.encode())
        self._places = np.concatenate([np.empty((0, 3), dtype=np.int64), *structure])
        self._require_nothing_after(structure.end)
        self._cut_off = structure.end is None
        turns = self._places[:, 2]
        for number in np.flatnonzero(turns == UNKNOWN).tolist():
            turns[number] = len(_turns(self._entry(number)))
        self._numbers: list[int] = np.flatnonzero(turns >= 2).tolist()
        if not self._numbers:
            raise BadInput(
                DATASET_PATH, f"{path} has no complete conversation of two turns", REMEDY
            )
        if self._cut_off:
            self._warn_of_cut(len(self._places))

    def __len__(self) -> int:
        return len(self._numbers)

    def provenance(self) -> dict[str, Any]:
        """Return name, size and hash of the file and the number of conversations, as JSON.

        Reads the whole file.
        """
        return super().provenance() | {
            "file_cut_off": self._cut_off,
            "conversations": len(self._places),
        }

    def __getitem__(self, index: int) -> Conversation | None:
        """Parse one conversation; None if its first two turns have no text that can be sent.

        Raises:
            BadInput: It is not JSON.
        """
        number = self._numbers[index]
        return _first_turns(self._entry(number), number)

    def exchanges(self, index: int) -> tuple[str, list[tuple[str, str]]] | None:
        """Return the source of a conversation with its questions and answers; None if it is not
        usable.

        Questions and answers must alternate from the first turn on, and each must be a text that is
        not empty and can be sent. A last question without an answer is left out.

        Raises:
            BadInput: It is not JSON, or has an image or a video.
        """
        number = self._numbers[index]
        entry = self._entry(number)
        if entry.get("image") or entry.get("video"):
            problem = f"{self.path} has images or videos in conversation {entry.get('id', number)}"
            raise BadInput(
                setting.turns, f"{problem}, which sessions do not support", "leave it out, or them"
            )
        texts = list[str]()
        for place, turn in enumerate(_turns(entry)):
            text = turn.get("value") if isinstance(turn, dict) else None
            if (
                not is_text(text)
                or not text
                or turn.get("from") not in (ANSWERS if place % 2 else ASKS)
            ):
                return None
            texts.append(text)
        pairs = list(zip(texts[::2], texts[1::2], strict=False))
        return (str(entry.get("id", number)), pairs) if pairs else None

    def _entry(self, number: int) -> dict[str, Any]:
        start, end, _ = self._places[number].tolist()
        return self._parsed(start, end)


class ConversationLines:
    """The conversations of at least two turns in a file of JSON lines. Lines that are not JSON are
    left out, as there.

    Attributes:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._conversations: list[Conversation] = []
        for number, line in enumerate(map_file(path, LINES_REMEDY)[:].splitlines()):
            with contextlib.suppress(ValueError, RecursionError):
                if (conversation := _conversation(json.loads(line), number)) is not None:
                    self._conversations.append(conversation)
        if not self._conversations:
            raise BadInput(DATASET_PATH, f"{path} has no conversation of two turns", LINES_REMEDY)

    def __len__(self) -> int:
        return len(self._conversations)

    def __getitem__(self, index: int) -> Conversation:
        return self._conversations[index]

    def provenance(self) -> dict[str, Any]:
        """Return name, size and hash of the file, as JSON. Reads the whole file."""
        return provenance(self.path)


def is_text(value: object) -> TypeGuard[str]:
    """Return whether a value is a string that UTF-8 can encode, without half a surrogate pair."""
    return isinstance(value, str) and not SURROGATE.search(value)


def _first_turns(entry: dict[str, Any], number: int) -> Conversation | None:
    turns = _turns(entry)[:2]
    if len(turns) < 2 or not all(isinstance(turn, dict) for turn in turns):
        return None
    prompt, answer = (turn.get("value") for turn in turns)
    if not (is_text(prompt) and is_text(answer)):
        return None
    speakers = (turns[0].get("from"), turns[1].get("from"))
    return Conversation(
        str(entry.get("id", number)),
        prompt,
        answer,
        speakers,
        entry.get("image"),
        entry.get("video"),
    )


def _turns(entry: dict[str, Any]) -> list[Any]:
    turns = entry.get(KEY)
    return turns if isinstance(turns, list) else []


def _conversation(row: Any, number: int) -> Conversation | None:
    if not isinstance(row, dict):
        return None
    turns = next((row[key] for key in LINE_KEYS if isinstance(row.get(key), list)), list[Any]())[:2]
    if len(turns) < 2 or not all(isinstance(turn, dict) for turn in turns):
        return None
    prompt, answer = (next((turn[key] for key in LINE_TEXTS if key in turn), "") for turn in turns)
    return (
        Conversation(str(number), prompt, answer) if is_text(prompt) and is_text(answer) else None
    )
