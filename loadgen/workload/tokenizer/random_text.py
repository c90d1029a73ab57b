"""`RandomText`: texts of random words, each a function of a seed and a row number alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from loadgen.config.settings import RunSettings, seed_of
from loadgen.workload.tokenizer.exact_text import MIN_WORDS, Count, Words, fit_texts, words_of
from loadgen.workload.tokenizer.tokenizer import Tokenizer, tokenizer_of

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
BLOCK_WORDS = 1 << 18  # words of the prompts made at a time
SPARE_WORDS = 16  # drawn in addition to twice a length, where words may join into one token
PHRASE = 4  # words of a phrase
INPUT_LENGTHS, OUTPUT_LENGTHS, WORDS, ORDER, PHRASES = range(5)  # separate random streams of a seed
LAST_ROW = 2**64 - 1  # prefixes are rows downwards from here, prompts upwards from 0


class Prefix(NamedTuple):
    """A text that a prompt begins with.

    Attributes:
        text: The text.
        tokens: Its tokens, without special ones.
    """

    text: str
    tokens: int


NO_PREFIX = Prefix("", 0)


@dataclass(frozen=True)
class RandomText:
    """Draws texts of the words of a tokenizer.

    Attributes:
        tokenizer: Counts the tokens.
        words: The words of the tokenizer.
        seed: The seed of the texts.
    """

    tokenizer: Tokenizer
    words: Words
    seed: int

    @classmethod
    def of(cls, settings: RunSettings) -> Self:
        """Create it from `--tokenizer` and the seed of the prompts.

        Raises:
            BadInput: The tokenizer cannot be loaded, or has too few words.
        """
        tokenizer = tokenizer_of(settings)
        return cls(tokenizer, words_of(tokenizer), seed_of(settings, "prompts"))

    @cached_property
    def phrases(self) -> "Phrases":
        """2**16 phrases of PHRASE words, chosen by 16 bits each: several times faster than single words.

        They are drawn for the first text: most data sets are created again once the server is known, before they make
        any.
        """
        drawn = generator(self.seed, PHRASES).integers(0, len(self.words.items), (1 << 16, PHRASE))
        return Phrases(self._items, drawn)

    @cached_property
    def _items(self) -> NDArray[np.object_]:
        return np.array(self.words.items, dtype=object)

    def prefix(self, tokens: int) -> Prefix:
        """Make the prefix with number 0."""
        (text,) = self.texts(prefix_rows([0]), [tokens])
        return Prefix(text, tokens)

    def texts(
        self,
        rows: NDArray[np.uint64],
        lengths: Sequence[int],
        prefixes: Sequence[Prefix] = (),
        *,
        measure: Count | None = None,
        added_tokens: int = 0,
    ) -> list[str]:
        """Make the text of each row: its prefix, then its own words.

        Args:
            rows: The row numbers, uint64, shape (n,).
            lengths: The tokens of each text without its prefix.
            prefixes: The prefix of each text; empty for no prefixes.
            measure: Counts a whole text with its prefix; None: the tokenizer does.
            added_tokens: Tokens that `measure` counts in addition: special tokens and those of the chat template.
        """
        before = prefixes or [NO_PREFIX] * len(lengths)
        if self.words.additive and measure is None:
            own = self._draw(rows, lengths)
            return [
                f"{prefix.text} {text}" if prefix.tokens else text for prefix, text in zip(before, own, strict=True)
            ]
        drawn = self._draw(rows, [2 * length + SPARE_WORDS for length in lengths])
        spare = [prefix.text.split() + own.split() for prefix, own in zip(before, drawn, strict=True)]
        added = added_tokens if measure else 0
        wanted = [prefix.tokens + added + own for prefix, own in zip(before, lengths, strict=True)]
        return fit_texts(spare, wanted, self.tokenizer, measure)

    def probes(self) -> list[str]:
        """Return some words, as prompts begin and end with them."""
        return list(self.words.items[:MIN_WORDS])

    def adds_up(self, template_counts: Sequence[int]) -> bool:
        """Return whether the server's count of any text is its tokens plus a constant number."""
        return len(template_counts) == 1 and (self.words.additive or template_counts[0] == 0)

    def _draw(self, rows: NDArray[np.uint64], lengths: Sequence[int]) -> Iterator[str]:
        """Draw the first `lengths` words of each row. The words of a row do not depend on their number.

        Each row has a 64-bit key, and its numbers are a splitmix64 sequence that starts there. The first number gives 4
        words, every other one 4 phrases.
        """
        numbers = 1 + np.maximum(-(-(np.array(lengths) - 4) // (4 * PHRASE)), 0)
        ends = np.cumsum(numbers)
        starts = ends - numbers
        step = np.arange(1, ends[-1] + 1) - np.repeat(starts, numbers)
        base = np.random.SeedSequence([self.seed, WORDS]).generate_state(1, np.uint64)
        keys = _splitmix64(rows * GOLDEN + base)
        drawn = _splitmix64(np.repeat(keys, numbers) + step.astype(np.uint64) * GOLDEN).view(np.uint16).reshape(-1, 4)
        pieces = self.phrases.take(drawn)
        pieces[starts] = self._items.take(drawn[starts] & np.uint16(len(self._items) - 1))
        flat = pieces.ravel().tolist()
        for start, length in zip((4 * starts).tolist(), lengths, strict=True):
            whole, rest = divmod(max(length - 4, 0), PHRASE)
            own = flat[start : start + min(length, 4) + whole]
            if rest:
                own += flat[start + 4 + whole].split(" ")[:rest]
            yield " ".join(own)


class Phrases:
    """Phrases of words, each joined when it is first used: all of them take 0.05 s, and a short run needs few.

    Args:
        words: The words, shape (words,).
        drawn: The numbers of the words of each phrase, shape (phrases, words).
    """

    def __init__(self, words: NDArray[np.object_], drawn: NDArray[np.int64]) -> None:
        self._words, self._drawn = words, drawn
        self._joined, self._is_joined = np.full(len(drawn), None, dtype=object), np.zeros(len(drawn), dtype=np.bool_)

    def take(self, numbers: NDArray[np.uint16]) -> NDArray[np.object_]:
        """Return the phrases of these numbers, in the same shape."""
        is_wanted = np.zeros_like(self._is_joined)
        is_wanted[numbers.ravel()] = True
        fresh = np.flatnonzero(is_wanted & ~self._is_joined)
        if len(fresh):
            own = self._words.take(self._drawn[fresh]).tolist()
            self._joined[fresh] = [" ".join(phrase) for phrase in own]
            self._is_joined[fresh] = True
        return self._joined.take(numbers)


def prefix_rows(numbers: Sequence[int]) -> NDArray[np.uint64]:
    """Return the rows of the prefixes of these numbers."""
    return np.uint64(LAST_ROW) - np.array(numbers, dtype=np.uint64)


def generator(seed: int, purpose: int) -> np.random.Generator:
    """Create the generator of one random stream of a seed."""
    return np.random.default_rng([seed, purpose])


def _splitmix64(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble 64-bit numbers in place by splitmix64's finalizer (Steele, Lea, Flood, 2014; Stafford's variant 13)."""
    numbers ^= numbers >> np.uint64(30)
    numbers *= np.uint64(0xBF58476D1CE4E5B9)
    numbers ^= numbers >> np.uint64(27)
    numbers *= np.uint64(0x94D049BB133111EB)
    numbers ^= numbers >> np.uint64(31)
    return numbers
