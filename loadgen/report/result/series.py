"""Series: several runs at one server, at one level of load after another, as one JSON object.

A `RunBrief`, the single numbers and the verdict of a result, represents a run in series and
studies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

import msgspec
from msgspec import Struct

from loadgen.checks import Verdict
from loadgen.config.load import AxisName
from loadgen.report.result import Counts, RunResult
from loadgen.report.result.fields import from_json_values, to_json_values
from loadgen.report.result.latencies import Clock
from loadgen.report.result.numbers import Rate, RunNumbers
from loadgen.report.result.outcomes import LimitResult, Outcomes
from loadgen.report.result.rates import Efficiency

SERIES_SCHEMA: Literal[1] = 1
SeriesKind = Literal["search", "sweep"]
SearchEnd = Literal["edge", "floor", "none", "client", "disturbed", "early"]


class BriefFindings(Struct, frozen=True, kw_only=True):
    """Verdict and findings, as in the result of the run."""

    verdict: Annotated[Verdict, "Whether the numbers of the run can be trusted."]
    overloaded: Annotated[
        bool | None, "Whether requests came faster than they were answered; null: unknown."
    ] = None
    simulated: Annotated[bool, "Whether loadgen's own simulator was measured."]
    error_rate: Annotated[
        float | None, "Requests that the server failed, as a share of those that ended."
    ]
    client_error_rate: Annotated[
        float | None,
        "The share of the same requests that the client never sent, by a fault of its own.",
    ] = None
    slo: Annotated[list[LimitResult], "Each limit of --slo."]
    closed_loop: Annotated[
        bool | None, "Whether each request was due when a slot was free for it."
    ] = None
    answers_per_s: Annotated[float | None, "Ok answers per second, as in `rates`."] = None
    finish_reasons: Annotated[Counts, "Ok requests by the finish reason that the server gave."] = {}
    outcomes: Annotated[Outcomes, "Requests by how they ended."] = {}
    efficiency: Annotated[
        Efficiency | None,
        "Speed for a user and per GPU, energy and cost, as in the result of the run.",
    ] = None
    reasons: Annotated[list[str], "Why the run is not VALID."]
    metadata: Annotated[list[str], "The keys of --metadata."] = []
    prompts_sha256: Annotated[str | None, "SHA-256 of all prompts; null: unknown."]
    target: Annotated[str | None, "URLs of the servers; null: unknown."] = None
    loadgen: Annotated[str | None, "Version of loadgen that measured; null: unknown."] = None


# What a study keeps of a result that was measured elsewhere: all that was judged of the numbers
# themselves.
JUDGED = tuple(
    name
    for name in BriefFindings.__struct_fields__
    if name not in ("reasons", "metadata", "prompts_sha256", "target", "loadgen")
)


class RunBrief:
    """The single numbers of a run's result, and its verdict.

    Args:
        numbers: By the names of `vllm bench serve`.
        findings: What was judged.
    """

    __slots__ = ("findings", "numbers")

    def __init__(self, numbers: RunNumbers, findings: BriefFindings) -> None:
        self.numbers, self.findings = numbers, findings

    @classmethod
    def of(cls, result: RunResult) -> Self:
        """Shorten a result."""
        provenance = result.provenance
        findings = BriefFindings(
            **{name: getattr(result, name) for name in JUDGED if name != "answers_per_s"},
            answers_per_s=result.rates.answers_per_s,
            reasons=result.reasons(),
            metadata=[
                pair.partition("=")[0].strip() for pair in provenance.saved_settings["metadata"]
            ],
            prompts_sha256=provenance.saved_prompts.get("sha256"),
            target=provenance.target_urls or None,
            loadgen=provenance.versions.loadgen,
        )
        return cls(result.numbers, findings)

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON: vLLM's flat keys, and the findings under `loadgen`."""
        return self.numbers.to_dict() | {"loadgen": to_json_values(self.findings)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read the JSON that `to_dict` returns.

        Raises:
            KeyError, TypeError, ValueError: It is something else.
        """
        numbers = RunNumbers.from_dict(data)
        # Files of earlier versions do not name the keys of --metadata: texts that are nothing else.
        keys = [key for key, value in numbers.metadata.items() if isinstance(value, str)]
        return cls(numbers, from_json_values({"metadata": keys} | data["loadgen"], BriefFindings))


class Found(Struct, frozen=True, kw_only=True):
    """The result of a search (docs/search.md)."""

    level: Annotated[float | None, "Highest level that meets the SLO; null: none does."]
    fails: Annotated[
        float | None,
        "Lowest higher level that misses the SLO, in undisturbed runs; null: none did.",
    ]
    end: Annotated[SearchEnd, "How the search ended."]
    last: Annotated[Rate | None, "The level that was tried last; null: the search ended early."]


class PointLatencies(Struct, frozen=True, kw_only=True):
    """Latencies of a run on the clock of `latency_from`, ms; null: none was measured."""

    ttft_p50: Annotated[float | None, "Median TTFT."]
    ttft_p99: Annotated[float | None, "99th percentile of TTFT."]
    tpot_p50: Annotated[float | None, "Median TPOT."]
    tpot_p99: Annotated[float | None, "99th percentile of TPOT."]
    e2el_mean: Annotated[float | None, "Mean E2EL."]
    e2el_p50: Annotated[float | None, "Median E2EL."] = None
    e2el_p99: Annotated[float | None, "99th percentile of E2EL."] = None

    def named(self, name: str) -> float | None:
        """Look up a latency by its name: ttft_p50.

        Raises:
            AttributeError: No latency has this name.
        """
        latency: float | None = getattr(self, name)
        return latency


class Point(Struct, frozen=True, kw_only=True):
    """One run of a series."""

    level: Annotated[Rate, 'Level of the load; "inf": all at once.']
    met: Annotated[
        bool | None,
        "Whether the run meets the SLO; null: no SLO, or the run is INVALID, ended early, or is "
        "too short to tell.",
    ]
    why: Annotated[str | None, "Why the run ended early, or cannot decide the SLO; null: neither."]
    slo: Annotated[list[LimitResult], "Each limit of the SLO."]
    verdict: Annotated[Verdict, "Whether the numbers of the run can be trusted."]
    latency_ms: PointLatencies
    saved: Annotated[list[str], "Files of the run."]
    result: RunBrief

    def with_verdict(
        self, met: bool | None, why: str | None, limits_met: Sequence[bool | None]
    ) -> Point:
        """Replace what the run itself shows of the SLO by the verdict of a search.

        Args:
            met: Whether the run meets the SLO; None: too few requests to tell.
            why: Why it ended early, or does not tell.
            limits_met: Whether it meets each limit, in their order; empty: unknown.
        """
        states = limits_met or [None] * len(self.slo)
        rows = [
            msgspec.structs.replace(row, met=is_met)
            for row, is_met in zip(self.slo, states, strict=False)
        ]
        return msgspec.structs.replace(self, met=met, why=why, slo=rows)


class BoundedLimit(Struct, frozen=True, kw_only=True):
    """One limit of the SLO, and what all runs at a level of a search show of it."""

    limit: Annotated[str, "The limit as written."]
    value: Annotated[
        float | None,
        "Value of all runs, ms, or a share for error_rate; null: none, or it falls on failed "
        "requests.",
    ]
    low: Annotated[
        float | None,
        "Its lower bound: above the limit, the limit is missed; null: unknown, or it falls on "
        "failed requests.",
    ]
    high: Annotated[
        float | None,
        "Its upper bound: within the limit, the limit is met; null: unknown, or the requests show "
        "none.",
    ]
    met: Annotated[bool | None, "Whether it is met; null: the bounds do not tell."]


class LoadLevel(Struct, frozen=True, kw_only=True):
    """A level of a search, judged by all its runs together."""

    level: Annotated[float, "Level of the load."]
    met: Annotated[bool | None, "Whether the level meets the SLO; null: its runs do not show it."]
    runs: Annotated[int, "Number of runs that count."]
    why: Annotated[
        str | None,
        "Why it misses the SLO whatever the bounds are, or why no run counts; null: neither.",
    ]
    slo: Annotated[list[BoundedLimit], "Each limit of the SLO."]
    doubted: Annotated[str | None, "What disturbed all its runs, if it is not met."] = None


class Series(Struct, kw_only=True):
    """Several runs against one server, as saved by `loadgen search`, or by `loadgen run` with
    several levels.
    """

    loadgen_series: Annotated[Literal[1], "The version of this schema."] = SERIES_SCHEMA
    kind: Annotated[SeriesKind, "Kind of series."]
    over: Annotated[AxisName, "What the levels are: requests per second, or requests in flight."]
    load: Annotated[
        str | None,
        'The load of repeated runs, such as "a trace"; null: the runs differ in their load.',
    ] = None
    slo: Annotated[str | None, "The limits that runs must meet; null: none."]
    latency_from: Annotated[Clock, "The clock on which SLOs are judged."]
    partial: Annotated[str | None, "Why the series ended early; null: it is complete."] = None
    found: Annotated[Found | None, "The result of a search; null for a sweep."] = None
    knee: Annotated[
        Rate | None,
        "In a sweep of three or more levels, the level with the highest ratio of output tokens/s "
        "to mean E2EL; null: none, or the last level.",
    ] = None
    points: Annotated[list[Point], "The runs in the order in which they ended."] = []
    levels: Annotated[
        list[LoadLevel], "The levels of a search, ascending, each judged by all its runs together."
    ] = []
    notes: Annotated[list[str], "Other remarks."] = []

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
