"""Pace: when the tokens of an answer are due, drawn by a seed and the request's number."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadgen.errors import BadInput

NS_PER_MS = 1_000_000
SLOW_SHARE, SLOW_FACTOR = 0.1, 10.0  # bimodal: one gap in ten is ten times as long as the others
LONGEST_MS = 3_600_000.0

Draw = Callable[[np.random.Generator, float, int], NDArray[np.float64]]

# Each draws so many times of mean 1, given the spread.
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
    """When the tokens of each answer are due.

    Attributes:
        shape: The distribution of all times drawn: constant, exponential, lognormal or bimodal.
        first_ms: The mean time from a request's arrival to its first token.
        gap_ms: The mean time between tokens.
        spread: The standard deviation of a lognormal time's logarithm.
        queue: Requests are served one after another, first come, first served: the first token's time is the service
            time, and it is the only one. With constant times and Poisson arrivals this is M/D/1, with exponential
            ones M/M/1.
        seed: Of everything drawn.
    """

    shape: str = "constant"
    first_ms: float = 20.0
    gap_ms: float = 20.0
    spread: float = 0.5
    queue: bool = False
    seed: int = 0

    def checked(self) -> "Pace":
        """Return this pace, if it can be carried out.

        Raises:
            BadInput: It cannot.
        """
        if self.shape not in SHAPES:
            raise BadInput("shape", f"{self.shape!r} is none", f"choose from {', '.join(SHAPES)}")
        for name, most in (("first_ms", LONGEST_MS), ("gap_ms", LONGEST_MS), ("spread", 10.0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
                raise BadInput(name, f"{value!r} is out of range", f"give a number from 0 to {most:g}")
        if not isinstance(self.queue, bool):
            raise BadInput("queue", f"{self.queue!r} is no truth value", "give true or false")
        if not isinstance(self.seed, int) or not 0 <= self.seed < 1 << 63:
            raise BadInput("seed", f"{self.seed!r} is no seed", "give a whole number from 0")
        return self

    def changed(self, fields: Any) -> "Pace":
        """Return this pace with what a request's `metronome` field gives in place of its own.

        Raises:
            BadInput: A field is unknown, or has no usable value.
        """
        known = [field.name for field in dataclasses.fields(self)]
        if not isinstance(fields, dict) or not fields.keys() <= set(known):
            raise BadInput("metronome", f"{fields!r} is no pace", f"send an object of {', '.join(known)}")
        return dataclasses.replace(self, **fields).checked()

    def offsets_ns(self, number: int, tokens: int) -> NDArray[np.int64]:
        """When the tokens of request `number` are due, in ns from its arrival (or, in a queue, from its turn).

        Shape (tokens,), or (1,) in a queue; the first k are the same for any larger `tokens`.
        """
        means_ns = np.full(1 if self.queue else tokens, self.gap_ms * NS_PER_MS)
        means_ns[0] = self.first_ms * NS_PER_MS
        if self.shape != "constant":  # making a generator costs more than all else here
            rng = np.random.default_rng([self.seed, number])
            means_ns *= SHAPES[self.shape](rng, self.spread, len(means_ns))
        return np.cumsum(means_ns).astype(np.int64)
