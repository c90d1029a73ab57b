"""Random prompts: words drawn by a seed, exact to the token."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from loadgen.datasets import tokenizer as tokenizers
from loadgen.datasets.drawing import INPUT_LENGTHS, ORDER, OUTPUT_LENGTHS, Drawing, generator
from loadgen.datasets.lengths import Lengths, parse_ratios
from loadgen.datasets.tokenizer import Tokenizer
from loadgen.datasets.words import Words
from loadgen.errors import BadInput
from loadgen.prompts import Prompt
from loadgen.settings import RunSettings, seed_of

BLOCK_WORDS = 1 << 18  # words of the prompts made at a time


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
        drawing: What draws the words.
    """

    tokenizer: Tokenizer
    words: Words
    prefix_tokens: int
    inputs: Lengths
    outputs: Lengths
    seed_prompts: int
    seed_order: int
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
        order = generator(self.seed_order, ORDER).permutation(count)
        own = self.inputs.draw(generator(self.seed_prompts, INPUT_LENGTHS), count)
        outputs = self.outputs.draw(generator(self.seed_prompts, OUTPUT_LENGTHS), count)
        around = self.prefix_tokens + self.tokenizer.special_tokens
        (prefix,) = self.drawing.prefixes(self.prefix_tokens)
        block = max(1, BLOCK_WORDS // (self.prefix_tokens + self.inputs.high))
        for start in range(0, count, block):
            rows = order[start : start + block]
            lengths, wanted = own[rows].tolist(), outputs[rows].tolist()
            prefixes = [prefix] * len(lengths)
            texts = self.drawing.texts(rows.astype(np.uint64), lengths, prefixes, self.prefix_tokens)
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
