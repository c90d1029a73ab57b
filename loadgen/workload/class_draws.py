"""`ClassDraws`: the class of each session, or single request, of a run."""

import itertools
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Self

from loadgen.config.request_class import IN_TURN
from loadgen.config.settings import RunSettings, seed_of
from loadgen.workload.prompt import Prompt

_BLOCK = 4096  # numbers drawn at a time


@dataclass(frozen=True, slots=True)
class ClassDraws:
    """Draws classes by their shares, each session by itself; or they take turns.

    Sessions that arrive as a Poisson process are then a Poisson process of each class, with its share of the rate
    (Kingman, Poisson Processes, 1993, section 5.1).

    Attributes:
        bounds: The upper bound of each class in draws from 0 to 1, ascending.
        in_turn: Whether they take turns instead.
        seed: The seed of the draws.
    """

    bounds: tuple[float, ...]
    in_turn: bool
    seed: int

    @classmethod
    def from_settings(cls, settings: RunSettings) -> Self:
        """Create the draws of the classes of a run, at least one.

        Raises:
            BadInput: A class is invalid.
        """
        bounds = tuple(itertools.accumulate(one.share for one in settings.request_classes))
        in_turn = bool(settings.lora_modules) and settings.lora_assignment == IN_TURN
        return cls(bounds, in_turn, seed_of(settings, "order"))

    def numbers(self) -> Iterator[int]:
        """Yield the number of the class of each session, without an end. They depend on shares and seed alone."""
        import numpy as np

        if self.in_turn:
            yield from itertools.cycle(range(len(self.bounds)))
        rng, last = np.random.default_rng([self.seed, *b"classes"]), len(self.bounds) - 1
        while True:
            for drawn in rng.random(_BLOCK).tolist():
                yield min(bisect_right(self.bounds, drawn), last)


def classed(prompts: Iterable[Prompt], numbers: Iterator[int]) -> Iterator[Prompt]:
    """Yield the prompts, those of each session with the next of the numbers as their class."""
    number = 0
    for prompt in prompts:
        if not prompt.follows:
            number = next(numbers)
        yield replace(prompt, class_number=number)
