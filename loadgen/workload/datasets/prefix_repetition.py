"""`PrefixRepetitionDataset`: prompts that begin with one of a few long prefixes, like the requests of a service."""

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
from loadgen.workload.tokenizer.random_text import BLOCK_WORDS, ORDER, RandomText, generator
from loadgen.workload.tokenizer.tokenizer import Tokenizer

SUFFIX_LEN = "--prefix-repetition-suffix-len"


@dataclass(frozen=True, slots=True)
class PrefixRepetitionDataset:
    """Prompts of random words: row r is prefix r modulo `prefixes`, then its own words.

    All prefixes occur equally often, up to one prompt. `vllm bench serve` drops the remainder of the division; here all
    prompts are sent.

    Attributes:
        drawing: Draws the words.
        prefixes: The number of prefixes.
        prefix_tokens: Tokens of each prefix.
        suffix: Tokens after the prefix, a constant, without special tokens.
        output_tokens: Maximum tokens of each answer.
        seed_order: The seed of the order of the rows.
        template_tokens: Tokens that the server counts beyond those of each prompt, if known.
        measure: Counts a text like the server, if lengths are the server's and tokens of words and template join.
    """

    drawing: RandomText
    prefixes: int
    prefix_tokens: int
    suffix: Lengths
    output_tokens: int
    seed_order: int
    template_tokens: int | None = None
    measure: Count | None = None

    @classmethod
    def from_settings(cls, settings: RunSettings) -> Self:
        """Create the data set from `--tokenizer`, the `--prefix-repetition-*` fields and the seeds.

        Raises:
            BadInput: The suffix has no room for special tokens, or the tokenizer cannot be loaded or has too few words.
        """
        tokenizer = tokenizers.tokenizer_of(settings)
        suffix = settings.prefix_repetition_suffix_len
        return cls(
            drawing=RandomText(tokenizer, word_list.words_of(tokenizer), seed_of(settings, "prompts")),
            prefixes=settings.prefix_repetition_num_prefixes,
            prefix_tokens=settings.prefix_repetition_prefix_len,
            suffix=Lengths.around(SUFFIX_LEN, suffix, less=tokenizer.special_tokens),
            output_tokens=settings.prefix_repetition_output_len,
            seed_order=seed_of(settings, "order"),
        )

    @property
    def tokenizer(self) -> Tokenizer:
        """Counts the tokens."""
        return self.drawing.tokenizer

    def prompts(self, count: int) -> Iterator[Prompt]:
        """Yield `count` prompts, the same in every call. Memory does not grow with their number."""
        return self._generate(iter(generator(self.seed_order, ORDER).permutation(count).tolist()))

    def beyond(self, count: int) -> Iterator[Prompt]:
        """Yield the prompts of rows `count`, `count` + 1 and so on, endlessly."""
        return self._generate(itertools.count(count))

    def prefix_prompts(self) -> Iterator[Prompt]:
        """Yield each prefix alone; nothing if they are empty."""
        if self.prefix_tokens:
            numbers = range(self.prefixes)
            yield from self.drawing.prefix_prompts(
                "prefix_repetition", self.prefix_tokens, numbers, self.template_tokens
            )

    def _generate(self, order: Iterator[int]) -> Iterator[Prompt]:
        prefixes = self.drawing.prefixes(self.prefix_tokens, range(self.prefixes))
        own, special = self.suffix.low, self.tokenizer.special_tokens
        tokens = self.prefix_tokens + own + special
        added_tokens = special + (self.template_tokens or 0)
        known = None if self.template_tokens is None else tokens + self.template_tokens
        block = max(1, BLOCK_WORDS // tokens)
        while rows := list(itertools.islice(order, block)):
            before = [prefixes[row % self.prefixes] for row in rows]
            texts = self.drawing.texts(
                np.array(rows, dtype=np.uint64),
                [own] * len(rows),
                before,
                self.prefix_tokens,
                measure=self.measure,
                added_tokens=added_tokens,
            )
            for row, text in zip(rows, texts, strict=True):
                source = f"prefix_repetition/{self.drawing.seed}/{row % self.prefixes}/{row}"
                counted = self.tokenizer.count([text], special=True)[0] if self.measure else tokens
                yield Prompt(text, counted, self.output_tokens, source, server_tokens=known)

    def probes(self) -> list[str]:
        """Return texts like the beginnings and ends of its prompts."""
        return self.drawing.probes()

    def with_template_tokens(self, template_counts: Sequence[int], *, subtract: bool, measure: Count | None) -> Self:
        """Return the same prompts with the chat template's tokens known; with `subtract`, with shorter suffixes.

        Args:
            template_counts: The distinct numbers of tokens that the template adds to `probes()`, ascending.
            subtract: Whether lengths are those that the server counts.
            measure: Counts texts like the server; None if only the numbers are known.

        Raises:
            BadInput: The suffix would be empty, or tokens do not add up and nothing counts them.
        """
        adds_up = self.drawing.adds_up(template_counts)
        if not subtract:
            return replace(self, template_tokens=template_counts[0]) if adds_up else self
        self.drawing.require_countable(template_counts, measure)
        most, special = template_counts[-1], self.tokenizer.special_tokens
        suffix = self.suffix.shorter(SUFFIX_LEN, most, f"{most + special} of the chat template")
        return replace(self, suffix=suffix, template_tokens=most, measure=None if adds_up else measure)

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
