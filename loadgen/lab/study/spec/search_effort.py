"""Effort: how finely a study searches the highest rate, and with how many runs."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Effort:
    """The resolution of a search and the number of runs that it takes.

    Attributes:
        resolution: The lowest rate that fails is at most this share above the highest that does not.
    """

    resolution: float

    BRACKETING = 2  # runs, if the first rate is near
    SPARE = 8  # runs, for a first rate that is far away and for rates whose first run is inconclusive

    @classmethod
    def for_effect(cls, least_effect: float) -> "Effort":
        """Return the effort for the least effect that a study looks for, with a resolution from 1 to 5 %.

        The standard error of a rate is its resolution over the root of 12. Runs vary by more than 1 %, so finer steps
        would show nothing; and steps above 5 % save less than one run.
        """
        return cls(min(0.05, max(0.01, least_effect)))

    @property
    def halvings(self) -> int:
        """Rates tried between one that meets its limits and twice that rate, which does not."""
        return math.ceil(math.log2(math.log(2) / math.log1p(self.resolution)))

    @property
    def min_runs(self) -> int:
        """Runs if each is conclusive and the first rate is near."""
        return self.BRACKETING + self.halvings

    @property
    def max_runs(self) -> int:
        """Maximum number of runs."""
        return self.SPARE + 2 * self.halvings
