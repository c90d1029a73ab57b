"""Stripe: which part of a run one worker carries out."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Stripe:
    """Every `of`-th session (or single request) of the run from the `number`-th on, 0 <= number < of."""

    number: int = 0
    of: int = 1

    def split(self, number: int, of: int) -> "Stripe":
        """The `number`-th of `of` equal parts of this stripe, as a stripe of the run."""
        return Stripe(self.number + self.of * number, self.of * of)

    def share(self, count: int) -> int:
        """How many of `count` things fall to it; over all stripes it adds up."""
        return len(range(self.number, count, self.of))


WHOLE = Stripe()
