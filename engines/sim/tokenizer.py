"""The simulator's tokenizer: token ids of a text, and the words of answers."""

import re
from typing import Any

import orjson

from loadgen.engines.sim.emit import Words
from loadgen.engines.sim.vocabulary import PIECE, TOKENIZER, UNKNOWN

_PIECES = re.compile(PIECE)


def pieces(text: str) -> list[str]:
    """Return the pieces of `text`, each of which is a token."""
    return _PIECES.findall(text)


class SimTokenizer:
    """The shipped tokenizer.json; to count tokens only, `loadgen.engines.sim.emit.count_tokens` is faster.

    Attributes:
        words: The words of which answers are made.
    """

    def __init__(self) -> None:
        model: dict[str, Any] = orjson.loads(TOKENIZER.read_bytes())["model"]
        self._ids: dict[str, int] = model["vocab"]
        # A word is a token that may follow a space; single characters and numbers are not words.
        self.words = Words(
            token[1:] for token in self._ids if len(token) > 2 and token[1:].isalpha() and token[0] == " "
        )

    def encode(self, text: str) -> list[int]:
        """Return the token ids of `text`, as the library tokenizers does."""
        unknown = self._ids[UNKNOWN]
        return [self._ids.get(piece, unknown) for piece in pieces(text)]
