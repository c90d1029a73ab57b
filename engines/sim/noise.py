"""Noise: by what factor a step takes longer than the model says; seeded, and 1 on average."""

import math
import random


class Noise:
    """Lognormal factors.

    Args:
        step: Standard deviation of the logarithm for each step.
        start: The same for all steps of one start.
        seed: Of both.
    """

    def __init__(self, step: float, start: float, seed: int) -> None:
        self._draw, self._step = random.Random(seed), step
        self._start = self._factor(start)

    def __call__(self) -> float:
        """Return the factor of the next step."""
        return self._start * self._factor(self._step) if self._step else self._start

    def _factor(self, deviation: float) -> float:
        return math.exp(self._draw.gauss(-(deviation**2) / 2, deviation))
