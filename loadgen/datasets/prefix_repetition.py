"""Repeated prefixes: prompts that begin with one of a few long texts, as the requests of one service do."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from loadgen.datasets import tokenizer as tokenizers
from loadgen.datasets.drawing import BLOCK_WORDS, ORDER, Drawing, generator
from loadgen.datasets.lengths import Lengths
from loadgen.datasets.tokenizer import Tokenizer
from loadgen.datasets.words import Words
from loadgen.prompts import Prompt
from loadgen.settings import RunSettings, seed_of


@dataclass(frozen=True, slots=True)
class PrefixRepetitionDataset:
    """Prompts of random words: row r is prefix r modulo `prefixes`, then words of its own.

    So each prefix begins as many prompts as any other, or one fewer. `vllm bench serve` leaves out the rest of the
    division; here all that were asked for are sent.

    Attributes:
        drawing: What draws the words.
        prefixes: How many there are.
        prefix_tokens: Tokens of each.
        suffix_tokens: Tokens of what follows it, of which the tokenizer's special ones take their part.
        output_tokens: Tokens wanted of each answer.
        seed_order: Draws the order of the rows.
    """

    drawing: Drawing
    prefixes: int
    prefix_tokens: int
    suffix_tokens: int
    output_tokens: int
    seed_order: int

    @classmethod
    def from_settings(cls, settings: RunSettings) -> Self:
        """Make it of `--tokenizer`, the `--prefix-repetition-*` fields and the seeds.

        Raises:
            BadInput: Special tokens leave no room in the suffix, or the tokenizer cannot be had or has too few words.
        """
        tokenizer = tokenizers.of_settings(settings)
        suffix = settings.prefix_repetition_suffix_len
        # It refuses what special tokens fill.
        Lengths.around("--prefix-repetition-suffix-len", suffix, less=tokenizer.special_tokens)
        return cls(
            drawing=Drawing(tokenizer, Words.of(tokenizer), seed_of(settings, "prompts")),
            prefixes=settings.prefix_repetition_num_prefixes,
            prefix_tokens=settings.prefix_repetition_prefix_len,
            suffix_tokens=suffix,
            output_tokens=settings.prefix_repetition_output_len,
            seed_order=seed_of(settings, "order"),
        )

    @property
    def tokenizer(self) -> Tokenizer:
        """What counts the prompts' tokens."""
        return self.drawing.tokenizer

    def prompts(self, count: int) -> Iterator[Prompt]:
        """Yield `count` prompts, always the same ones in the same order; memory does not grow with their number."""
        order = generator(self.seed_order, ORDER).permutation(count)
        prefixes = self.drawing.prefixes(self.prefix_tokens, range(self.prefixes))
        tokens = self.prefix_tokens + self.suffix_tokens
        own = self.suffix_tokens - self.tokenizer.special_tokens
        block = max(1, BLOCK_WORDS // tokens)
        for start in range(0, count, block):
            rows = order[start : start + block]
            before = [prefixes[row % self.prefixes] for row in rows.tolist()]
            texts = self.drawing.texts(rows.astype(np.uint64), [own] * len(rows), before, self.prefix_tokens)
            for row, text in zip(rows.tolist(), texts, strict=True):
                source = f"prefix_repetition/{self.drawing.seed}/{row % self.prefixes}/{row}"
                yield Prompt(text, tokens, self.output_tokens, source)

    def provenance(self) -> dict[str, Any]:
        """Return the rule, its seeds and lengths in tokens, and the tokenizer's name and hash."""
        return {
            "name": "prefix_repetition",
            "rule": "exact words",
            "seed_prompts": self.drawing.seed,
            "seed_order": self.seed_order,
            "prefixes": self.prefixes,
            "prefix_tokens": self.prefix_tokens,
            "suffix_tokens": self.suffix_tokens,
            "special_tokens": self.tokenizer.special_tokens,
            "output_tokens": self.output_tokens,
            "words": len(self.drawing.words.items),
            **self.tokenizer.provenance(),
        }
