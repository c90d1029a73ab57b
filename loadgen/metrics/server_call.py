"""A call to a server beside the load of a run: of its profiler, or to empty its caches."""

from dataclasses import dataclass
from typing import Literal

Moment = Literal["before", "during", "after"]


@dataclass(frozen=True, slots=True)
class ServerCall:
    """One POST request, and how it ended."""

    moment: Moment  # before the clock started, while it ran, or after the last request
    url: str  # where it went, without credentials
    took_ms: float
    error: str | None = None  # why it failed; None: it did not
