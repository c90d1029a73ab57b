"""The rule `vllm-0.11`: random prompts drawn from numpy's PCG64, cut to prefix plus length, with their real counts."""

import math
from typing import ClassVar

import numpy as np

from loadgen.workload.datasets.rules.consecutive import ConsecutiveIds, RandomNumbers


class Vllm011Random(ConsecutiveIds):
    """The rule of `vllm bench serve` 0.11: lengths of inputs, of outputs, offsets, and the prefix, in this order."""

    __slots__ = ()
    RULE: ClassVar[str] = "vllm-0.11"

    def input_range(self) -> tuple[int, int]:
        """Return floor and ceiling of mean * (1 -+ ratio)."""
        return math.floor(self.input_mean * (1 - self.ratios[0])), math.ceil(self.input_mean * (1 + self.ratios[0]))

    def output_range(self) -> tuple[int, int]:
        """Return floor and ceiling of mean * (1 -+ ratio), at least 1."""
        low = math.floor(self.output_mean * (1 - self.ratios[1]))
        return max(low, 1), math.ceil(self.output_mean * (1 + self.ratios[1]))

    def draw(self, count: int) -> RandomNumbers:
        """Draw from one generator of the seed."""
        generator = np.random.default_rng(self.seed)
        inputs = generator.integers(*self.input_range(), size=count, endpoint=True)
        outputs = generator.integers(*self.output_range(), size=count, endpoint=True)
        offsets = generator.integers(0, self.tokenizer.own_size, size=count)
        prefix = generator.integers(0, self.tokenizer.own_size, size=self.prefix_tokens).tolist()
        return RandomNumbers(prefix, inputs, outputs, offsets)

    def cut_at(self, own: int) -> int:
        """Return prefix plus length."""
        return self.prefix_tokens + own

    def reported_tokens(self, own: int, left: int) -> int:
        """Return the remaining tokens: fewer than requested where neighbours merged."""
        return left
