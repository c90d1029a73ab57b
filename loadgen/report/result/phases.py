"""Phases: what became of the requests of each phase of a profile of the load."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Self

import numpy as np

from loadgen.config.load_profile import LoadProfile
from loadgen.metrics import throughput
from loadgen.metrics.run_data import RunData
from loadgen.report.result.request_group import RequestGroup
from loadgen.util.arrays import Int64s
from loadgen.util.clock import NS_PER_S


class PhaseResult(RequestGroup, frozen=True, kw_only=True):
    """The requests that were due in a phase of `--rate-profile` or `--concurrency-profile`."""

    load: Annotated[str, "The phase, as the flag has it."]
    start_s: Annotated[float, "When it begins, s on the clock."]
    end_s: Annotated[float, "When it ends, s on the clock."]
    due: Annotated[int, "Requests that were due in it."]
    answers_per_s: Annotated[float, "Ok requests that ended in it, per second."]
    output_throughput: Annotated[float, "Output tokens of ok requests per second of it, each counted when it arrived."]
    recovered_after_s: Annotated[
        float | None,
        "After a burst, a phase with a higher mean load than those before and after it: seconds from its end until "
        "the backlog, the requests that are due and not ended, is at most the largest of the phase before the "
        "burst; null: no burst came before, or the run ended first.",
    ]

    @classmethod
    def each(cls, run: RunData) -> list[Self]:
        """Summarize the phases; empty where the load has none. A phase after the end of the run has no requests."""
        profile, snapshot = run.settings.load_profile, run.snapshot
        if profile is None:
            return []
        if run.closed_loop:  # a request is due when it is sent
            due_ns, row_due_ns = np.sort(snapshot.sent[snapshot.sent >= 0]), snapshot.sent
        else:
            due_ns = run.schedule.due_ns
            row_due_ns = np.where(due_ns[snapshot.index] >= 0, due_ns[snapshot.index], snapshot.sent)
        ok_ns = snapshot.closed[snapshot.e2el >= 0]
        windows = [(round(start * NS_PER_S), round(end * NS_PER_S)) for start, end in profile.windows_s()]
        backlog = _Backlog(due_ns[due_ns >= 0], snapshot.closed)
        return [
            cls.of(
                snapshot,
                (row_due_ns >= start) & (row_due_ns < end),
                load=str(phase),
                start_s=start / NS_PER_S,
                end_s=end / NS_PER_S,
                due=int(((due_ns >= start) & (due_ns < end)).sum()),
                answers_per_s=int(((ok_ns >= start) & (ok_ns < end)).sum()) / phase.length_s,
                output_throughput=throughput.output_rate(snapshot, start, end),
                recovered_after_s=_recovery_s(number, profile, windows, backlog),
            )
            for number, (phase, (start, end)) in enumerate(zip(profile.phases, windows, strict=True))
        ]


class _Backlog:
    """Requests that are due and have not ended, over time.

    Args:
        due_ns: When they are due, ascending.
        ended_ns: When they ended, in any order.
    """

    def __init__(self, due_ns: Int64s, ended_ns: Int64s) -> None:
        self._times = np.concatenate((due_ns, ended_ns))
        order = np.argsort(self._times, kind="stable")
        self._times = self._times[order]
        self._after = np.cumsum(np.concatenate((np.ones(len(due_ns)), -np.ones(len(ended_ns))))[order])

    def most(self, start_ns: int, end_ns: int) -> float:
        """Return the greatest number from `start_ns` to `end_ns`."""
        inside = (self._times > start_ns) & (self._times < end_ns)
        return max(self._at(start_ns), float(self._after[inside].max(initial=0.0)))

    def first_at_most(self, number: float, from_ns: int) -> int | None:
        """Return when it is first at most `number`, from `from_ns` on; None: never."""
        if self._at(from_ns) <= number:
            return from_ns
        later = np.flatnonzero((self._times > from_ns) & (self._after <= number))
        return int(self._times[later[0]]) if len(later) else None

    def _at(self, at_ns: int) -> float:
        place = int(np.searchsorted(self._times, at_ns, side="right"))
        return float(self._after[place - 1]) if place else 0.0


def _recovery_s(
    number: int, profile: LoadProfile, windows: Sequence[tuple[int, int]], backlog: _Backlog
) -> float | None:
    if number < 2:
        return None
    before, burst, after = (phase.mean for phase in profile.phases[number - 2 : number + 1])
    if not before < burst > after:
        return None
    start_ns = windows[number][0]
    end_ns = backlog.first_at_most(backlog.most(*windows[number - 2]), start_ns)
    return None if end_ns is None else (end_ns - start_ns) / NS_PER_S
