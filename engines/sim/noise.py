"""Noise: random factors of step times, seeded, with mean 1."""

import math
import random


class Noise:
    """Lognormal factors.

    Args:
        step: Standard deviation of the logarithm, drawn for each step.
        start: Standard deviation of the logarithm, drawn once for all steps of this start.
        seed: Seed of both.
    """

    def __init__(self, step: float, start: float, seed: int) -> None:
        self._draw, self._step = random.Random(seed), step
        self._start = self._factor(start)

    def __call__(self) -> float:
        """Return the factor of the next step."""
        return self._start * self._factor(self._step) if self._step else self._start

    def _factor(self, deviation: float) -> float:
        return math.exp(self._draw.gauss(-(deviation**2) / 2, deviation))
