"""Sessions: what became of each turn, and how long whole sessions took."""

from __future__ import annotations

from typing import Annotated, Self

import numpy as np
from msgspec import Struct

from loadgen.metrics.run_data import RunData
from loadgen.report.result.request_group import GroupLatency, RequestGroup
from loadgen.util.arrays import Int64s


class Turn(RequestGroup, frozen=True, kw_only=True):
    """The requests that are the n-th turn of their session."""

    turn: Annotated[int, "Its place in the session, from 1."]

    @classmethod
    def each(cls, run: RunData) -> list[Self]:
        """Summarize the turns that were sent, in their order; empty where the run has no sessions."""
        starts = _starts(run)
        if starts is None:
            return []
        turns = run.snapshot.index - starts[run.snapshot.index]
        return [cls.of(run.snapshot, turns == turn, turn=int(turn) + 1) for turn in np.unique(turns)]


class SessionTimes(Struct, frozen=True, kw_only=True):
    """How long sessions took."""

    count: Annotated[int, "Sessions that began."]
    complete: Annotated[int, "Sessions of which every turn succeeded."]
    turns_mean: Annotated[float, "Mean number of turns of a session, as planned."]
    time_ms: Annotated[
        GroupLatency,
        "From due of the first turn to the end of the last answer, with think times, of complete sessions.",
    ]

    @classmethod
    def of(cls, run: RunData) -> Self | None:
        """Compute it; None where the run has no sessions."""
        starts = _starts(run)
        if starts is None:
            return None
        snapshot, due_ns = run.snapshot, run.schedule.due_ns
        planned = np.bincount(starts, minlength=len(starts))
        ok = snapshot.e2el >= 0
        session = starts[snapshot.index]
        succeeded = np.bincount(session[ok], minlength=len(starts))
        ends = np.zeros(len(starts), dtype=np.int64)
        np.maximum.at(ends, session, snapshot.closed)
        complete = (planned > 0) & (succeeded == planned)
        begun = np.unique(session)
        return cls(
            count=len(begun),
            complete=int(complete.sum()),
            turns_mean=float(planned[begun].mean()) if len(begun) else 0.0,
            time_ms=GroupLatency.of((ends - due_ns)[complete]),
        )


def _starts(run: RunData) -> Int64s | None:
    """Return the number of the first request of each request's session, shape (count,); None without sessions."""
    begins = run.schedule.begins
    if begins.all():
        return None
    starts: Int64s = np.maximum.accumulate(np.where(begins, np.arange(len(begins)), 0))
    return starts
