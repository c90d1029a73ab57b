"""Conversations: a ShareGPT file, of which only what is asked for is read."""

import json
import logging
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from loadgen.datasets.mapped import FIELD, mapped
from loadgen.datasets.structure import Structure
from loadgen.errors import BadInput

REMEDY = "give the ShareGPT file, a JSON list of conversations"
SPACE = b" \t\r\n"
START = re.compile(rb"(\xef\xbb\xbf)?[ \t\r\n]*\[")  # a byte order mark may come first
KEY = re.compile(rb'"conversations"[ \t\r\n]*:[ \t\r\n]*\[\Z')
KEY_BYTES = 64  # the key with any usual white space after it
SURROGATE = re.compile("[\ud800-\udfff]")

logger = logging.getLogger("loadgen")


@dataclass(frozen=True, slots=True)
class Conversation:
    """The first two turns of a conversation, whoever speaks.

    Attributes:
        source: Its id, or its number in the file, counted from 0.
        prompt: The first turn.
        answer: The second turn.
    """

    source: str
    prompt: str
    answer: str


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
        self._data = mapped(path, REMEDY)
        if not START.match(self._data):
            raise BadInput(FIELD, f"{path} is no JSON list", REMEDY)
        self.size = len(self._data)
        structure = Structure.of(self._data)
        self.whole, self.cut_off = len(structure.ends), structure.end is None
        if structure.end is not None and self._data[structure.end :].strip(SPACE):
            raise BadInput(FIELD, f"{path} has more after its list, from byte {structure.end}", REMEDY)
        self._starts, self._ends = structure.starts.tolist(), structure.ends.tolist()
        self._numbers = self._of_two_turns(structure)
        if not self._numbers:
            raise BadInput(FIELD, f"{path} holds no whole conversation of two turns", REMEDY)
        if self.cut_off:
            logger.warning("%s: the file is cut off; its %d whole conversations are used", path, self.whole)

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, index: int) -> Conversation | None:
        """Parse one conversation; None where its first two turns have no text that can be sent.

        Raises:
            BadInput: It is not JSON.
        """
        number = self._numbers[index]
        entry = self._parsed(number)
        texts = [turn.get("value") if isinstance(turn, dict) else None for turn in _turns(entry)[:2]]
        prompt, answer = texts if len(texts) == 2 else (None, None)
        if not (_is_text(prompt) and _is_text(answer)):
            return None
        return Conversation(str(entry.get("id", number)), prompt, answer)

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
        turns = np.searchsorted(inner, ends) - np.searchsorted(inner, starts)
        return [
            number
            for number, (only, bracket, count) in enumerate(
                zip(alone.tolist(), brackets.tolist(), turns.tolist(), strict=True)
            )
            if (count if only and self._is_list_of_turns(bracket) else len(_turns(self._parsed(number)))) >= 2
        ]

    def _is_list_of_turns(self, bracket: int) -> bool:
        return KEY.search(self._data, max(0, bracket - KEY_BYTES), bracket + 1) is not None

    def _parsed(self, number: int) -> dict[str, Any]:
        start = self._starts[number]
        try:
            entry: dict[str, Any] = json.loads(self._data[start : self._ends[number]])
        except ValueError as error:
            raise BadInput(FIELD, f"{self.path} is not JSON in the object at byte {start} ({error})", REMEDY) from error
        return entry


def _turns(entry: dict[str, Any]) -> list[Any]:
    turns = entry.get("conversations")
    return turns if isinstance(turns, list) else []


def _is_text(value: object) -> TypeGuard[str]:
    """Whether it is a string that UTF-8 can carry, which one with half a surrogate pair is not."""
    return isinstance(value, str) and not SURROGATE.search(value)
