"""`RandomDataset`: prompts of random words, exact to the token."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from loadgen.config.range_ratio import parse_ratios
from loadgen.config.settings import RunSettings, seed_of
from loadgen.workload.datasets.lengths import INPUT_LEN, Lengths
from loadgen.workload.prompt import Prompt
from loadgen.workload.tokenizer import tokenizer as tokenizers
from loadgen.workload.tokenizer import word_list
from loadgen.workload.tokenizer.exact_text import Count, Words
from loadgen.workload.tokenizer.random_text import (
    BLOCK_WORDS,
    INPUT_LENGTHS,
    ORDER,
    OUTPUT_LENGTHS,
    RandomText,
    generator,
)
from loadgen.workload.tokenizer.tokenizer import Tokenizer

FURTHER_ROWS = 1024  # minimum rows made at a time beyond those of a run


@dataclass(frozen=True, slots=True)
class RandomDataset:
    """Prompts of random words: a shared prefix of `prefix_tokens`, then `inputs` tokens of its own.

    A prompt is the text of a row r. Its words, its length and that of its answer are functions of (`seed_prompts`, r);
    only listed lengths depend on the order of sending. `prompts(n)` sends rows 0 to n-1 in an order that `seed_order`
    draws for this n, so its first k prompts are not those of `prompts(k)`. With 4096 words, two rows begin with the
    same 4 words about once in 2**48.

    Attributes:
        tokenizer: Counts the tokens.
        words: The words of the tokenizer.
        prefix_tokens: Tokens of the prefix of all prompts, 0 for none.
        inputs: Tokens of each prompt without prefix and special tokens.
        outputs: Maximum tokens of each answer.
        seed_prompts: The seed of words and lengths.
        seed_order: The seed of the order.
        template_tokens: Tokens that the server counts beyond those of each prompt, if known.
        measure: Counts a text like the server, if lengths are the server's and tokens of words and template join.
        drawing: Draws the words.
    """

    tokenizer: Tokenizer
    words: Words
    prefix_tokens: int
    inputs: Lengths
    outputs: Lengths
    seed_prompts: int
    seed_order: int
    template_tokens: int | None = None
    measure: Count | None = None
    drawing: RandomText = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "drawing", RandomText(self.tokenizer, self.words, self.seed_prompts))

    @classmethod
    def from_settings(cls, settings: RunSettings) -> Self:
        """Create the data set from `--tokenizer`, the `--random-*` fields (as in `vllm bench serve`) and the seeds.

        A prompt has `random_prefix_len` plus `random_input_len` tokens, including the special tokens of the tokenizer.

        Raises:
            BadInput: A length or ratio is out of range, or the tokenizer cannot be loaded or has too few words.
        """
        input_ratio, output_ratio = parse_ratios(settings.random_range_ratio)
        outputs = Lengths.parse("--random-output-len", settings.random_output_len, output_ratio, clamped=True)
        tokenizer = tokenizers.tokenizer_of(settings)
        special = tokenizer.special_tokens
        inputs = Lengths.parse(INPUT_LEN, settings.random_input_len, input_ratio, less=special)
        return cls(
            tokenizer=tokenizer,
            words=word_list.words_of(tokenizer),
            prefix_tokens=settings.random_prefix_len,
            inputs=inputs,
            outputs=outputs,
            seed_prompts=seed_of(settings, "prompts"),
            seed_order=seed_of(settings, "order"),
        )

    def prompts(self, count: int) -> Iterator[Prompt]:
        """Yield `count` prompts, the same in every call. Memory does not grow with their lengths."""
        return (prompt for _, prompt in self.numbered(count))

    def beyond(self, count: int) -> Iterator[Prompt]:
        """Yield the prompts of rows `count`, `count` + 1 and so on, endlessly."""
        return (prompt for _, prompt in self.numbered_beyond(count))

    def prefix_prompts(self) -> Iterator[Prompt]:
        """Yield the prefix of all prompts alone; nothing if they have none."""
        if self.prefix_tokens:
            yield from self.drawing.prefix_prompts("random", self.prefix_tokens, (0,), self.template_tokens)

    def numbered(self, count: int) -> Iterator[tuple[int, Prompt]]:
        """Yield the rows and prompts of `prompts(count)`."""
        order = generator(self.seed_order, ORDER).permutation(count)
        return self._generate(order, range(count))

    def numbered_beyond(self, count: int) -> Iterator[tuple[int, Prompt]]:
        """Yield the rows and prompts of `beyond(count)`."""
        while True:
            rows = np.arange(count, count + max(count, FURTHER_ROWS))  # each call draws lengths from the first row on
            yield from self._generate(rows, rows)
            count += len(rows)

    def _generate(
        self, order: NDArray[np.int64], places: Sequence[int] | NDArray[np.int64]
    ) -> Iterator[tuple[int, Prompt]]:
        """Yield rows and their prompts, which are sent at these positions in the run."""
        own, outputs = self._lengths(order, places)
        around = self.prefix_tokens + self.tokenizer.special_tokens
        (prefix,) = self.drawing.prefixes(self.prefix_tokens)
        added_tokens = self.tokenizer.special_tokens + (self.template_tokens or 0)
        for block in _blocks(own + self.prefix_tokens):
            rows, lengths = order[block], own[block].tolist()
            texts = self.drawing.texts(
                rows.astype(np.uint64),
                lengths,
                [prefix] * len(lengths),
                self.prefix_tokens,
                measure=self.measure,
                added_tokens=added_tokens,
            )
            for row, text, length, output in zip(rows.tolist(), texts, lengths, outputs[block].tolist(), strict=True):
                source = f"random/{self.seed_prompts}/{row}"
                tokens = self.tokenizer.count([text], special=True)[0] if self.measure else around + length
                known = None if self.template_tokens is None else around + length + self.template_tokens
                yield row, Prompt(text, tokens, output, source, server_tokens=known)

    def probes(self) -> list[str]:
        """Return texts like the beginnings and ends of its prompts."""
        return self.drawing.probes()

    def with_template_tokens(self, template_counts: Sequence[int], *, subtract: bool, measure: Count | None) -> Self:
        """Return the same prompts with the chat template's tokens known; with `subtract`, made shorter by it.

        Args:
            template_counts: The distinct numbers of tokens that the template adds to `probes()`, ascending.
            subtract: Whether lengths are those that the server counts.
            measure: Counts texts like the server; None if only the numbers are known.

        Raises:
            BadInput: The shortest prompt would be empty, or tokens do not add up and nothing counts them.
        """
        adds_up = self.drawing.adds_up(template_counts)
        if not subtract:
            return replace(self, template_tokens=template_counts[0]) if adds_up else self
        self.drawing.require_countable(template_counts, measure)
        added = f"{template_counts[-1] + self.tokenizer.special_tokens} of the chat template"
        inputs = self.inputs.shorter(INPUT_LEN, template_counts[-1], added)
        return replace(self, inputs=inputs, template_tokens=template_counts[-1], measure=None if adds_up else measure)

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
            "input_lengths": self.inputs.rule,
            "output_tokens": [self.outputs.low, self.outputs.high],
            "output_lengths": self.outputs.rule,
            "words": len(self.words.items),
            **self.tokenizer.provenance(),
        }

    def _lengths(
        self, order: NDArray[np.int64], places: Sequence[int] | NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Draw the tokens of each prompt and its answer: by its row, or for listed lengths by its position."""
        count = int(order.max(initial=-1)) + 1
        own = self.inputs.draw(generator(self.seed_prompts, INPUT_LENGTHS), count)
        outputs = self.outputs.draw(generator(self.seed_prompts, OUTPUT_LENGTHS), count)
        placed = np.asarray(places)
        return (
            own[placed if self.inputs.listed else order],
            outputs[placed if self.outputs.listed else order],
        )


def _blocks(lengths: NDArray[np.int64]) -> Iterator[slice]:
    """Yield slices of prompts with about BLOCK_WORDS words each."""
    full = np.flatnonzero(np.diff(np.cumsum(lengths) // BLOCK_WORDS)) + 1
    ends = [0, *full.tolist(), len(lengths)]
    return (slice(start, end) for start, end in pairwise(ends) if start < end)
