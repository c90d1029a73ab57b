"""Request groups: what became of a part of the requests of a run, from the row that is kept of each."""

from __future__ import annotations

from typing import Annotated, Any, Self

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from loadgen.metrics.snapshot import DISCONNECTED, FAILED, Snapshot
from loadgen.util.arrays import Int64s
from loadgen.util.number_format import to_ms


class GroupLatency(Struct, frozen=True, kw_only=True):
    """A latency of the ok requests of a group."""

    count: Annotated[int, "How many requests have it."]
    mean: Annotated[float | None, "Mean, ms; null: no request has it."]
    p50: Annotated[float | None, "Median, ms."]
    p90: Annotated[float | None, "90th percentile, ms."]
    p99: Annotated[float | None, "99th percentile, ms."]

    @classmethod
    def of(cls, values: Int64s) -> Self:
        """Summarize values in ns, shape (n,)."""
        mean = to_ms(float(values.mean())) if len(values) else None
        p50, p90, p99 = (percentile_ms(values, p) for p in (50, 90, 99))
        return cls(count=len(values), mean=mean, p50=p50, p90=p90, p99=p99)


def percentile_ms(values: Int64s, p: float) -> float | None:
    """Return a percentile, 0 to 100, of values in ns, shape (n,), in ms; None where there are none."""
    return to_ms(float(np.percentile(values, p))) if len(values) else None


class RequestGroup(Struct, frozen=True, kw_only=True):
    """Requests of a group."""

    requests: Annotated[int, "Requests that ended."]
    ok: Annotated[int, "Those that succeeded."]
    failed: Annotated[int, "Those that failed, without cancelled ones."]
    left: Annotated[int, "Those whose users left (--disconnect), and what they would have asked next."] = 0
    cached_share: Annotated[
        float | None,
        "Share of the prompt tokens that came from the server's cache, of ok requests; null: it reported none.",
    ] = None
    ttft_ms: Annotated[GroupLatency, "TTFT, on the clock of `latency_from`."]
    tpot_ms: Annotated[GroupLatency, "TPOT, as vLLM divides."]
    e2el_ms: Annotated[GroupLatency, "E2EL, on the clock of `latency_from`."]

    @classmethod
    def of(cls, snapshot: Snapshot, members: NDArray[np.bool_], **more: Any) -> Self:
        """Summarize a part of the requests of a snapshot.

        Args:
            snapshot: The snapshot.
            members: Which of its rows are in the group, shape (rows,).
            more: Fields that a subclass has besides.
        """
        ttft, e2el, tpot = (column[members] for column in (snapshot.ttft, snapshot.e2el, snapshot.tpot))
        ok = e2el >= 0
        cached, prompts = snapshot.cached[members], snapshot.input[members]
        counted = ok & (cached >= 0) & (prompts > 0)
        return cls(
            requests=int(members.sum()),
            ok=int(ok.sum()),
            failed=int((e2el == FAILED).sum()),
            left=int((e2el == DISCONNECTED).sum()),
            cached_share=float(cached[counted].sum() / prompts[counted].sum()) if counted.any() else None,
            ttft_ms=GroupLatency.of(ttft[ok & (ttft >= 0)]),
            tpot_ms=GroupLatency.of(tpot[ok & (tpot >= 0)]),
            e2el_ms=GroupLatency.of(e2el[ok]),
            **more,
        )
