"""Conversations: a ShareGPT file, of which only what is asked for is read."""

import contextlib
import json
import logging
import mmap
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import orjson

from loadgen.errors import BadInput
from loadgen.workload.files.json_index import UNKNOWN, Structure
from loadgen.workload.files.mapped_file import FIELD, mapped, provenance

ENCODING_REMEDY = "save it as UTF-8"
REMEDY = "give the ShareGPT file (`loadgen dataset fetch sharegpt` gets it), a JSON list of conversations"
SPACE = b" \t\r\n"
START = re.compile(rb"(\xef\xbb\xbf)?[ \t\r\n]*\[")  # a byte order mark may come first
UTF_16 = (b"\xff\xfe", b"\xfe\xff")  # its byte order marks, UTF-32's first bytes as well
KEY = "conversations"
ASKS, ANSWERS = ("human", "user"), ("gpt", "assistant")  # who speaks, by the names that files have
SURROGATE = re.compile("[\ud800-\udfff]")

logger = logging.getLogger("loadgen")


@dataclass(frozen=True, slots=True)
class Conversation:
    """The first two turns of a conversation, whoever speaks.

    Attributes:
        source: Its id, or its number in the file, counted from 0.
        prompt: The first turn.
        answer: The second turn.
        speakers: Who the file says speaks in them, None where it does not.
    """

    source: str
    prompt: str
    answer: str
    speakers: tuple[Any, Any] = (None, None)


class Conversations:
    """The conversations of at least two turns in a ShareGPT file, in the file's order.

    The file is mapped and only its structure is looked at; a conversation is parsed when it is read. Of a file that is
    cut off, what is whole is used, and a warning is logged.

    Attributes:
        path: The file.
        size: Its bytes.
        whole: Conversations in it, those of a single turn included.
        cut_off: Whether the file ends in the middle.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._data = _mapped(path)
        self.size = len(self._data)
        structure = Structure(self._data, KEY.encode())
        self._places = np.concatenate([np.empty((0, 3), dtype=np.int64), *structure])
        _require_nothing_after(path, self._data, structure.end)
        self.whole, self.cut_off = len(self._places), structure.end is None
        self._numbers = self._of_two_turns()
        if not self._numbers:
            raise BadInput(FIELD, f"{path} holds no whole conversation of two turns", REMEDY)
        if self.cut_off:
            _warn_of_cut(path, self.whole)

    def __len__(self) -> int:
        return len(self._numbers)

    def provenance(self) -> dict[str, Any]:
        """Return name, size and hash of the file and what is in it, as JSON; reads the whole file."""
        return provenance(self.path, self.size) | {"file_cut_off": self.cut_off, "conversations": self.whole}

    def __getitem__(self, index: int) -> Conversation | None:
        """Parse one conversation; None where its first two turns have no text that can be sent.

        Raises:
            BadInput: It is not JSON.
        """
        number = self._numbers[index]
        return _first_turns(self._entry(number), number)

    def exchanges(self, index: int) -> tuple[str, list[tuple[str, str]]] | None:
        """The source of a conversation with its questions and answers; None where nobody can have held it so.

        Question and answer take turns from the first one on, and each is a text that can be sent and is not empty; a
        last question without an answer is left off.

        Raises:
            BadInput: It is not JSON.
        """
        number = self._numbers[index]
        entry = self._entry(number)
        texts = list[str]()
        for place, turn in enumerate(_turns(entry)):
            said = turn.get("value") if isinstance(turn, dict) else None
            if not _is_text(said) or not said or turn.get("from") not in (ANSWERS if place % 2 else ASKS):
                return None
            texts.append(said)
        pairs = list(zip(texts[::2], texts[1::2], strict=False))
        return (str(entry.get("id", number)), pairs) if pairs else None

    def _entry(self, number: int) -> dict[str, Any]:
        start, end, _ = self._places[number].tolist()
        return _parsed(self.path, self._data, start, end)

    def _of_two_turns(self) -> list[int]:
        """Return the numbers of the conversations with two turns or more, parsing those whose turns are not known."""
        turns = self._places[:, 2]
        for number in np.flatnonzero(turns == UNKNOWN).tolist():
            turns[number] = len(_turns(self._entry(number)))
        found: list[int] = np.flatnonzero(turns >= 2).tolist()
        return found


class ConversationsInOrder:
    """The conversations of a ShareGPT file one after the other, of which no more is looked at than is asked for.

    Attributes:
        path: The file.
        size: Its bytes.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._data = _mapped(path)
        self.size = len(self._data)

    def provenance(self) -> dict[str, Any]:
        """Return name, size and hash of the file, as JSON; reads the whole file."""
        return provenance(self.path, self.size)

    def __iter__(self) -> Iterator[Conversation]:
        """Yield those whose first two turns have text that can be sent.

        Raises:
            BadInput: The file is not JSON as far as it has been read.
        """
        structure, number = Structure(self._data, KEY.encode()), 0
        for places in structure:
            for start, end, _ in places.tolist():
                found = _first_turns(_parsed(self.path, self._data, start, end), number)
                if found is not None:
                    yield found
                number += 1
        _require_nothing_after(self.path, self._data, structure.end)
        if structure.end is None:
            _warn_of_cut(self.path, number)


def _mapped(path: Path) -> mmap.mmap:
    """Map a file into memory for reading; refuse what does not begin as a JSON list."""
    data = mapped(path, REMEDY)
    if data[:2] in UTF_16:
        raise BadInput(FIELD, f"{path} is not UTF-8 from byte 0 on", ENCODING_REMEDY)
    if not START.match(data):
        raise BadInput(FIELD, f"{path} is no JSON list", REMEDY)
    return data


def _parsed(path: Path, data: mmap.mmap, start: int, end: int) -> dict[str, Any]:
    content = data[start:end]
    entry: dict[str, Any]
    with contextlib.suppress(orjson.JSONDecodeError):  # it refuses half a surrogate pair, and json says where it erred
        entry = orjson.loads(content)
        return entry
    try:
        entry = json.loads(content.decode())
    except UnicodeDecodeError as error:
        raise BadInput(FIELD, f"{path} is not UTF-8 at byte {start + error.start}", ENCODING_REMEDY) from error
    except (ValueError, RecursionError) as error:
        raise BadInput(FIELD, f"{path} is not JSON in the object at byte {start} ({error})", REMEDY) from error
    return entry


def _first_turns(entry: dict[str, Any], number: int) -> Conversation | None:
    turns = _turns(entry)[:2]
    if len(turns) < 2 or not all(isinstance(turn, dict) for turn in turns):
        return None
    prompt, answer = (turn.get("value") for turn in turns)
    if not (_is_text(prompt) and _is_text(answer)):
        return None
    return Conversation(str(entry.get("id", number)), prompt, answer, (turns[0].get("from"), turns[1].get("from")))


def _require_nothing_after(path: Path, data: mmap.mmap, end: int | None) -> None:
    if end is not None and data[end:].strip(SPACE):
        raise BadInput(FIELD, f"{path} has more after its list, from byte {end}", REMEDY)


def _warn_of_cut(path: Path, whole: int) -> None:
    logger.warning("%s: the file is cut off; its %d whole conversations are used", path, whole)


def _turns(entry: dict[str, Any]) -> list[Any]:
    turns = entry.get(KEY)
    return turns if isinstance(turns, list) else []


def _is_text(value: object) -> TypeGuard[str]:
    """Whether it is a string that UTF-8 can carry, which one with half a surrogate pair is not."""
    return isinstance(value, str) and not SURROGATE.search(value)
