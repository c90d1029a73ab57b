"""Limits of an SLO, and what a run shows of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import Struct

from loadgen.config import slo
from loadgen.metrics.snapshot import Snapshot
from loadgen.metrics.statistic import client_error_ms, statistic_ms
from loadgen.report.result.fields import from_json_values
from loadgen.util.number_format import four_digits


class LimitResult(Struct, frozen=True, kw_only=True):
    """One limit of an SLO."""

    limit: Annotated[str, "The limit as written."]
    value: Annotated[
        float | None,
        "Measured value, ms, or a share from 0 to 1 for error_rate; null: it was not measured, or falls on failed "
        "requests (`beyond`).",
    ]
    client_error_ms: Annotated[
        float | None, "How far the value can be from the truth because of the client, ms; null: not at all."
    ] = None
    beyond: Annotated[bool, "Whether the value falls on failed requests, which miss every limit."] = False
    met: Annotated[
        bool | None,
        "Whether it is met; null: unknown, because of the client error, or in a search of too few requests.",
    ]

    @property
    def value_text(self) -> str:
        """The value with its unit; n/a if it is unknown."""
        if self.value is not None and "_rate" in self.limit:
            return f"{100 * self.value:.4g}%"
        return four_digits(self.value, "ms")


def all_met(results: Sequence[LimitResult]) -> bool | None:
    """Return whether all limits are met; None where none is missed, but of some it cannot be told."""
    met = {result.met for result in results}
    return False if False in met else None if None in met else True


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
        failed = 0 if metric in slo.GAPS else snapshot.failures.failed  # gaps are those of ok requests
        value = statistic_ms(snapshot.histograms[distribution], name, failed)
        return value, client_error_ms(snapshot, distribution, name, failed)

    rows = slo.judge(slo.required_limits(limits) if limits else [], lookup)
    return from_json_values(rows, list[LimitResult])
