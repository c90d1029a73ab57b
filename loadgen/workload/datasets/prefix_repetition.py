"""Repeated prefixes: prompts that begin with one of a few long texts, as the requests of one service do."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from loadgen.config.settings import RunSettings, seed_of
from loadgen.workload.datasets.lengths import Lengths
from loadgen.workload.prompt import Prompt
from loadgen.workload.tokenizer import tokenizer as tokenizers
from loadgen.workload.tokenizer import word_list
from loadgen.workload.tokenizer.exact_text import Count
from loadgen.workload.tokenizer.random_text import BLOCK_WORDS, ORDER, Drawing, generator
from loadgen.workload.tokenizer.tokenizer import Tokenizer

SUFFIX_LEN = "--prefix-repetition-suffix-len"


@dataclass(frozen=True, slots=True)
class PrefixRepetitionDataset:
    """Prompts of random words: row r is prefix r modulo `prefixes`, then words of its own.

    So each prefix begins as many prompts as any other, or one fewer. `vllm bench serve` leaves out the rest of the
    division; here all that were asked for are sent.

    Attributes:
        drawing: What draws the words.
        prefixes: How many there are.
        prefix_tokens: Tokens of each.
        suffix: Tokens of what follows it, always the same number, the tokenizer's special ones left out.
        output_tokens: Tokens wanted of each answer.
        seed_order: Draws the order of the rows.
        overhead: Tokens that the server counts of each prompt beyond its own, where that is known.
        measure: What counts a text as the server does, where lengths are to be its and it joins words and template.
    """

    drawing: Drawing
    prefixes: int
    prefix_tokens: int
    suffix: Lengths
    output_tokens: int
    seed_order: int
    overhead: int | None = None
    measure: Count | None = None

    @classmethod
    def from_settings(cls, settings: RunSettings) -> Self:
        """Make it of `--tokenizer`, the `--prefix-repetition-*` fields and the seeds.

        Raises:
            BadInput: Special tokens leave no room in the suffix, or the tokenizer cannot be had or has too few words.
        """
        tokenizer = tokenizers.of_settings(settings)
        suffix = settings.prefix_repetition_suffix_len
        return cls(
            drawing=Drawing(tokenizer, word_list.of(tokenizer), seed_of(settings, "prompts")),
            prefixes=settings.prefix_repetition_num_prefixes,
            prefix_tokens=settings.prefix_repetition_prefix_len,
            suffix=Lengths.around(SUFFIX_LEN, suffix, less=tokenizer.special_tokens),
            output_tokens=settings.prefix_repetition_output_len,
            seed_order=seed_of(settings, "order"),
        )

    @property
    def tokenizer(self) -> Tokenizer:
        """What counts the tokens."""
        return self.drawing.tokenizer

    def prompts(self, count: int) -> Iterator[Prompt]:
        """Yield `count` prompts, always the same ones in the same order; memory does not grow with their number."""
        return self._made(iter(generator(self.seed_order, ORDER).permutation(count).tolist()))

    def beyond(self, count: int) -> Iterator[Prompt]:
        """Yield rows `count`, `count` + 1 and so on, without an end."""
        return self._made(itertools.count(count))

    def _made(self, order: Iterator[int]) -> Iterator[Prompt]:
        prefixes = self.drawing.prefixes(self.prefix_tokens, range(self.prefixes))
        own, special = self.suffix.low, self.tokenizer.special_tokens
        tokens, beside = self.prefix_tokens + own + special, special + (self.overhead or 0)
        known = None if self.overhead is None else tokens + self.overhead
        block = max(1, BLOCK_WORDS // tokens)
        while rows := list(itertools.islice(order, block)):
            before = [prefixes[row % self.prefixes] for row in rows]
            texts = self.drawing.texts(
                np.array(rows, dtype=np.uint64),
                [own] * len(rows),
                before,
                self.prefix_tokens,
                measure=self.measure,
                beside=beside,
            )
            for row, text in zip(rows, texts, strict=True):
                source = f"prefix_repetition/{self.drawing.seed}/{row % self.prefixes}/{row}"
                counted = self.tokenizer.count([text], special=True)[0] if self.measure else tokens
                yield Prompt(text, counted, self.output_tokens, source, server_tokens=known)

    def probes(self) -> list[str]:
        """Texts such as its prompts begin and end with."""
        return self.drawing.probes()

    def beside(self, overheads: Sequence[int], *, taken_off: bool, measure: Count | None) -> Self:
        """The same prompts, of which the server counts so many tokens more; with `taken_off`, of shorter suffixes.

        Args:
            overheads: How many more, found by `probes()`: each number once, ascending.
            taken_off: Whether prefix and suffix together are to be what the server counts.
            measure: Counts texts as the server does; None where only the number is known.

        Raises:
            BadInput: That leaves no token of the suffix, or tokens do not add up and nothing counts them.
        """
        adds_up = self.drawing.adds_up(overheads)
        if not taken_off:
            return replace(self, overhead=overheads[0]) if adds_up else self
        self.drawing.require_countable(overheads, measure)
        most, special = overheads[-1], self.tokenizer.special_tokens
        suffix = self.suffix.shorter(SUFFIX_LEN, most, f"{most + special} of the chat template")
        return replace(self, suffix=suffix, overhead=most, measure=None if adds_up else measure)

    def provenance(self) -> dict[str, Any]:
        """Return the rule, its seeds and lengths in tokens, and the tokenizer's name and hash."""
        tokenizer = self.tokenizer
        return {
            "name": "prefix_repetition",
            "rule": "exact words",
            "seed_prompts": self.drawing.seed,
            "seed_order": self.seed_order,
            "prefixes": self.prefixes,
            "prefix_tokens": self.prefix_tokens,
            "suffix_tokens": self.suffix.low + tokenizer.special_tokens,
            "special_tokens": tokenizer.special_tokens,
            "output_tokens": self.output_tokens,
            "words": len(self.drawing.words.items),
            **tokenizer.provenance(),
        }
