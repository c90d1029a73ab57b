"""Conversations: a ShareGPT file, of which only what is asked for is read."""

import contextlib
import itertools
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

from loadgen.datasets import structure
from loadgen.datasets.index import Identity, Index
from loadgen.datasets.mapped import FIELD, mapped
from loadgen.datasets.structure import Structure
from loadgen.errors import BadInput

ENCODING_REMEDY = "save it as UTF-8"
REMEDY = "give the ShareGPT file, a JSON list of conversations"
SPACE = b" \t\r\n"
START = re.compile(rb"(\xef\xbb\xbf)?[ \t\r\n]*\[")  # a byte order mark may come first
UTF_16 = (b"\xff\xfe", b"\xfe\xff")  # its byte order marks, UTF-32's first bytes as well
KEY = re.compile(rb'"conversations"[ \t\r\n]*:[ \t\r\n]*\[\Z')
KEY_BYTES = 64  # the key with any usual white space after it
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
        self._data, identity = _mapped(path)
        self.size = len(self._data)
        index = identity.kept()
        if index is None:
            index = self._made()
            identity.keep(index)
        self._index = index
        self.whole, self.cut_off = len(self._index.ends), self._index.cut_off
        self._numbers = self._index.numbers.tolist()
        if not self._numbers:
            raise BadInput(FIELD, f"{path} holds no whole conversation of two turns", REMEDY)
        if self.cut_off:
            _warn_of_cut(path, self.whole)

    def __len__(self) -> int:
        return len(self._numbers)

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
        start, end = int(self._index.starts[number]), int(self._index.ends[number])
        return _parsed(self.path, self._data, start, end)

    def _made(self) -> Index:
        found = Structure.of(self._data)
        _require_nothing_after(self.path, self._data, found.end)
        numbers = np.array(self._of_two_turns(found), dtype=np.int64)
        return Index(found.starts, found.ends, numbers, cut_off=found.end is None)

    def _of_two_turns(self, structure: Structure) -> list[int]:
        """Return the numbers of the conversations with two turns or more.

        Where all that an object holds is one list of objects under the key `conversations`, its turns have been counted
        already; any other is parsed.
        """
        starts, ends = structure.starts, structure.ends
        first = np.searchsorted(structure.children, starts)
        alone = np.searchsorted(structure.children, ends) - first == 1
        brackets = np.append(structure.children, 0)[first]
        inner = structure.grandchildren

        def parsed(number: int) -> dict[str, Any]:
            return _parsed(self.path, self._data, int(starts[number]), int(ends[number]))

        turns = np.searchsorted(inner, ends) - np.searchsorted(inner, starts)
        return [
            number
            for number, (only, bracket, count) in enumerate(
                zip(alone.tolist(), brackets.tolist(), turns.tolist(), strict=True)
            )
            if (count if only and self._is_list_of_turns(bracket) else len(_turns(parsed(number)))) >= 2
        ]

    def _is_list_of_turns(self, bracket: int) -> bool:
        return KEY.search(self._data, max(0, bracket - KEY_BYTES), bracket + 1) is not None


class ConversationsInOrder:
    """The conversations of a ShareGPT file one after the other, of which no more is looked at than is asked for.

    Attributes:
        path: The file.
        size: Its bytes.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._data, _ = _mapped(path)
        self.size = len(self._data)

    def __iter__(self) -> Iterator[Conversation]:
        """Yield those whose first two turns have text that can be sent.

        Raises:
            BadInput: The file is not JSON as far as it has been read.
        """
        walk = structure.objects(self._data)
        for number in itertools.count():
            try:
                start, end = next(walk)
            except StopIteration as stop:
                _require_nothing_after(self.path, self._data, stop.value)
                if stop.value is None:
                    _warn_of_cut(self.path, number)
                return
            found = _first_turns(_parsed(self.path, self._data, start, end), number)
            if found is not None:
                yield found


def _mapped(path: Path) -> tuple[mmap.mmap, Identity]:
    """Map a file into memory for reading; refuse what does not begin as a JSON list."""
    data, about = mapped(path, REMEDY)
    if data[:2] in UTF_16:
        raise BadInput(FIELD, f"{path} is not UTF-8 from byte 0 on", ENCODING_REMEDY)
    if not START.match(data):
        raise BadInput(FIELD, f"{path} is no JSON list", REMEDY)
    return data, Identity.of(path, about)


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
    turns = entry.get("conversations")
    return turns if isinstance(turns, list) else []


def _is_text(value: object) -> TypeGuard[str]:
    """Whether it is a string that UTF-8 can carry, which one with half a surrogate pair is not."""
    return isinstance(value, str) and not SURROGATE.search(value)
