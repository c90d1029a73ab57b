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

    def input_range(self) -> tuple[int, int]:
        """Return mean * (1 -+ ratio), both rounded down."""
        return _rounded_down(self.input_mean, self.ratios[0])

    def output_range(self) -> tuple[int, int]:
        """Return mean * (1 -+ ratio), both rounded down; the minimum may be 0."""
        return _rounded_down(self.output_mean, self.ratios[1])

    def draw(self, count: int) -> RandomNumbers:
        """Draw from one generator of the seed."""
        generator = np.random.RandomState(self.seed)
        prefix = generator.randint(0, self.tokenizer.own_size, size=self.prefix_tokens).tolist()
        (low, high), (output_low, output_high) = self.input_range(), self.output_range()
        inputs = generator.randint(low, high + 1, size=count)
        outputs = generator.randint(output_low, output_high + 1, size=count)
        offsets = generator.randint(0, self.tokenizer.own_size, size=count)
        return RandomNumbers(prefix, inputs, outputs, offsets)

    def cut_at(self, own: int) -> int:
        """Return the length without the prefix."""
        return own

    def reported_tokens(self, own: int, left: int) -> int:
        """Return the requested tokens."""
        return self.prefix_tokens + own


def _rounded_down(mean: int, ratio: float) -> tuple[int, int]:
    return int(mean * (1 - ratio)), int(mean * (1 + ratio))
