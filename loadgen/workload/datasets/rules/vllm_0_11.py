"""The rule `vllm-0.11`: random prompts drawn from numpy's PCG64, cut to prefix plus length, with their real counts."""

import math
from typing import ClassVar

import numpy as np

from loadgen.workload.datasets.rules.consecutive import ConsecutiveIds, RandomNumbers


class Vllm011Random(ConsecutiveIds):
    """The rule of `vllm bench serve` 0.11: lengths of inputs, of outputs, offsets, and the prefix, in this order."""

    __slots__ = ()
    RULE: ClassVar[str] = "vllm-0.11"
    CUTS_PREFIX: ClassVar[bool] = True

    @staticmethod
    def bounds(mean: int, ratio: float) -> tuple[int, int]:
        """Return floor and ceiling of mean * (1 -+ ratio), at least 1."""
        return max(math.floor(mean * (1 - ratio)), 1), math.ceil(mean * (1 + ratio))

    def draw(self, count: int) -> RandomNumbers:
        """Draw the prefix last."""
        generator, size = np.random.default_rng(self.seed), self.tokenizer.own_size
        inputs = generator.integers(*self.inputs, size=count, endpoint=True)
        outputs = generator.integers(*self.outputs, size=count, endpoint=True)
        offsets = generator.integers(0, size, size=count)
        return RandomNumbers(generator.integers(0, size, size=self.prefix_tokens).tolist(), inputs, outputs, offsets)
