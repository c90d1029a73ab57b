"""Measurers: who measures a run with these settings.

Light to import, as `measurer` is.
"""

from typing import TYPE_CHECKING

from loadgen.settings import RunSettings
from loadgen.workers import Workers, count

if TYPE_CHECKING:
    from loadgen.nodes import Nodes


def of(settings: RunSettings) -> "Workers | Nodes":
    """Whoever is to share a run with these settings, which have been checked, for as long as its context lasts."""
    if settings.ray is None:
        return Workers(count(settings))
    from loadgen.nodes import Nodes

    return Nodes(settings)
