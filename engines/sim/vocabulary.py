"""Vocabulary of the simulator's tokenizer, and the file tokenizer.json that the library tokenizers reads.

`python -m loadgen.engines.sim.vocabulary` writes tokenizer.json again; a test compares it with the shipped file.
"""

import itertools
import json
import string
from pathlib import Path

TOKENIZER = Path(__file__).with_name("tokenizer.json")
WORDS = 4096
UNKNOWN = "<unk>"
# Each match is one token whether the vocabulary has it or not, so that counting tokens needs no vocabulary.
PIECE = r" ?[A-Za-z]+| ?[0-9]{1,3}|[\s\S]"

ONSETS = ("b", "d", "f", "h", "j", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z", "br", "dr", "pl", "st", "tr")
VOWELS = ("a", "e", "i", "o", "u", "ai", "au")
CODAS = ("", "", "", "l", "m", "n", "r")
SYLLABLES = (1, 2, 2, 2, 3, 3, 3, 4)


def words() -> list[str]:
    """Return the `WORDS` words, each 2-14 ASCII lower-case letters; they are always the same."""
    state = 1

    def pick(choices: tuple[str, ...] | tuple[int, ...]) -> str | int:
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        return choices[(state >> 33) % len(choices)]

    found: dict[str, None] = {}
    while len(found) < WORDS:
        word = "".join(f"{pick(ONSETS)}{pick(VOWELS)}{pick(CODAS)}" for _ in range(int(pick(SYLLABLES))))
        if len(word) <= 14:
            found[word] = None
    return list(found)


def vocabulary() -> dict[str, int]:
    """Return every token with its id: the unknown token, characters, numbers and words, each also after a space."""
    numbers = ["".join(digits) for length in (1, 2, 3) for digits in itertools.product(string.digits, repeat=length)]
    runs = words() + numbers
    characters = [character for character in string.printable if not character.isdigit()]
    tokens = [UNKNOWN, *characters, *runs, *(" " + run for run in runs)]
    return {token: number for number, token in enumerate(dict.fromkeys(tokens))}


def tokenizer() -> dict[str, object]:
    """Return the tokenizer in the format of Hugging Face's library tokenizers."""
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "Split", "pattern": {"Regex": PIECE}, "behavior": "Isolated", "invert": False},
        "post_processor": None,
        "decoder": {"type": "Fuse"},
        "model": {"type": "WordLevel", "vocab": vocabulary(), "unk_token": UNKNOWN},
    }


def text() -> str:
    """Return the contents of tokenizer.json."""
    return json.dumps(tokenizer(), separators=(",", ":")) + "\n"


if __name__ == "__main__":
    TOKENIZER.write_text(text(), encoding="utf-8")
