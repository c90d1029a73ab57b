"""Outcomes: how requests ended, with examples, and what ended the run."""

from __future__ import annotations

from typing import Annotated, Literal, Self

import msgspec
from msgspec import UNSET, Struct, UnsetType

from loadgen.checks import unfinished_p99_ns
from loadgen.metrics.run_data import RunData
from loadgen.metrics.snapshot import UNFINISHED
from loadgen.util.number_format import to_ms

Outcomes = dict[Annotated[str, msgspec.Meta(pattern=r"^[a-z_]+(\([0-9]+\))?$")], int]
Phase = Literal["scheduled", "connecting", "waiting", "head", "first token", "streaming"]


class Example(Struct, frozen=True, kw_only=True):
    """A request that failed."""

    index: Annotated[int, "Its number in the run, from 0."]
    phase: Annotated[Phase, "How far the request got."]
    detail: Annotated[str, "Why it failed, in loadgen's or the server's words, without credentials."]
    target: Annotated[int | UnsetType, "With several targets, the number of its target, from 0."] = UNSET


class Cancelled(Struct, frozen=True, kw_only=True):
    """Requests that the end of the run cancelled."""

    never_sent: Annotated[int, "Cancelled requests that never asked for a connection."] = 0
    in_flight: Annotated[int, "Cancelled requests that were sent, or waited for their own connection."] = 0


class Silence(Struct, frozen=True, kw_only=True):
    """The longest silence of a stream."""

    index: Annotated[int, "The number of the request in the run, from 0."]
    since_s: Annotated[float, "Time of the last token before the silence, seconds on the clock."]
    for_s: Annotated[float, "Duration of the silence, s."]


class SilentStreams(Struct, frozen=True, kw_only=True):
    """Streams in which no token came for 60 s or more, between two tokens or until the stream ended."""

    count: Annotated[int, "Number of them."] = 0
    examples: Annotated[list[Silence], "The longest silence of each of the first few streams."] = []


class Unfinished(Struct, frozen=True, kw_only=True):
    """Requests that were given up."""

    count: Annotated[int, "Number of them."]
    p99_e2el_due_at_least_ms: Annotated[
        float | None, "What the p99 of E2EL from due would have been at least, had they gone on, ms; null: unknown."
    ]

    @classmethod
    def of(cls, run: RunData) -> Self:
        """Bound the p99 of E2EL by them."""
        count = run.snapshot.histograms[UNFINISHED].count
        return cls(count=count, p99_e2el_due_at_least_ms=to_ms(unfinished_p99_ns(run)))


class Stop(Struct, frozen=True, kw_only=True):
    """The condition of `--stop-when` that ended the run."""

    condition: Annotated[str, "The condition."]
    at_s: Annotated[float, "When it held, s on the clock. Nothing was sent from then on."]
    value: Annotated[
        float | None,
        "What was found: ms of a latency, a share of an error rate, a number of errors; null: it falls among "
        "requests that failed.",
    ]
