"""Request sample: the latencies of single requests over time, for a scatter plot."""

from __future__ import annotations

from typing import Annotated, Self

import numpy as np
from msgspec import Struct

from loadgen.metrics.snapshot import CANCELLED, DISCONNECTED, FAILED, Snapshot
from loadgen.util.arrays import Int64s

STRETCHES = 200  # of a run, each with as many requests as any other
A_STRETCH = 5  # requests that are kept of each


class RequestSample(Struct, frozen=True, kw_only=True):
    """Requests over time: all of up to 1,000. Each list has an item for each request, in the order of `sent_s`.

    Of more requests, each of 200 stretches keeps five: the ones with the longest TTFT and the longest E2EL, the first
    that failed, and two others. Requests that were cancelled, or whose users left, are left out.
    """

    requests: Annotated[int, "Number of requests that the sample stands for."]
    sent_s: Annotated[list[float], "When it was sent, s on the clock of the run; else when it ended."]
    ttft_ms: Annotated[list[float | None], "TTFT on the clock of `latency_from`, ms; null: the request failed."]
    e2el_ms: Annotated[
        list[float], "E2EL on the clock of `latency_from`, ms; of a failed request, the time from sent to its end."
    ]

    @classmethod
    def of(cls, snapshot: Snapshot) -> Self | None:
        """Take the sample; None where no request has ended.

        Args:
            snapshot: The snapshot of the run.
        """
        ended = ~np.isin(snapshot.ttft, (CANCELLED, DISCONNECTED))
        if not ended.any():
            return None
        sent, closed = snapshot.sent[ended], snapshot.closed[ended]
        ttft, e2el = snapshot.ttft[ended], snapshot.e2el[ended]
        at = np.where(sent >= 0, sent, closed)
        took = np.where(ttft == FAILED, closed - at, e2el)
        order = np.lexsort((snapshot.index[ended], at))
        if len(order) > STRETCHES * A_STRETCH:
            order = np.concatenate([_kept(stretch, ttft, e2el) for stretch in np.array_split(order, STRETCHES)])
        return cls(
            requests=int(ended.sum()),
            sent_s=_rounded(at[order], 1e9),
            ttft_ms=[
                None if failed else ms
                for ms, failed in zip(_rounded(ttft[order], 1e6), ttft[order] == FAILED, strict=True)
            ],
            e2el_ms=_rounded(took[order], 1e6),
        )


def _kept(stretch: Int64s, ttft: Int64s, e2el: Int64s) -> Int64s:
    """Select the requests of a stretch, in its order: the slowest, one that failed, the first, and the middle one."""
    failed = np.flatnonzero(ttft[stretch] == FAILED)[:1]
    slowest = [np.argmax(ttft[stretch]), np.argmax(e2el[stretch])]
    kept: Int64s = stretch[np.unique([*slowest, *failed, 0, len(stretch) // 2])]
    return kept


def _rounded(ns: Int64s, unit: float) -> list[float]:
    """Convert to a unit of so many ns, with three decimals: the sample is for a picture, and stays small."""
    found: list[float] = np.round(ns / unit, 3).tolist()
    return found
