"""How many of its cases a test tries: all of them, or in `make unit` only some."""

from collections.abc import Sequence
from typing import TypeVar

from hypothesis import settings

T = TypeVar("T")
UNIT_EXAMPLES = (
    10  # examples of a property in `make unit`; elsewhere as many as hypothesis has by default
)


def thinned(cases: Sequence[T], step: int) -> Sequence[T]:
    """Return all cases; in `make unit` only every `step`-th, from the first on."""
    return cases[::step] if settings().max_examples == UNIT_EXAMPLES else cases
