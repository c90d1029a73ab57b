"""The rule `vllm-0.9`: random prompts drawn from numpy's legacy generator, with requested instead of real counts."""

from typing import ClassVar, Self

import numpy as np

from loadgen.config.settings import RunSettings, seed_of
from loadgen.errors import BadInput
from loadgen.workload.datasets.rules.consecutive import ConsecutiveIds, RandomNumbers


class Vllm09Random(ConsecutiveIds):
    """The rule of `vllm bench serve` 0.9: the prefix, lengths of inputs, of outputs, and offsets, in this order.

    A prompt is cut to the length without the prefix, and reported with it: with a prefix, its real length is shorter.
    """

    __slots__ = ()
    RULE: ClassVar[str] = "vllm-0.9"
    CUTS_PREFIX: ClassVar[bool] = False

    @classmethod
    def from_settings(cls, settings: RunSettings) -> Self:
        """Create the data set like all rules of consecutive ids, with a seed for numpy's legacy generator.

        Raises:
            BadInput: The seed has more than 32 bits, or a setting is invalid for all rules.
        """
        seed = seed_of(settings, "prompts")
        if seed >= 1 << 32:
            raise BadInput("--seed", f"{seed} is out of range for {cls.RULE}", "give less than 2**32")
        return super().from_settings(settings)

    @staticmethod
    def bounds(mean: int, ratio: float) -> tuple[int, int]:
        """Return mean * (1 -+ ratio), both rounded down; the minimum may be 0."""
        return int(mean * (1 - ratio)), int(mean * (1 + ratio))

    def draw(self, count: int) -> RandomNumbers:
        """Draw the prefix first."""
        draw, size = np.random.RandomState(self.seed).randint, self.tokenizer.own_size
        prefix = draw(0, size, size=self.prefix_tokens).tolist()
        inputs, outputs = (draw(low, high + 1, size=count) for low, high in (self.inputs, self.outputs))
        return RandomNumbers(prefix, inputs, outputs, draw(0, size, size=count))
