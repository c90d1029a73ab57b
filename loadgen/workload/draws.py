"""What a run draws by itself for each request or session: `uniforms`, `ClassDraws` and
`EarlyEndDraws`.

`uniforms` are random numbers that depend on a seed, a purpose and what they are drawn for alone.
Any number of processes draws the same ones, in any order. They need no NumPy, which a measuring
process does not import.
"""

import hashlib
import itertools
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Self

from msgspec import Struct, structs

from loadgen.config.load import EARLY_ENDS
from loadgen.config.request_class import IN_TURN
from loadgen.config.settings import RunSettings, seed_of
from loadgen.config.user_behavior import EarlyEnd
from loadgen.core.record import Record
from loadgen.util.clock import NS_PER_S
from loadgen.workload.prompt import Prompt

_BYTES = 6  # of a number: the most whole bytes that a float holds exactly
_BLOCK = 4096  # numbers drawn at a time


def uniforms(count: int, seed: int, purpose: str, *of: int) -> list[float]:
    """Draw numbers from 0 up to, and without, 1.

    Args:
        count: How many: at most ten.
        seed: The seed of the run, or of the part of it that they belong to.
        purpose: What they decide, so that draws of different purposes do not depend on each other.
        of: The numbers of what they are drawn for: a request, a user, a session and its turn.
    """
    name = "/".join([purpose, *map(str, (seed, *of))])
    drawn = hashlib.blake2b(name.encode(), digest_size=count * _BYTES).digest()
    return [int.from_bytes(drawn[at : at + _BYTES]) / 2**48 for at in range(0, len(drawn), _BYTES)]


class ClassDraws(Struct, frozen=True):
    """Draws classes by their shares, each session by itself; or they take turns.

    Sessions that arrive as a Poisson process are then a Poisson process of each class, with its
    share of the rate (Kingman, Poisson Processes, 1993, section 5.1).

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
        bounds = tuple(
            itertools.accumulate(request_class.share for request_class in settings.request_classes)
        )
        in_turn = bool(settings.lora_modules) and settings.lora_assignment == IN_TURN
        return cls(bounds, in_turn, seed_of(settings, "order"))

    def numbers(self) -> Iterator[int]:
        """Yield the number of the class of each session, without an end.

        They depend on shares and seed alone.
        """
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
        yield structs.replace(prompt, class_number=number)


class EarlyEndDraws(Struct, frozen=True):
    """Draws the requests that the client itself ends: each request draws for itself, so that any
    number of workers draws the same.

    Attributes:
        end: Their share, and when and how they end.
        seed: The seed of the draws, that of the arrivals.
    """

    end: EarlyEnd
    seed: int

    @classmethod
    def each(cls, settings: RunSettings) -> list[Self]:
        """Create the draws of each such share that the settings name.

        Raises:
            BadInput: The value of a field is invalid.
        """
        return [cls(end, seed_of(settings, "arrivals")) for end in settings.early_ends]

    def drawn(self, index: int) -> bool:
        """Return whether request `index` is one of them; it depends on the index, the seed and
        the share alone.
        """
        return uniforms(1, self.seed, self.end.name, index)[0] < self.end.share

    def mark(self, record: Record) -> None:
        """Write into the record of a request that is about to be sent when and how it ends, if it
        was drawn.
        """
        if not self.drawn(record.index):
            return
        outcome, detail = EARLY_ENDS[self.end.name]
        if self.end.tokens is not None:
            record.end_after_tokens = self.end.tokens
        elif self.end.after_s is not None:
            record.end_after_ns = int(self.end.after_s * NS_PER_S)
            detail = f"{detail} {record.end_after_ns / NS_PER_S:g} s after it was sent"
        record.ends_as = outcome, detail
