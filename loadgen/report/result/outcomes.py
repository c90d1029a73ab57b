"""Outcomes: how requests ended, with examples, what ended the run, and what it shows of the limits
of an SLO.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Literal, Self

import msgspec
from msgspec import UNSET, Struct, UnsetType

from loadgen.checks import unfinished_p99_ns
from loadgen.config import slo
from loadgen.core.finish_reasons import is_known
from loadgen.metrics.run_data import RunData
from loadgen.metrics.snapshot import UNFINISHED, Snapshot
from loadgen.metrics.statistic import client_error_ms, statistic_ms
from loadgen.report.result.fields import from_json_values
from loadgen.util.number_format import four_digits, to_ms

Outcomes = dict[Annotated[str, msgspec.Meta(pattern=r"^[a-z_]+(\([0-9]+\))?$")], int]
Phase = Literal["scheduled", "connecting", "waiting", "head", "first token", "streaming"]


class Example(Struct, frozen=True, kw_only=True):
    """A request that failed."""

    index: Annotated[int, "Its number in the run, from 0."]
    phase: Annotated[Phase, "How far the request got."]
    detail: Annotated[
        str, "Why it failed, in loadgen's or the server's words, without credentials."
    ]
    target: Annotated[
        int | UnsetType, "With several targets, the number of its target, from 0."
    ] = UNSET


class Cancelled(Struct, frozen=True, kw_only=True):
    """Requests that ended as `cancelled` because the run ended first."""

    never_sent: Annotated[int, "Those that were never sent."] = 0
    in_flight: Annotated[int, "Those that were in flight, or waited for their own connection."] = 0


class Silence(Struct, frozen=True, kw_only=True):
    """The longest silence of a stream."""

    index: Annotated[int, "The number of the request in the run, from 0."]
    since_s: Annotated[float, "Time of the last token before the silence, seconds on the clock."]
    for_s: Annotated[float, "Duration of the silence, s."]


class SilentStreams(Struct, frozen=True, kw_only=True):
    """Streams in which no token came for 60 s or more, between two tokens or until the stream
    ended.
    """

    count: Annotated[int, "Number of them."] = 0
    examples: Annotated[list[Silence], "The longest silence of each of the first few streams."] = []


class Unread(Struct, frozen=True, kw_only=True):
    """Something in the answers that no rule took."""

    count: Annotated[int, "How often it came."]
    example: Annotated[str, "The first bytes of an example, without credentials."]

    @classmethod
    def each(cls, snapshot: Snapshot) -> dict[str, Self]:
        """Return all of a run, by name."""
        return {
            name: cls(count=count, example=example)
            for name, (count, example) in snapshot.unread.items()
        }


class AnswerEnds(Struct, frozen=True, kw_only=True):
    """How the answers of ok requests ended, apart from their finish reasons."""

    late: Annotated[
        int, "Answers whose responses stayed open for more than 50 ms after their last token."
    ]
    mean_late_ms: Annotated[float | None, "For how long these stayed open, ms; null: none did."]
    unnamed: Annotated[int, "Answers that ended with [DONE] and without a finish reason."]
    unknown_reasons: Annotated[
        dict[str, int], "Finish reasons whose meaning is not known, and how many had each."
    ]

    @classmethod
    def of(cls, snapshot: Snapshot) -> Self:
        """Count them in a run."""
        late = snapshot.counters["late_ends"]
        unknown = {
            reason: count
            for reason, count in snapshot.finishes.items()
            if reason and not is_known(reason)
        }
        return cls(
            late=late,
            mean_late_ms=to_ms(snapshot.counters["tail_ns"] / late) if late else None,
            unnamed=snapshot.counters["unnamed_ends"],
            unknown_reasons=unknown,
        )


class Unfinished(Struct, frozen=True, kw_only=True):
    """Requests that were given up."""

    count: Annotated[int, "Number of them."]
    p99_e2el_due_at_least_ms: Annotated[
        float | None,
        "What the p99 of E2EL from due would have been at least, had they gone on, ms; null: "
        "unknown.",
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
        "What was found: ms of a latency, a share of an error rate, a number of errors; null: it "
        "falls among requests that failed.",
    ]


class LimitResult(Struct, frozen=True, kw_only=True):
    """One limit of an SLO."""

    limit: Annotated[str, "The limit as written."]
    value: Annotated[
        float | None,
        "Measured value, ms, or a share from 0 to 1 for error_rate; null: it was not measured, or "
        "falls on failed requests (`beyond`).",
    ]
    client_error_ms: Annotated[
        float | None,
        "How far the value can be from the truth because of the client, ms; null: not at all, or, "
        "where `met` is null, without a bound.",
    ] = None
    beyond: Annotated[
        bool, "Whether the value falls on failed requests, which miss every limit."
    ] = False
    met: Annotated[
        bool | None,
        "Whether it is met; null: unknown, because of the client error, or in a search of too few "
        "requests.",
    ]

    @property
    def percentile(self) -> float | None:
        """The limited percentile; None for a mean, a maximum or a rate."""
        _, _, limit = self.limit.rpartition(":")  # behind the name of its class, if it has one
        return slo.parse(limit)[0].percentile

    @property
    def value_text(self) -> str:
        """The value with its unit; n/a if it is unknown."""
        if self.value is not None and "_rate" in self.limit:
            return f"{100 * self.value:.4g}%"
        return four_digits(self.value, "ms")


def judge_limits(limits: str | None, snapshot: Snapshot, clock: str) -> list[LimitResult]:
    """Judge a run by each limit of an SLO.

    Args:
        limits: The SLO; None: there is none.
        snapshot: What was measured.
        clock: "due" or "sent", from which latencies are counted.
    """

    def lookup(metric: str, name: str) -> tuple[float | None, float | None]:
        """Return the value, infinite if it falls on failed requests, and its client error."""
        if metric == "error":
            return snapshot.failures.server_rate, None
        distribution = slo.distribution(metric, clock)
        # Gaps are those of ok requests.
        failed = 0 if metric in slo.GAPS else snapshot.failures.failed
        value = statistic_ms(snapshot.histograms[distribution], name, failed)
        if snapshot.counters["unbounded_events"]:
            return value, math.inf
        return value, client_error_ms(snapshot, distribution, name, failed)

    if not limits:
        return []
    return from_json_values(slo.judge(slo.required_limits(limits), lookup), list[LimitResult])


def all_met(results: Sequence[LimitResult]) -> bool | None:
    """Return whether all limits are met; None where none is missed, but of some it cannot be
    told.
    """
    met = {result.met for result in results}
    return False if False in met else None if None in met else True
