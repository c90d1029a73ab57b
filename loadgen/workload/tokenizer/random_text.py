"""`RandomText`: texts of random words, each a function of a seed and a row number alone.

`BlockTexts` makes texts that begin with blocks of such words; equal blocks are equal texts.
"""

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from msgspec import Struct
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
CACHED_TOKENS = 1 << 23  # tokens of blocks whose texts are in memory: about 50 MB


class Prefix(NamedTuple):
    """A text that a prompt begins with.

    Attributes:
        text: The text.
        tokens: Its tokens, without special ones.
    """

    text: str
    tokens: int


NO_PREFIX = Prefix("", 0)


class RandomText(Struct, frozen=True, dict=True):
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
        """2**16 phrases of PHRASE words, chosen by 16 bits each: several times faster than single
        words.

        They are drawn for the first text: most data sets are created again once the server is
        known, before they make any.
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
            added_tokens: Tokens that `measure` counts in addition: special tokens and those of the
                chat template.
        """
        before = prefixes or [NO_PREFIX] * len(lengths)
        if self.words.additive and measure is None:
            drawn_texts = self._draw(rows, lengths)
            return [
                f"{prefix.text} {text}" if prefix.tokens else text
                for prefix, text in zip(before, drawn_texts, strict=True)
            ]
        drawn = self._draw(rows, [2 * length + SPARE_WORDS for length in lengths])
        spare = [
            prefix.text.split() + drawn_texts.split()
            for prefix, drawn_texts in zip(before, drawn, strict=True)
        ]
        added = added_tokens if measure else 0
        targets = [
            prefix.tokens + added + drawn_texts
            for prefix, drawn_texts in zip(before, lengths, strict=True)
        ]
        return fit_texts(spare, targets, self.tokenizer, measure)

    def probes(self) -> list[str]:
        """Return some words, as prompts begin and end with them."""
        return list(self.words.items[:MIN_WORDS])

    def adds_up(self, template_counts: Sequence[int]) -> bool:
        """Return whether the server's count of any text is its tokens plus a constant number."""
        return len(template_counts) == 1 and (self.words.additive or template_counts[0] == 0)

    def _draw(self, rows: NDArray[np.uint64], lengths: Sequence[int]) -> Iterator[str]:
        """Draw the first `lengths` words of each row. The words of a row do not depend on their
        number.

        Each row has a 64-bit key, and its numbers are a splitmix64 sequence that starts there. The
        first number gives 4 words, every other one 4 phrases.
        """
        numbers = 1 + np.maximum(-(-(np.array(lengths) - 4) // (4 * PHRASE)), 0)
        ends = np.cumsum(numbers)
        starts = ends - numbers
        step = np.arange(1, ends[-1] + 1) - np.repeat(starts, numbers)
        base = np.random.SeedSequence([self.seed, WORDS]).generate_state(1, np.uint64)
        keys = _splitmix64(rows * GOLDEN + base)
        drawn = (
            _splitmix64(np.repeat(keys, numbers) + step.astype(np.uint64) * GOLDEN)
            .view(np.uint16)
            .reshape(-1, 4)
        )
        pieces = self.phrases.take(drawn)
        pieces[starts] = self._items.take(drawn[starts] & np.uint16(len(self._items) - 1))
        flat = pieces.ravel().tolist()
        for start, length in zip((4 * starts).tolist(), lengths, strict=True):
            whole, rest = divmod(max(length - 4, 0), PHRASE)
            words = flat[start : start + min(length, 4) + whole]
            if rest:
                words += flat[start + 4 + whole].split(" ")[:rest]
            yield " ".join(words)


class Phrases:
    """Phrases of words, each joined when it is first used: all of them take 0.05 s, and a short run
    needs few.

    Args:
        words: The words, shape (words,).
        drawn: The numbers of the words of each phrase, shape (phrases, words).
    """

    def __init__(self, words: NDArray[np.object_], drawn: NDArray[np.int64]) -> None:
        self._words, self._drawn = words, drawn
        self._joined, self._is_joined = (
            np.full(len(drawn), None, dtype=object),
            np.zeros(len(drawn), dtype=np.bool_),
        )

    def take(self, numbers: NDArray[np.uint16]) -> NDArray[np.object_]:
        """Return the phrases of these numbers, in the same shape."""
        is_wanted = np.zeros_like(self._is_joined)
        is_wanted[numbers.ravel()] = True
        fresh = np.flatnonzero(is_wanted & ~self._is_joined)
        if len(fresh):
            words = self._words.take(self._drawn[fresh]).tolist()
            self._joined[fresh] = [" ".join(phrase) for phrase in words]
            self._is_joined[fresh] = True
        return self._joined.take(numbers)


class BlockTexts:
    """Makes texts of blocks of random words, exact to the token.

    A block is a row of random words (`RandomText`): its words do not depend on how many of them a
    prompt uses, nor on what comes before them. The blocks that were used last stay in memory,
    because later prompts begin with them.

    Args:
        drawing: Draws the words.
    """

    def __init__(self, drawing: RandomText) -> None:
        self._drawing = drawing
        self._texts = dict[tuple[int, int], str]()  # by row and tokens
        self._tokens = 0  # of those together

    def text(self, rows: Sequence[int], sizes: Sequence[int], tokens: int, rest: int) -> str:
        """Make a text: the blocks in order, the last one cut at the end of the text, or else words
        of its own.

        Args:
            rows: The row of each block.
            sizes: The tokens of each block.
            tokens: The tokens of the text, without special tokens, at least 1.
            rest: The row of the words after the blocks.
        """
        whole, before = 0, 0  # blocks with words after them, and their tokens
        while whole < len(rows) and before + sizes[whole] < tokens:
            before += sizes[whole]
            whole += 1
        last = rows[whole] if whole < len(rows) else rest
        prefix = self._blocks(list(zip(rows[:whole], sizes, strict=False)))
        (text,) = self._drawing.texts(
            np.array([last], dtype=np.uint64), [tokens - before], [Prefix(prefix, before)]
        )
        return text

    def _blocks(self, blocks: list[tuple[int, int]]) -> str:
        missing = [block for block in dict.fromkeys(blocks) if block not in self._texts]
        if missing:
            rows, sizes = zip(*missing, strict=True)
            self._texts.update(
                zip(missing, self._drawing.texts(np.array(rows, np.uint64), sizes), strict=True)
            )
            self._tokens += sum(sizes)
        for block in blocks:
            self._texts[block] = self._texts.pop(block)  # the one that was used last is the last
        text = " ".join(self._texts[block] for block in blocks)
        while self._tokens > CACHED_TOKENS:
            oldest = next(iter(self._texts))
            del self._texts[oldest]
            self._tokens -= oldest[1]
        return text


def prefix_rows(numbers: Sequence[int]) -> NDArray[np.uint64]:
    """Return the rows of the prefixes of these numbers."""
    return np.uint64(LAST_ROW) - np.array(numbers, dtype=np.uint64)


def generator(seed: int, purpose: int) -> np.random.Generator:
    """Create the generator of one random stream of a seed."""
    return np.random.default_rng([seed, purpose])


def check_blocks(blocks: int, block_tokens: int, input_tokens: int) -> None:
    """Check that so many blocks, the last of which may be cut, fit into a prompt.

    Raises:
        ValueError: With the reason.
    """
    if blocks > math.ceil(input_tokens / block_tokens):
        raise ValueError(
            f"{blocks} blocks of {block_tokens} tokens are more than its {input_tokens} input "
            "tokens"
        )


def _splitmix64(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble 64-bit numbers in place by splitmix64's finalizer (Steele, Lea, Flood, 2014;
    Stafford's variant 13).
    """
    numbers ^= numbers >> np.uint64(30)
    numbers *= np.uint64(0xBF58476D1CE4E5B9)
    numbers ^= numbers >> np.uint64(27)
    numbers *= np.uint64(0x94D049BB133111EB)
    numbers ^= numbers >> np.uint64(31)
    return numbers
