"""Quiet: which runs count. A run beside which others computed is shown, but is no part of any
median.

Medians are of the runs that were not disturbed, or of all, and then marked, where there is none.
"""

import statistics
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

# more CPU time than this, of processes that are neither the client nor the server, disturbs a run
DISTURBED_S = 4.0
MARK = "*"


class Disturbable(Protocol):
    """A run, as far as this module knows it."""

    @property
    def others_s(self) -> float:
        """Processor time that others used meanwhile."""


Run = TypeVar("Run", bound=Disturbable)


def quiet(runs: Sequence[Run]) -> list[Run]:
    """Those that count."""
    return [run for run in runs if run.others_s <= DISTURBED_S] or list(runs)


def all_disturbed(runs: Sequence[Disturbable]) -> bool:
    """Whether none was quiet, so that all count."""
    return bool(runs) and all(run.others_s > DISTURBED_S for run in runs)


def median(runs: Sequence[Run], value: Callable[[Run], float | None]) -> float | None:
    """The median over the runs that count; None where none of them knows the value."""
    known = [found for run in quiet(runs) if (found := value(run)) is not None]
    return statistics.median(known) if known else None
