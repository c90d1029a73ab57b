"""Server call: a call to a server beside the load, and how it ended."""

from __future__ import annotations

from typing import Annotated, Self

from msgspec import Struct

from loadgen.metrics.server_call import Moment, ServerCall


class ServerCallResult(Struct, frozen=True, kw_only=True):
    """A POST request to a server beside the load."""

    moment: Annotated[Moment, "Before the clock started, while it ran, or after the last request."]
    url: Annotated[str, "Where it went."]
    took_ms: Annotated[float, "How long the answer took, ms."]
    error: Annotated[str | None, "Why it failed; null: it did not."]

    @classmethod
    def of(cls, call: ServerCall) -> Self:
        """Type a call."""
        return cls(**call.to_dict())
