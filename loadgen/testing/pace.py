"""Pace: the times at which the tokens of an answer are due, drawn from a seed and the request's number."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadgen.errors import BadInput

NS_PER_MS = 1_000_000
SLOW_SHARE, SLOW_FACTOR = 0.1, 10.0  # bimodal: one time in ten is ten times as long as the others
MAX_MS = 3_600_000.0

Draw = Callable[[np.random.Generator, float, int], NDArray[np.float64]]

# Each function draws `size` times with mean 1, given the spread.
SHAPES: dict[str, Draw] = {
    "constant": lambda rng, spread, size: np.ones(size),
    "exponential": lambda rng, spread, size: rng.exponential(1.0, size),
    "lognormal": lambda rng, spread, size: rng.lognormal(-spread * spread / 2, spread, size),
    "bimodal": lambda rng, spread, size: (
        np.where(rng.random(size) < SLOW_SHARE, SLOW_FACTOR, 1.0) / (1 - SLOW_SHARE + SLOW_SHARE * SLOW_FACTOR)
    ),
}


@dataclass(frozen=True, slots=True)
class Pace:
    """The distribution of the times at which tokens are due.

    Attributes:
        shape: Distribution of all times: constant, exponential, lognormal or bimodal.
        first_ms: Mean time from a request's arrival to its first token, ms.
        gap_ms: Mean time between tokens, ms.
        spread: Standard deviation of the logarithm of lognormal times.
        queue: Whether requests are served one after another, first come, first served, with one token each; the time to
            the first token is then the service time. With constant times and Poisson arrivals this is an M/D/1 queue,
            with exponential times an M/M/1 queue.
        seed: Seed of all times.
    """

    shape: str = "constant"
    first_ms: float = 20.0
    gap_ms: float = 20.0
    spread: float = 0.5
    queue: bool = False
    seed: int = 0

    def checked(self) -> "Pace":
        """Return this pace if its fields are valid.

        Raises:
            BadInput: A field is not.
        """
        if self.shape not in SHAPES:
            raise BadInput("shape", f"unknown shape {self.shape!r}", f"choose from {', '.join(SHAPES)}")
        for name, most in (("first_ms", MAX_MS), ("gap_ms", MAX_MS), ("spread", 10.0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
                raise BadInput(name, f"{value!r} is out of range", f"give a number from 0 to {most:g}")
        if not isinstance(self.queue, bool):
            raise BadInput("queue", f"{self.queue!r} is not a boolean", "give true or false")
        if not isinstance(self.seed, int) or not 0 <= self.seed < 1 << 63:
            raise BadInput("seed", f"{self.seed!r} is not a seed", "give a whole number from 0")
        return self

    def changed(self, fields: Any) -> "Pace":
        """Return this pace with the values in a request's field `metronome`.

        Raises:
            BadInput: A field is unknown or invalid.
        """
        known = [field.name for field in dataclasses.fields(self)]
        if not isinstance(fields, dict) or not fields.keys() <= set(known):
            raise BadInput("metronome", f"{fields!r} is not a pace", f"send an object of {', '.join(known)}")
        return dataclasses.replace(self, **fields).checked()

    def offsets_ns(self, number: int, tokens: int) -> NDArray[np.int64]:
        """Return when the tokens of request `number` are due, ns from its arrival (in a queue: from its turn).

        The shape is (tokens,), or (1,) in a queue. The first k times are the same for any larger `tokens`.
        """
        means_ns = np.full(1 if self.queue else tokens, self.gap_ms * NS_PER_MS)
        means_ns[0] = self.first_ms * NS_PER_MS
        if self.shape != "constant":  # creating a generator is the most expensive step here
            rng = np.random.default_rng([self.seed, number])
            means_ns *= SHAPES[self.shape](rng, self.spread, len(means_ns))
        return np.cumsum(means_ns).astype(np.int64)
