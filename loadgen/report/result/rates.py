"""Rates: counts per second of the run."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, NamedTuple, Self

from msgspec import Struct

from loadgen.core.outcome import Outcome
from loadgen.metrics import throughput
from loadgen.metrics.run_data import RunData
from loadgen.metrics.snapshot import Snapshot
from loadgen.metrics.streamed_tokens import Comparison


class PerSecond(NamedTuple):
    """Divides counts by the duration of the run.

    Attributes:
        duration_s: From the first send until the last request has ended, s.
    """

    duration_s: float

    @classmethod
    def of(cls, snapshot: Snapshot) -> Self:
        """Take the duration of a run."""
        return cls(throughput.wall_ns(snapshot) / 1e9)

    def rate(self, count: float) -> float | None:
        """Divide; None where nothing was sent."""
        return count / self.duration_s if self.duration_s else None


def is_goodput_known(limited: Collection[str], snapshot: Snapshot) -> bool:
    """Return whether it is known how many requests met their limits.

    Each was judged as it ended, when it was not known yet how many of its tokens had been streamed.

    Args:
        limited: The latencies with a limit; empty: there are none.
        snapshot: The snapshot of the whole run.
    """
    sample = Comparison.of(snapshot)
    return bool(limited) and not ("tpot" in limited and sample is not None and sample.hides)


class Rates(Struct, frozen=True, kw_only=True):
    """Rates beyond vLLM's."""

    answers_per_s: Annotated[
        float | None,
        "Ok answers per second from the end of the first to the end of the last; null with fewer than 10 of them, "
        "and where all requests were due at once or in a closed loop.",
    ] = None
    steady_output_tokens_per_s: Annotated[
        float | None, "Output tokens per second between ramp and tail; null if less than a second is left."
    ]
    uncached_input_tokens_per_s: Annotated[
        float | None, "Prompt tokens per second that were not in the cache; null if the server does not count them."
    ]
    goodput_requests_per_s: Annotated[
        float | None,
        "Requests per second that met every --goodput limit, on the clock of `latency_from`; null without it.",
    ]
    good_share: Annotated[
        float | None,
        "Share of the scheduled requests whose users stayed that met every limit; null if that rate is null.",
    ]

    @classmethod
    def of(cls, run: RunData) -> Self:
        """Compute them."""
        snapshot = run.snapshot
        counters, per_second = snapshot.counters, PerSecond.of(snapshot)
        stayed = snapshot.scheduled - snapshot.outcomes.get(Outcome.DISCONNECTED, 0)
        is_judged = is_goodput_known(run.goodput_metrics, snapshot)
        uncached = counters["input_tokens"] - counters["cached_tokens"]
        return cls(
            answers_per_s=throughput.answer_rate(snapshot) if run.schedule.duration_ns else None,
            steady_output_tokens_per_s=throughput.steady_output_rate(snapshot) if run.settings.streams else None,
            uncached_input_tokens_per_s=per_second.rate(uncached) if counters["cached_counted"] else None,
            goodput_requests_per_s=per_second.rate(counters["good"]) if is_judged else None,
            good_share=counters["good"] / stayed if is_judged and stayed else None,
        )
