"""Drawing: texts of random words, each a function of a seed and a row number alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from loadgen.errors import BadInput
from loadgen.workload.tokenizer.exact_text import FEWEST, Count, Words, fitted
from loadgen.workload.tokenizer.tokenizer import Tokenizer

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
BLOCK_WORDS = 1 << 18  # words of the prompts that a data set makes at a time
SPARE_WORDS = 16  # drawn beside twice a length, where words may join into one token
PHRASE = 4  # words of a phrase
INPUT_LENGTHS, OUTPUT_LENGTHS, WORDS, ORDER, PHRASES = range(5)  # what a seed draws, each from a stream of its own
LAST_ROW = 2**64 - 1  # prefixes are rows from here on downwards, prompts from 0 on upwards


@dataclass(frozen=True)
class Drawing:
    """The words of a tokenizer, drawn by a seed.

    Attributes:
        tokenizer: What counts the tokens.
        words: Its words.
        seed: Draws them.
    """

    tokenizer: Tokenizer
    words: Words
    seed: int

    @cached_property
    def phrases(self) -> NDArray[np.object_]:
        """2**16 groups of PHRASE words, of which 16 bits choose one: texts come several times faster from these.

        They take 0.15 s, so they are drawn with the first text: most data sets are made anew once more is known of
        the server, before they make any.
        """
        drawn = generator(self.seed, PHRASES).integers(0, len(self.words.items), (1 << 16, PHRASE))
        joined = [" ".join(phrase) for phrase in self.words.items.take(drawn).tolist()]
        return np.array(joined, dtype=object)

    def prefixes(self, tokens: int, numbers: Sequence[int] = (0,)) -> list[str]:
        """Make the prefixes of these numbers, each of so many tokens, "" for none."""
        return self.texts(prefix_rows(numbers), [tokens] * len(numbers))

    def texts(
        self,
        rows: NDArray[np.uint64],
        lengths: Sequence[int],
        prefixes: Sequence[str] = (),
        prefix_tokens: int = 0,
        *,
        measure: Count | None = None,
        beside: int = 0,
    ) -> list[str]:
        """Make the text of each row: its prefix, then as many tokens of its own as `lengths` says.

        Args:
            rows: Their numbers.
            lengths: Tokens of each beside its prefix.
            prefixes: What each begins with; nothing for no prefixes at all.
            prefix_tokens: Tokens of each prefix.
            measure: What counts a whole text, prefix included; None: its tokens alone.
            beside: Tokens that `measure` counts of each beyond those asked for.
        """
        if self.words.additive and measure is None:
            own = self._draw(rows, lengths)
            if not prefix_tokens:
                return list(own)
            return [f"{prefix} {text}" for prefix, text in zip(prefixes, own, strict=True)]
        drawn = self._draw(rows, [2 * length + SPARE_WORDS for length in lengths])
        before = [prefix.split() for prefix in prefixes] if prefix_tokens else [[] for _ in lengths]
        spare = [prefix + own.split() for prefix, own in zip(before, drawn, strict=True)]
        around = prefix_tokens + (beside if measure else 0)
        return fitted(spare, [around + own for own in lengths], self.tokenizer, measure)

    def probes(self) -> list[str]:
        """Some words: what prompts begin and end with."""
        words: list[str] = self.words.items[:FEWEST].tolist()
        return words

    def adds_up(self, overheads: Sequence[int]) -> bool:
        """Whether what a server counts of a text is its tokens and one number, out of those found by `probes`."""
        return len(overheads) == 1 and (self.words.additive or overheads[0] == 0)

    def require_countable(self, overheads: Sequence[int], measure: Count | None) -> None:
        """Refuse to make texts to a server's measure where tokens do not add up and nothing counts them.

        Raises:
            BadInput: It is so.
        """
        if not self.adds_up(overheads) and measure is None:
            problem = f"{self.tokenizer.name} joins words into tokens, so that a template's cannot be taken off"
            raise BadInput("--input-len-counts", problem, "name the folder of a tokenizer with its template")

    def _draw(self, rows: NDArray[np.uint64], lengths: Sequence[int]) -> Iterator[str]:
        """Draw the first `lengths` words of each row; a row's words do not depend on how many are drawn.

        Each row has a 64-bit key, and its numbers are a splitmix64 sequence from there on. The first number is 4 words,
        every other is 4 phrases.
        """
        numbers = 1 + np.maximum(-(-(np.array(lengths) - 4) // (4 * PHRASE)), 0)
        ends = np.cumsum(numbers)
        starts = ends - numbers
        step = np.arange(1, ends[-1] + 1) - np.repeat(starts, numbers)
        base = np.random.SeedSequence([self.seed, WORDS]).generate_state(1, np.uint64)
        keys = _mixed(rows * GOLDEN + base)
        drawn = _mixed(np.repeat(keys, numbers) + step.astype(np.uint64) * GOLDEN).view(np.uint16).reshape(-1, 4)
        pieces = self.phrases.take(drawn)
        pieces[starts] = self.words.items.take(drawn[starts] & np.uint16(len(self.words.items) - 1))
        flat = pieces.ravel().tolist()
        for start, length in zip((4 * starts).tolist(), lengths, strict=True):
            whole, rest = divmod(max(length - 4, 0), PHRASE)
            own = flat[start : start + min(length, 4) + whole]
            if rest:
                own += flat[start + 4 + whole].split(" ")[:rest]
            yield " ".join(own)


def prefix_rows(numbers: Sequence[int]) -> NDArray[np.uint64]:
    """The rows that are the prefixes of these numbers."""
    return np.uint64(LAST_ROW) - np.array(numbers, dtype=np.uint64)


def generator(seed: int, purpose: int) -> np.random.Generator:
    """A generator for one of the things that a seed draws."""
    return np.random.default_rng([seed, purpose])


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble 64-bit numbers in place by splitmix64's finalizer (Steele, Lea, Flood, 2014; Stafford's variant 13)."""
    numbers ^= numbers >> np.uint64(30)
    numbers *= np.uint64(0xBF58476D1CE4E5B9)
    numbers ^= numbers >> np.uint64(27)
    numbers *= np.uint64(0x94D049BB133111EB)
    numbers ^= numbers >> np.uint64(31)
    return numbers
