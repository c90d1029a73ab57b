"""A call to a server beside the load of a run: of its profiler, or to empty its caches."""

from dataclasses import dataclass
from typing import Literal

Moment = Literal["before", "during", "after"]


@dataclass(frozen=True, slots=True)
class ServerCall:
    """One POST request, and how it ended.

    Attributes:
        moment: Before the clock started, while it ran, or after the last request.
        url: Where it went, without credentials.
        took_ms: How long the answer took, ms.
        error: Why it failed; None: it did not.
    """

    moment: Moment
    url: str
    took_ms: float
    error: str | None = None
