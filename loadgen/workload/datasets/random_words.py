"""Random prompts: words drawn by a seed, exact to the token."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from loadgen.config.settings import RunSettings, seed_of
from loadgen.workload.datasets.lengths import INPUT_LEN, Lengths, parse_ratios
from loadgen.workload.prompt import Prompt
from loadgen.workload.tokenizer import tokenizer as tokenizers
from loadgen.workload.tokenizer import word_list
from loadgen.workload.tokenizer.exact_text import Count, Words
from loadgen.workload.tokenizer.random_text import BLOCK_WORDS, INPUT_LENGTHS, ORDER, OUTPUT_LENGTHS, Drawing, generator
from loadgen.workload.tokenizer.tokenizer import Tokenizer

FURTHER = 1024  # rows made at a time beyond those of a run, at least


@dataclass(frozen=True, slots=True)
class RandomDataset:
    """Prompts of random words: `prefix_tokens` that all share, then `inputs` of its own.

    A prompt is the text of a row r: its words, its length and the answer's are functions of (`seed_prompts`, r) alone,
    but that listed lengths go by the order in which prompts are sent.
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
        overhead: Tokens that the server counts of each prompt beyond its own, where that is known.
        measure: What counts a text as the server does, where lengths are to be its and it joins words and template.
        drawing: What draws the words.
    """

    tokenizer: Tokenizer
    words: Words
    prefix_tokens: int
    inputs: Lengths
    outputs: Lengths
    seed_prompts: int
    seed_order: int
    overhead: int | None = None
    measure: Count | None = None
    drawing: Drawing = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "drawing", Drawing(self.tokenizer, self.words, self.seed_prompts))

    @classmethod
    def from_settings(cls, settings: RunSettings) -> Self:
        """Make it of `--tokenizer`, the `--random-*` fields and the seeds; lengths mean what `vllm bench serve` means.

        A prompt has `random_prefix_len` and `random_input_len` tokens together, of which the special tokens that the
        tokenizer adds take their part.

        Raises:
            BadInput: A length or ratio is out of range, or the tokenizer cannot be had or has too few words.
        """
        input_ratio, output_ratio = parse_ratios(settings.random_range_ratio)
        outputs = Lengths.parse("--random-output-len", settings.random_output_len, output_ratio)
        tokenizer = tokenizers.of_settings(settings)
        special = tokenizer.special_tokens
        inputs = Lengths.parse(INPUT_LEN, settings.random_input_len, input_ratio, less=special)
        return cls(
            tokenizer=tokenizer,
            words=word_list.of(tokenizer),
            prefix_tokens=settings.random_prefix_len,
            inputs=inputs,
            outputs=outputs,
            seed_prompts=seed_of(settings, "prompts"),
            seed_order=seed_of(settings, "order"),
        )

    def prompts(self, count: int) -> Iterator[Prompt]:
        """Yield `count` prompts, always the same ones in the same order; memory does not grow with their lengths."""
        order = generator(self.seed_order, ORDER).permutation(count)
        return self._made(order, range(count))

    def beyond(self, count: int) -> Iterator[Prompt]:
        """Yield rows `count`, `count` + 1 and so on, without an end."""
        while True:
            rows = np.arange(count, count + max(count, FURTHER))  # lengths are drawn from the first row on each time
            yield from self._made(rows, rows)
            count += len(rows)

    def _made(self, order: NDArray[np.int64], places: Sequence[int] | NDArray[np.int64]) -> Iterator[Prompt]:
        """Yield the prompts of these rows, which are sent at these places of the run."""
        own, outputs = self._lengths(order, places)
        around = self.prefix_tokens + self.tokenizer.special_tokens
        (prefix,) = self.drawing.prefixes(self.prefix_tokens)
        beside = self.tokenizer.special_tokens + (self.overhead or 0)
        for block in _blocks(own + self.prefix_tokens):
            rows, lengths = order[block], own[block].tolist()
            texts = self.drawing.texts(
                rows.astype(np.uint64),
                lengths,
                [prefix] * len(lengths),
                self.prefix_tokens,
                measure=self.measure,
                beside=beside,
            )
            for row, text, length, output in zip(rows.tolist(), texts, lengths, outputs[block].tolist(), strict=True):
                source = f"random/{self.seed_prompts}/{row}"
                tokens = self.tokenizer.count([text], special=True)[0] if self.measure else around + length
                known = None if self.overhead is None else around + length + self.overhead
                yield Prompt(text, tokens, output, source, server_tokens=known)

    def probes(self) -> list[str]:
        """Texts such as its prompts begin and end with."""
        return self.drawing.probes()

    def beside(self, overheads: Sequence[int], *, taken_off: bool, measure: Count | None) -> Self:
        """The same prompts, of which the server counts so many tokens more; with `taken_off`, made so much shorter.

        Args:
            overheads: How many more, found by `probes()`: each number once, ascending.
            taken_off: Whether the lengths that are asked for are those that the server counts.
            measure: Counts texts as the server does; None where only the number is known.

        Raises:
            BadInput: That leaves no token of the shortest, or tokens do not add up and nothing counts them.
        """
        adds_up = self.drawing.adds_up(overheads)
        if not taken_off:
            return replace(self, overhead=overheads[0]) if adds_up else self
        self.drawing.require_countable(overheads, measure)
        added = f"{overheads[-1] + self.tokenizer.special_tokens} of the chat template"
        inputs = self.inputs.shorter(INPUT_LEN, overheads[-1], added)
        return replace(self, inputs=inputs, overhead=overheads[-1], measure=None if adds_up else measure)

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
        """Tokens of each prompt's own words and of its answer: by its row, but listed ones by its place."""
        count = int(order.max(initial=-1)) + 1
        own = self.inputs.draw(generator(self.seed_prompts, INPUT_LENGTHS), count)
        outputs = self.outputs.draw(generator(self.seed_prompts, OUTPUT_LENGTHS), count)
        placed = np.asarray(places)
        return (
            own[placed if self.inputs.listed else order],
            outputs[placed if self.outputs.listed else order],
        )


def _blocks(lengths: NDArray[np.int64]) -> Iterator[slice]:
    """Cut a row of prompts where about BLOCK_WORDS have come together."""
    full = np.flatnonzero(np.diff(np.cumsum(lengths) // BLOCK_WORDS)) + 1
    ends = [0, *full.tolist(), len(lengths)]
    return (slice(start, end) for start, end in pairwise(ends) if start < end)
