"""The simulator's tokenizer: its vocabulary, token ids of a text, and the words of answers.

`python -m loadgen.engines.sim.tokenizer` writes tokenizer.json, which the library tokenizers reads;
a test compares it with the shipped file.
"""

import itertools
import json
import re
import string
from pathlib import Path
from typing import Any

import orjson

from loadgen.engines.sim.emit import Words

TOKENIZER = Path(__file__).with_name("tokenizer.json")
WORDS = 4096
UNKNOWN = "<unk>"
# Each match is one token whether the vocabulary has it or not, so that counting tokens needs no
# vocabulary.
PIECE = r" ?[A-Za-z]+| ?[0-9]{1,3}|[\s\S]"

ONSETS = (
    "b",
    "d",
    "f",
    "h",
    "j",
    "k",
    "l",
    "m",
    "n",
    "p",
    "r",
    "s",
    "t",
    "v",
    "z",
    "br",
    "dr",
    "pl",
    "st",
    "tr",
)
VOWELS = ("a", "e", "i", "o", "u", "ai", "au")
CODAS = ("", "", "", "l", "m", "n", "r")
SYLLABLES = (1, 2, 2, 2, 3, 3, 3, 4)


_PIECES = re.compile(PIECE)


def pieces(text: str) -> list[str]:
    """Return the pieces of `text`, each of which is a token."""
    return _PIECES.findall(text)


class SimTokenizer:
    """The shipped tokenizer.json; to count tokens only, `loadgen.engines.sim.emit.count_tokens` is
    faster.

    Attributes:
        words: The words of which answers are made.
    """

    def __init__(self) -> None:
        model: dict[str, Any] = orjson.loads(TOKENIZER.read_bytes())["model"]
        self._ids: dict[str, int] = model["vocab"]
        # A word is a token that may follow a space; single characters and numbers are not words.
        self.words = Words(
            token[1:]
            for token in self._ids
            if len(token) > 2 and token[1:].isalpha() and token[0] == " "
        )

    def encode(self, text: str) -> list[int]:
        """Return the token ids of `text`, as the library tokenizers does."""
        unknown = self._ids[UNKNOWN]
        return [self._ids.get(piece, unknown) for piece in pieces(text)]


def words() -> list[str]:
    """Return the `WORDS` words, each 2-14 ASCII lower-case letters; they are always the same."""
    state = 1

    def pick(choices: tuple[str, ...] | tuple[int, ...]) -> str | int:
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        return choices[(state >> 33) % len(choices)]

    unique: dict[str, None] = {}
    while len(unique) < WORDS:
        word = "".join(
            f"{pick(ONSETS)}{pick(VOWELS)}{pick(CODAS)}" for _ in range(int(pick(SYLLABLES)))
        )
        if len(word) <= 14:
            unique[word] = None
    return list(unique)


def vocabulary() -> dict[str, int]:
    """Return every token with its id: the unknown token, characters, numbers and words, each
    also after a space.
    """
    numbers = [
        "".join(digits)
        for length in (1, 2, 3)
        for digits in itertools.product(string.digits, repeat=length)
    ]
    runs = words() + numbers
    characters = [character for character in string.printable if not character.isdigit()]
    tokens = [UNKNOWN, *characters, *runs, *(" " + run for run in runs)]
    return {token: number for number, token in enumerate(dict.fromkeys(tokens))}


def description() -> dict[str, object]:
    """Return the tokenizer in the format of Hugging Face's library tokenizers."""
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Split",
            "pattern": {"Regex": PIECE},
            "behavior": "Isolated",
            "invert": False,
        },
        "post_processor": None,
        "decoder": {"type": "Fuse"},
        "model": {"type": "WordLevel", "vocab": vocabulary(), "unk_token": UNKNOWN},
    }


def text() -> str:
    """Return the contents of tokenizer.json."""
    return json.dumps(description(), separators=(",", ":")) + "\n"


if __name__ == "__main__":
    TOKENIZER.write_text(text(), encoding="utf-8")
