"""Consecutive ids: random prompts as `vllm bench serve` makes them, each a stretch of the vocabulary.

The ids of a stretch are decoded, the text is encoded again and cut to the length, and what is left is decoded: that is
the prompt. Neighbours that are one token when they stand together make it come out short.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from loadgen.config.settings import RunSettings, seed_of
from loadgen.workload.datasets.lengths import INPUT_LEN, Lengths, parse_ratios, plain
from loadgen.workload.prompt import Prompt
from loadgen.workload.tokenizer import tokenizer as tokenizers
from loadgen.workload.tokenizer.tokenizer import Tokenizer

BLOCK_TOKENS = 1 << 18  # tokens of the prompts made at a time


@dataclass(frozen=True, slots=True)
class Drawn:
    """All that a rule draws, ids and lengths in tokens; the arrays have a number for each prompt.

    Attributes:
        prefix: Ids that every prompt begins with.
        inputs: Ids of each prompt's own.
        outputs: Tokens wanted of each answer.
        offsets: Where in the vocabulary each stretch begins, the number of the prompt left out.
    """

    prefix: list[int]
    inputs: NDArray[np.int64]
    outputs: NDArray[np.int64]
    offsets: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ConsecutiveIds(ABC):
    """Prompt i is the shared prefix, then the ids from offset + i on, around the end of the vocabulary.

    Attributes:
        tokenizer: What decodes and encodes; ids are drawn from its vocabulary without added tokens.
        prefix_tokens: Ids of the shared prefix, 0 for none.
        input_mean: Tokens asked of each prompt, those that the tokenizer puts around a text taken off.
        output_mean: Tokens wanted of each answer.
        ratios: How far the lengths of inputs and outputs may go from these, in [0, 1).
        seed: Draws everything.
    """

    RULE: ClassVar[str]

    tokenizer: Tokenizer
    prefix_tokens: int
    input_mean: int
    output_mean: int
    ratios: tuple[float, float]
    seed: int

    @classmethod
    def from_settings(cls, settings: RunSettings) -> Self:
        """Make it of `--tokenizer`, the `--random-*` fields and the seed of the prompts.

        Raises:
            BadInput: A length or ratio leaves no token, or the tokenizer cannot be had.
        """
        ratios = parse_ratios(settings.random_range_ratio)
        inputs = plain(INPUT_LEN, settings.random_input_len, cls.RULE)
        outputs = plain("--random-output-len", settings.random_output_len, cls.RULE)
        tokenizer = tokenizers.of_settings(settings)
        special = tokenizer.special_tokens
        Lengths.around(INPUT_LEN, inputs, ratios[0], less=special)  # refuses what leaves no token by any of the rules
        return cls(
            tokenizer=tokenizer,
            prefix_tokens=settings.random_prefix_len,
            input_mean=inputs - special,
            output_mean=outputs,
            ratios=ratios,
            seed=seed_of(settings, "prompts"),
        )

    @abstractmethod
    def input_range(self) -> tuple[int, int]:
        """Return the least and the most ids of a prompt's own."""

    @abstractmethod
    def output_range(self) -> tuple[int, int]:
        """Return the least and the most tokens wanted of an answer."""

    @abstractmethod
    def draw(self, count: int) -> Drawn:
        """Draw everything of `count` prompts, in the rule's order."""

    @abstractmethod
    def cut_at(self, own: int) -> int:
        """Return to how many tokens the text is cut whose stretch has `own` ids."""

    @abstractmethod
    def counted(self, own: int, left: int) -> int:
        """Return what the tool counts as the input tokens: of `own` ids asked for, `left` were left of the text."""

    def prompts(self, count: int) -> Iterator[Prompt]:
        """Yield `count` prompts, always the same ones in the same order; a block at a time is in memory."""
        drawn = self.draw(count)
        block = max(1, BLOCK_TOKENS // (self.prefix_tokens + self.input_range()[1]))
        for start in range(0, count, block):
            rows = range(start, min(start + block, count))
            lengths = drawn.inputs[start : start + block].tolist()
            stretches = [
                drawn.prefix + ((drawn.offsets[row] + row + np.arange(own)) % self.tokenizer.own_size).tolist()
                for row, own in zip(rows, lengths, strict=True)
            ]
            encoded = self.tokenizer.encode_batch(self.tokenizer.decode_batch(stretches))
            cut = [ids[: self.cut_at(own)] for ids, own in zip(encoded, lengths, strict=True)]
            texts = self.tokenizer.decode_batch(cut)
            outputs = drawn.outputs[start : start + block].tolist()
            for row, text, own, ids, wanted in zip(rows, texts, lengths, cut, outputs, strict=True):
                yield Prompt(text, self.counted(own, len(ids)), wanted, f"random/{self.RULE}/{self.seed}/{row}")

    def provenance(self) -> dict[str, Any]:
        """Return the rule, its seed and lengths in tokens, and the tokenizer's name and hash."""
        return {
            "name": "random",
            "rule": self.RULE,
            "seed_prompts": self.seed,
            "prefix_tokens": self.prefix_tokens,
            "special_tokens": self.tokenizer.special_tokens,
            "input_tokens": list(self.input_range()),
            "output_tokens": list(self.output_range()),
            **self.tokenizer.provenance(),
        }
