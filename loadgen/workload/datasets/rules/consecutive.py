"""`ConsecutiveIds`: random prompts of `vllm bench serve`, each a range of consecutive ids of the vocabulary.

The ids are decoded, the text is encoded again and cut to the length, and the rest is decoded: that is the prompt. It
becomes shorter where neighbouring tokens merge.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from loadgen.config.range_ratio import parse_ratios
from loadgen.config.settings import RunSettings, seed_of
from loadgen.workload.datasets.lengths import INPUT_LEN, Lengths, plain_length
from loadgen.workload.datasets.rules.missed_length import warn_of_miss
from loadgen.workload.prompt import Prompt
from loadgen.workload.tokenizer.tokenizer import Tokenizer, tokenizer_of

BLOCK_TOKENS = 1 << 18  # tokens of the prompts made at a time


@dataclass(frozen=True, slots=True)
class RandomNumbers:
    """The random numbers of a rule; arrays have a number for each prompt.

    Attributes:
        prefix: The ids of the shared prefix.
        inputs: The number of ids of each prompt without its prefix.
        outputs: Maximum tokens of each answer.
        offsets: The offset of each range in the vocabulary, without the number of the prompt.
    """

    prefix: list[int]
    inputs: NDArray[np.int64]
    outputs: NDArray[np.int64]
    offsets: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ConsecutiveIds(ABC):
    """Prompt i is the shared prefix, then the ids from offset + i on, modulo the vocabulary.

    Attributes:
        tokenizer: Decodes and encodes; ids are from its vocabulary without added tokens.
        prefix_tokens: Ids of the shared prefix, 0 for none.
        input_mean: Mean tokens of a prompt, without special tokens.
        output_mean: Maximum tokens of each answer.
        ratios: Relative half widths of the ranges of input and output lengths, in [0, 1).
        seed: The seed of everything.
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
        """Create the data set from `--tokenizer`, the `--random-*` fields and the seed of the prompts.

        Raises:
            BadInput: A length or ratio leaves no token, or the tokenizer cannot be loaded.
        """
        ratios = parse_ratios(settings.random_range_ratio)
        inputs = plain_length(INPUT_LEN, settings.random_input_len, cls.RULE)
        outputs = plain_length("--random-output-len", settings.random_output_len, cls.RULE)
        tokenizer = tokenizer_of(settings)
        special = tokenizer.special_tokens
        Lengths.around(INPUT_LEN, inputs, ratios[0], less=special)  # refuses lengths below one token
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
        """Return the minimum and maximum number of ids of a prompt without its prefix."""

    @abstractmethod
    def output_range(self) -> tuple[int, int]:
        """Return the minimum and maximum of the tokens of an answer."""

    @abstractmethod
    def draw(self, count: int) -> RandomNumbers:
        """Draw the random numbers of `count` prompts, in the order of the rule."""

    @abstractmethod
    def cut_at(self, own: int) -> int:
        """Return the number of tokens to which the text of a range of `own` ids is cut."""

    @abstractmethod
    def reported_tokens(self, own: int, left: int) -> int:
        """Return the input tokens that the tool reports for `own` requested ids, of which `left` remain."""

    def prompts(self, count: int) -> Iterator[Prompt]:
        """Yield `count` prompts, the same in every call. One block at a time is in memory."""
        drawn, total = self.draw(count), 0
        block = max(1, BLOCK_TOKENS // (self.prefix_tokens + self.input_range()[1]))
        for start in range(0, count, block):
            rows = range(start, min(start + block, count))
            lengths = drawn.inputs[start : start + block].tolist()
            ranges = [
                drawn.prefix + ((drawn.offsets[row] + row + np.arange(own)) % self.tokenizer.own_size).tolist()
                for row, own in zip(rows, lengths, strict=True)
            ]
            encoded = self.tokenizer.encode_batch(self.tokenizer.decode_batch(ranges))
            cut = [ids[: self.cut_at(own)] for ids, own in zip(encoded, lengths, strict=True)]
            texts = self.tokenizer.decode_batch(cut)
            outputs = drawn.outputs[start : start + block].tolist()
            for row, text, own, ids, wanted in zip(rows, texts, lengths, cut, outputs, strict=True):
                tokens = self.reported_tokens(own, len(ids))
                total += tokens
                yield Prompt(text, tokens, wanted, f"random/{self.RULE}/{self.seed}/{row}")
        if count:
            low, high = self.input_range()
            warn_of_miss(total / count, self.prefix_tokens + low, self.prefix_tokens + high)

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
