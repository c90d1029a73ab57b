"""The shipped tokenizer, as far as the server needs it."""

import re
from pathlib import Path
from typing import Any

import orjson

from loadgen.engines.sim.emit import Words
from loadgen.engines.sim.vocabulary import PIECE, TOKENIZER, UNKNOWN

_PIECES = re.compile(PIECE)


def pieces(text: str) -> list[str]:
    """Return the pieces of `text`, each of which is a token."""
    return _PIECES.findall(text)


class SimTokenizer:
    """Words to answer with, and token ids; counting alone is `loadgen.engines.sim.emit.count_tokens`.

    Attributes:
        path: Of tokenizer.json.
        words: The table that answers are drawn from.
    """

    def __init__(self, path: Path = TOKENIZER) -> None:
        self.path = path
        model: dict[str, Any] = orjson.loads(path.read_bytes())["model"]
        self._ids: dict[str, int] = model["vocab"]
        # A word is what may stand behind a space; single characters and numbers are not.
        self.words = Words(
            token[1:] for token in self._ids if len(token) > 2 and token[1:].isalpha() and token[0] == " "
        )

    def encode(self, text: str) -> list[int]:
        """Return the token ids of `text`, as `tokenizers` would."""
        unknown = self._ids[UNKNOWN]
        return [self._ids.get(piece, unknown) for piece in pieces(text)]
