"""Server call: a call to a server beside the load, and how it ended."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from loadgen.metrics.server_call import Moment


class ServerCallResult(Struct, frozen=True, kw_only=True):
    """A POST request to a server beside the load."""

    moment: Annotated[Moment, "Before the clock started, while it ran, or after the last request."]
    url: Annotated[str, "Where it went."]
    took_ms: Annotated[float, "How long the answer took, ms."]
    error: Annotated[str | None, "Why it failed; null: it did not."]
