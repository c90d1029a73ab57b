"""Random prompts: words drawn by a seed, exact to the token."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from loadgen.datasets import tokenizer as tokenizers
from loadgen.datasets.lengths import Lengths, parse_ratios
from loadgen.datasets.tokenizer import Tokenizer
from loadgen.datasets.words import Words, fitted
from loadgen.errors import BadInput
from loadgen.prompts import Prompt
from loadgen.settings import RunSettings, seed_of

BLOCK_WORDS = 1 << 18  # words of the prompts made at a time
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
PREFIX_ROW = np.array([2**64 - 1], dtype=np.uint64)  # the row that the shared prefix is drawn as
SPARE_WORDS = 16  # drawn beside twice a length, where words may join into one token
PHRASE = 4  # words of a phrase
INPUT_LENGTHS, OUTPUT_LENGTHS, WORDS, ORDER, PHRASES = range(5)  # what a seed draws, each from a stream of its own


@dataclass(frozen=True, slots=True)
class RandomDataset:
    """Prompts of random words: `prefix_tokens` that all share, then `inputs` of its own.

    A prompt is the text of a row r: its words, its length and the answer's are functions of (`seed_prompts`, r) alone.
    `prompts(n)` sends rows 0 to n-1 in an order that `seed_order` draws for this n, so that the first k of them are not
    those of `prompts(k)`. Out of the usual 4096 words, two rows begin with the same 4 words about once in 2**48.

    Attributes:
        tokenizer: What counts the tokens.
        words: Its words.
        prefix_tokens: Tokens that every prompt begins with, 0 for none.
        inputs: Tokens of each prompt beside prefix and special tokens.
        outputs: Tokens wanted of each answer.
        seed_prompts: Draws words and lengths.
        seed_order: Draws the order.
        phrases: Groups of PHRASE words, drawn once: texts are put together from these, several times faster.
    """

    tokenizer: Tokenizer
    words: Words
    prefix_tokens: int
    inputs: Lengths
    outputs: Lengths
    seed_prompts: int
    seed_order: int
    phrases: NDArray[np.object_] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "phrases", _phrases(self.words, self.seed_prompts))

    @classmethod
    def from_settings(cls, settings: RunSettings) -> Self:
        """Make it of `--tokenizer`, the `--random-*` fields and the seeds; lengths mean what `vllm bench serve` means.

        A prompt has `random_prefix_len` and `random_input_len` tokens together, of which the special tokens that the
        tokenizer adds take their part.

        Raises:
            BadInput: A length or ratio is out of range, or the tokenizer cannot be had or has too few words.
        """
        if settings.random_prefix_len < 0:
            raise BadInput("--random-prefix-len", f"{settings.random_prefix_len} is no length", "give 0 tokens or more")
        input_ratio, output_ratio = parse_ratios(settings.random_range_ratio)
        outputs = Lengths.around("--random-output-len", settings.random_output_len, output_ratio)
        tokenizer = tokenizers.of_settings(settings)
        special = tokenizer.special_tokens
        inputs = Lengths.around("--random-input-len", settings.random_input_len, input_ratio, less=special)
        return cls(
            tokenizer=tokenizer,
            words=Words.of(tokenizer),
            prefix_tokens=settings.random_prefix_len,
            inputs=inputs,
            outputs=outputs,
            seed_prompts=seed_of(settings, "prompts"),
            seed_order=seed_of(settings, "order"),
        )

    def prompts(self, count: int) -> Iterator[Prompt]:
        """Yield `count` prompts, always the same ones in the same order; memory does not grow with their lengths."""
        order = _generator(self.seed_order, ORDER).permutation(count)
        own = self.inputs.draw(_generator(self.seed_prompts, INPUT_LENGTHS), count)
        outputs = self.outputs.draw(_generator(self.seed_prompts, OUTPUT_LENGTHS), count)
        around = self.prefix_tokens + self.tokenizer.special_tokens
        prefix = self._texts(PREFIX_ROW, [self.prefix_tokens])[0]
        block = max(1, BLOCK_WORDS // (self.prefix_tokens + self.inputs.high))
        for start in range(0, count, block):
            rows = order[start : start + block]
            lengths, wanted = own[rows].tolist(), outputs[rows].tolist()
            texts = self._texts(rows.astype(np.uint64), lengths, prefix)
            for row, text, length, output in zip(rows.tolist(), texts, lengths, wanted, strict=True):
                yield Prompt(text, around + length, output, f"random/{self.seed_prompts}/{row}")

    def provenance(self) -> dict[str, Any]:
        """Return the rule, its seeds and lengths in tokens, and the tokenizer's name and hash."""
        return {
            "name": "random",
            "rule": "exact words",
            "seed_prompts": self.seed_prompts,
            "seed_order": self.seed_order,
            "prefix_tokens": self.prefix_tokens,
            "special_tokens": self.tokenizer.special_tokens,
            "input_tokens": [self.inputs.low, self.inputs.high],
            "output_tokens": [self.outputs.low, self.outputs.high],
            "words": len(self.words.items),
            "tokenizer": self.tokenizer.name,
            "tokenizer_sha256": self.tokenizer.sha256,
        }

    def _texts(self, rows: NDArray[np.uint64], lengths: list[int], prefix: str = "") -> list[str]:
        """Make the text of each row: the prefix, then as many tokens of its own as `lengths` says."""
        if self.words.additive:
            lead = f"{prefix} " if prefix else ""
            return [lead + own for own in self._draw(rows, lengths)]
        drawn = self._draw(rows, [2 * length + SPARE_WORDS for length in lengths])
        before = self.prefix_tokens if prefix else 0
        spare = [prefix.split() + own.split() for own in drawn]
        return fitted(spare, [before + own for own in lengths], self.tokenizer)

    def _draw(self, rows: NDArray[np.uint64], lengths: list[int]) -> Iterator[str]:
        """Draw the first `lengths` words of each row; a row's words do not depend on how many are drawn.

        Each row has a 64-bit key, and its numbers are a splitmix64 sequence from there on. The first number is 4 words,
        every other is 4 phrases.
        """
        numbers = 1 + np.maximum(-(-(np.array(lengths) - 4) // (4 * PHRASE)), 0)
        ends = np.cumsum(numbers)
        starts = ends - numbers
        step = np.arange(1, ends[-1] + 1) - np.repeat(starts, numbers)
        base = np.random.SeedSequence([self.seed_prompts, WORDS]).generate_state(1, np.uint64)
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


def _phrases(words: Words, seed: int) -> NDArray[np.object_]:
    """Draw 2**16 phrases, so that 16 bits choose one."""
    drawn = _generator(seed, PHRASES).integers(0, len(words.items), (1 << 16, PHRASE))
    joined = [" ".join(phrase) for phrase in words.items.take(drawn).tolist()]
    return np.array(joined, dtype=object)


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble 64-bit numbers in place by splitmix64's finalizer (Steele, Lea, Flood, 2014; Stafford's variant 13)."""
    numbers ^= numbers >> np.uint64(30)
    numbers *= np.uint64(0xBF58476D1CE4E5B9)
    numbers ^= numbers >> np.uint64(27)
    numbers *= np.uint64(0x94D049BB133111EB)
    numbers ^= numbers >> np.uint64(31)
    return numbers


def _generator(seed: int, purpose: int) -> np.random.Generator:
    return np.random.default_rng([seed, purpose])
