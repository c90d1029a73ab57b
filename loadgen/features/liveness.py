"""Liveness: the silences of a run, in which no stream had a token, and what was found of the
server meanwhile. `runner/liveness` watches for them.
"""

from typing import Annotated, Any

import msgspec
from msgspec import Struct

from loadgen.metrics.run_data import RunData

FACT = "silences"


class ServerSilence(Struct, frozen=True, kw_only=True):
    """A time in which no stream had a token."""

    since_s: Annotated[float, "The last token or end of a request before it, s on the clock."]
    for_s: Annotated[float, "Duration, s."]
    requests: Annotated[int, "Requests of loadgen's own meanwhile."] = 0
    found: Annotated[str, "What was found of the server."] = ""
    hung: Annotated[bool, "Whether the server hung."] = False


def fact(silences: list[ServerSilence]) -> dict[str, Any]:
    """Return the silences of a run as a fact for its trailer; nothing without any."""
    return {FACT: msgspec.to_builtins(silences)} if silences else {}


def silences(run: RunData) -> list[ServerSilence]:
    """Return the silences of a run, in their order."""
    return msgspec.convert(run.trailer.facts.get(FACT, []), list[ServerSilence])


def requests(run: RunData) -> int:
    """Return how many requests of its own loadgen sent in the silences of a run."""
    return sum(silence.requests for silence in silences(run))
