"""Request groups: what became of the requests of each target, class, phase of a load profile,
and turn of sessions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Self

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from loadgen.config import slo
from loadgen.config.load_profile import LoadProfile
from loadgen.config.settings import shown_urls
from loadgen.core.outcome import Cause, ended_by
from loadgen.core.request_rows import FAILED, LEFT
from loadgen.metrics import throughput
from loadgen.metrics.run_data import RunData
from loadgen.metrics.snapshot import Snapshot
from loadgen.report.result.latencies import GroupLatency, Latencies
from loadgen.report.result.outcomes import LimitResult, Outcomes, judge_limits
from loadgen.report.result.rates import is_goodput_known
from loadgen.util.arrays import Int64s
from loadgen.util.clock import NS_PER_S

WHOSE_USERS_LEFT = (
    "Requests whose users left (--disconnect), and the turns that they would have sent next."
)


class RequestGroup(Struct, frozen=True, kw_only=True):
    """Requests of a group."""

    requests: Annotated[int, "Requests that ended."]
    ok: Annotated[int, "Those that succeeded."]
    failed: Annotated[int, "Those that failed; without those that ended as `cancelled`."]
    left: Annotated[int, WHOSE_USERS_LEFT] = 0
    cached_share: Annotated[
        float | None,
        "Share of the prompt tokens that came from the server's cache, of ok requests; null: it "
        "reported none.",
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
        ttft, e2el, tpot = (
            column[members] for column in (snapshot.ttft, snapshot.e2el, snapshot.tpot)
        )
        ok = e2el >= 0
        cached, prompts = snapshot.cached[members], snapshot.input[members]
        counted = ok & (cached >= 0) & (prompts > 0)
        return cls(
            requests=int(members.sum()),
            ok=int(ok.sum()),
            failed=int((e2el == FAILED).sum()),
            left=int((e2el == LEFT).sum()),
            cached_share=float(cached[counted].sum() / prompts[counted].sum())
            if counted.any()
            else None,
            ttft_ms=GroupLatency.of(ttft[ok & (ttft >= 0)]),
            tpot_ms=GroupLatency.of(tpot[ok & (tpot >= 0)]),
            e2el_ms=GroupLatency.of(e2el[ok]),
            **more,
        )


class PhaseResult(RequestGroup, frozen=True, kw_only=True):
    """The requests that were due in a phase of `--rate-profile` or `--concurrency-profile`."""

    load: Annotated[str, "The phase, as the flag has it."]
    start_s: Annotated[float, "When it begins, s on the clock."]
    end_s: Annotated[float, "When it ends, s on the clock."]
    due: Annotated[int, "Requests that were due in it."]
    answers_per_s: Annotated[float, "Ok requests that ended in it, per second."]
    output_throughput: Annotated[
        float, "Output tokens of ok requests per second of it, each counted when it arrived."
    ]
    recovered_after_s: Annotated[
        float | None,
        "After a burst, a phase with a higher mean load than those before and after it: seconds "
        "from its end until the backlog, the requests that are due and not ended, is at most the "
        "largest of the phase before the burst; null: no burst came before, or the run ended "
        "first.",
    ]

    @classmethod
    def each(cls, run: RunData) -> list[Self]:
        """Summarize the phases; empty where the load has none.

        A phase after the end of the run has no requests.
        """
        profile, snapshot = run.settings.load_profile, run.snapshot
        if profile is None:
            return []
        if run.closed_loop:  # a request is due when it is sent
            due_ns, row_due_ns = np.sort(snapshot.sent[snapshot.sent >= 0]), snapshot.sent
        else:
            due_ns = run.schedule.due_ns
            row_due_ns = np.where(
                due_ns[snapshot.index] >= 0, due_ns[snapshot.index], snapshot.sent
            )
        ok_ns = snapshot.closed[snapshot.e2el >= 0]
        windows = [
            (round(start * NS_PER_S), round(end * NS_PER_S)) for start, end in profile.windows_s()
        ]
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
            for number, (phase, (start, end)) in enumerate(
                zip(profile.phases, windows, strict=True)
            )
        ]


class _Backlog:
    """Requests that are due and have not ended, over time.

    Args:
        due_ns: When they are due, ascending.
        ended_ns: When they ended, in any order.
    """

    def __init__(self, due_ns: Int64s, ended_ns: Int64s) -> None:
        times = np.concatenate((due_ns, ended_ns))
        changes = np.repeat((1, -1), (len(due_ns), len(ended_ns)))
        order = np.argsort(times, kind="stable")
        self._times = np.insert(times[order], 0, np.iinfo(np.int64).min)
        self._after = np.insert(np.cumsum(changes[order]), 0, 0)

    def _place(self, at_ns: int) -> int:
        return int(np.searchsorted(self._times, at_ns, side="right")) - 1

    def most(self, start_ns: int, end_ns: int) -> int:
        """Return the greatest number from `start_ns` to `end_ns`."""
        end = int(np.searchsorted(self._times, end_ns))
        return int(self._after[self._place(start_ns) : end].max())

    def first_at_most(self, number: int, from_ns: int) -> int | None:
        """Return when it is first at most `number`, from `from_ns` on; None: never."""
        first = self._place(from_ns)
        places = np.flatnonzero(self._after[first:] <= number)
        return max(from_ns, int(self._times[first + places[0]])) if len(places) else None


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


class Turn(RequestGroup, frozen=True, kw_only=True):
    """The requests that are the n-th turn of their session."""

    turn: Annotated[int, "Its place in the session, from 1."]

    @classmethod
    def each(cls, run: RunData) -> list[Self]:
        """Summarize the turns that were sent, in their order; empty where the run has no
        sessions.
        """
        starts = _starts(run)
        if starts is None:
            return []
        turns = run.snapshot.index - starts[run.snapshot.index]
        return [
            cls.of(run.snapshot, turns == turn, turn=int(turn) + 1) for turn in np.unique(turns)
        ]


class SessionTimes(Struct, frozen=True, kw_only=True):
    """How long sessions took."""

    count: Annotated[int, "Sessions that began."]
    complete: Annotated[int, "Sessions in which every turn succeeded."]
    turns_mean: Annotated[float, "Mean number of turns of a session, as planned."]
    time_ms: Annotated[
        GroupLatency,
        "From due of the first turn to the end of the last answer, with think times, of complete "
        "sessions.",
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
    """Return the number of the first request of each request's session, shape (count,); None
    without sessions.
    """
    begins = run.schedule.begins
    if begins.all():
        return None
    starts: Int64s = np.maximum.accumulate(np.where(begins, np.arange(len(begins)), 0))
    return starts


class Target(Struct, frozen=True, kw_only=True):
    """Results of one of several targets."""

    base_url: Annotated[str, "Its URL, without a user."]
    requests: Annotated[int, "Requests sent to it that ended."]
    ok: Annotated[int, "Requests that succeeded."]
    failed: Annotated[int, "Requests that failed; without those that ended as `cancelled`."]
    outcomes: Annotated[Outcomes, "Its requests by how they ended."]
    output_tokens: Annotated[int, "Output tokens of its ok requests."]
    request_throughput: Annotated[
        float | None, "Ok requests per second of the whole run; null where nothing was sent."
    ]
    output_throughput: Annotated[
        float | None, "Output tokens per second of the whole run; null where nothing was sent."
    ]
    max_concurrent_requests: Annotated[int, "Peak number of requests in flight at this target."]
    latency_ms: Annotated[Latencies, "Its latencies, as in the whole result, ms."]

    @classmethod
    def each(cls, run: RunData) -> list[Self]:
        """Summarize each of several targets, in their order; empty where there is one, which is
        the whole.
        """
        parts = zip(shown_urls(run.settings), run.snapshot.targets, strict=False)
        return [cls(base_url=url, **_part_fields(run, part)) for url, part in parts]


class ClassResult(Struct, frozen=True, kw_only=True):
    """Results of one class of requests.

    Rates are over the time of the whole run, so that they add up.
    """

    name: Annotated[str, "Its name."]
    share: Annotated[float, "The part of all requests that it should get on average."]
    priority: Annotated[int | None, "The priority of its requests; null: they have none."]
    model: Annotated[str | None, "The model or adapter that they name; null: the run's."]
    requests: Annotated[int, "Its requests that ended."]
    ok: Annotated[int, "Requests that succeeded."]
    failed: Annotated[int, "Requests that failed; without those that ended as `cancelled`."]
    left: Annotated[int, WHOSE_USERS_LEFT] = 0
    outcomes: Annotated[Outcomes, "Its requests by how they ended."]
    error_rate: Annotated[float | None, "As in the whole result; null where no request ended."]
    output_tokens: Annotated[int, "Output tokens of its ok requests."]
    request_throughput: Annotated[
        float | None, "Ok requests per second; null where nothing was sent."
    ]
    output_throughput: Annotated[
        float | None, "Output tokens per second; null where nothing was sent."
    ]
    goodput_requests_per_s: Annotated[
        float | None,
        "Requests per second that met every limit of its goodput, or of --goodput; null without "
        "limits.",
    ]
    good_share: Annotated[
        float | None,
        "Share of its requests whose users stayed that did; null if that rate is null.",
    ]
    max_concurrent_requests: Annotated[int, "Peak number of its requests in flight."]
    latency_ms: Annotated[Latencies, "Its latencies, as in the whole result, ms."]
    slo: Annotated[list[LimitResult], "Each limit of its own SLO, judged by its requests alone."]

    @classmethod
    def each(cls, run: RunData) -> list[Self]:
        """Summarize each class, in their order; empty without classes."""
        results = list[Self]()
        for request_class, part in zip(
            run.settings.request_classes, run.snapshot.classes, strict=False
        ):
            limits = slo.parse_goodput(run.settings.of_class(request_class).goodput)
            left = ended_by(part.outcomes, Cause.USER)
            stayed = part.ended - left
            good = part.counters["good"] if is_goodput_known(limits, run.snapshot) else None
            results.append(
                cls(
                    name=request_class.name,
                    share=request_class.share,
                    priority=request_class.priority,
                    model=request_class.model,
                    left=left,
                    error_rate=part.failures.server_rate,
                    goodput_requests_per_s=throughput.per_second(good, run.snapshot),
                    good_share=good / stayed if good is not None and stayed else None,
                    slo=judge_limits(request_class.slo, part, run.settings.latency_from),
                    **_part_fields(run, part),
                )
            )
        return results

    @property
    def named_limits(self) -> list[LimitResult]:
        """The limits of its SLO, each with the name of the class."""
        return [msgspec.structs.replace(row, limit=f"{self.name}:{row.limit}") for row in self.slo]


def _part_fields(run: RunData, part: Snapshot) -> dict[str, Any]:
    """Summarize the requests of a part of a run that were recorded apart, by the names of
    fields.
    """
    # Rates are over the time of the whole run, so that they add up.
    tokens = part.counters["output_tokens"]
    return {
        "requests": part.ended,
        "ok": part.ok,
        "failed": part.not_ok,
        "outcomes": part.outcomes,
        "output_tokens": tokens,
        "request_throughput": throughput.per_second(part.ok, run.snapshot),
        "output_throughput": throughput.per_second(tokens, run.snapshot),
        "max_concurrent_requests": throughput.peak_concurrency(part),
        "latency_ms": Latencies.of(part, run.percentiles),
    }
