"""Series: several runs at one server, at one level of load after another, as one JSON object."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

import msgspec
from msgspec import Struct

from loadgen.checks import Verdict
from loadgen.report.result.brief import RunBrief
from loadgen.report.result.fields import about, from_json_values, to_json_values
from loadgen.report.result.latencies import Clock
from loadgen.report.result.limit import LimitResult
from loadgen.report.result.numbers import Rate

SERIES_SCHEMA: Literal[1] = 1
Kind = Literal["search", "sweep"]
Axis = Literal["rate", "concurrency"]
End = Literal["edge", "floor", "none", "client", "early"]


class Found(Struct, frozen=True, kw_only=True):
    """The result of a search (docs/search.md)."""

    level: Annotated[float | None, about("The highest that meets the SLO; null: none does.")]
    fails: Annotated[float | None, about("The lowest above it that does not; null: nothing failed.")]
    end: Annotated[End, about("How it ended.")]
    last: Annotated[Rate | None, about("The level that was tried last; null: the search ended early.")]


class PointLatencies(Struct, frozen=True, kw_only=True):
    """Latencies of a run on the clock of `latency_from`, ms; null: none was measured."""

    ttft_p50: Annotated[float | None, about("Median TTFT.")]
    ttft_p99: Annotated[float | None, about("99th percentile of TTFT.")]
    tpot_p50: Annotated[float | None, about("Median TPOT.")]
    tpot_p99: Annotated[float | None, about("99th percentile of TPOT.")]
    e2el_mean: Annotated[float | None, about("Mean E2EL.")]

    def named(self, name: str) -> float | None:
        """Look up a latency by its name: ttft_p50.

        Raises:
            AttributeError: No latency has this name.
        """
        found: float | None = getattr(self, name)
        return found


class Point(Struct, frozen=True, kw_only=True):
    """One run of a series."""

    level: Annotated[Rate, about('Of the load; "inf": all at once.')]
    met: Annotated[
        bool | None,
        about(
            "Whether it meets the SLO; null: there is none, or the run is INVALID, ended early, or too short to tell."
        ),
    ]
    why: Annotated[str | None, about("Why it ended early, or does not tell; null: neither.")]
    slo: Annotated[list[LimitResult], about("Each limit.")]
    verdict: Annotated[Verdict, about("Whether to believe the run.")]
    latency_ms: Annotated[PointLatencies, about("Latencies on the clock of `latency_from`, ms.")]
    saved: Annotated[list[str], about("Its files.")]
    result: RunBrief

    def with_demands(self, met: bool | None, why: str | None, limits_met: Sequence[bool | None]) -> "Point":
        """Replace what the run itself shows of the SLO by the verdict of a search.

        Args:
            met: Whether the run meets the demands; None: too few requests to tell.
            why: Why it ended early, or does not tell.
            limits_met: Whether it meets each limit, in their order; empty: unknown.
        """
        each = limits_met or [None] * len(self.slo)
        rows = [msgspec.structs.replace(row, met=is_met) for row, is_met in zip(self.slo, each, strict=False)]
        return msgspec.structs.replace(self, met=met, why=why, slo=rows)


class Series(Struct, kw_only=True):
    """Several runs at one server: what `loadgen search`, or `loadgen run` with several levels, saves of all of them."""

    loadgen_series: Annotated[Literal[1], about("The version of this schema.")] = SERIES_SCHEMA
    kind: Annotated[Kind, about("What it is.")]
    over: Annotated[Axis, about("Of what the levels are: requests per second, or requests in flight.")]
    slo: Annotated[str | None, about("The limits that runs are held against; null: none.")]
    latency_from: Annotated[Clock, about("The clock on which SLOs are judged.")]
    partial: Annotated[str | None, about("Why there is no more of it; null: it is complete.")] = None
    found: Annotated[Found | None, about("The result of a search; null of a sweep.")] = None
    knee: Annotated[
        Rate | None,
        about(
            "Of a sweep of three levels or more, the level with the most output tokens/s for its mean E2EL; null: "
            "none, or the last level."
        ),
    ] = None
    points: Annotated[list[Point], about("The runs in the order in which they ended.")] = msgspec.field(
        default_factory=list
    )
    notes: Annotated[list[str], about("What else is to be known.")] = msgspec.field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON as it is saved."""
        data: dict[str, Any] = to_json_values(self)
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read the JSON that `to_dict` returns.

        Raises:
            KeyError, TypeError, ValueError: It is something else.
        """
        return from_json_values(data, cls)
