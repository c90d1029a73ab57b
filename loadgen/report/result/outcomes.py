"""Outcomes: how requests ended, with examples, what ended the run, and what it shows of the limits
of an SLO; requests whose users left (--disconnect), and those that were sent again (--retry).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Literal, Self

import msgspec
import numpy as np
from msgspec import UNSET, Struct, UnsetType

from loadgen.checks import server, unfinished_p99_ns
from loadgen.config import slo
from loadgen.core.finish_reasons import is_known
from loadgen.core.outcome import Cause, ended_by
from loadgen.core.request_rows import FAILED
from loadgen.metrics.failures import status_class
from loadgen.metrics.run_data import RunData
from loadgen.metrics.server.names import OF_LAST_STEP
from loadgen.metrics.snapshot import UNFINISHED, Snapshot
from loadgen.metrics.statistic import client_error_ms, statistic_ms
from loadgen.report.result.fields import from_json_values
from loadgen.report.result.latencies import GroupLatency
from loadgen.util.number_format import four_digits, to_ms
from loadgen.workload.draws import EarlyEndDraws

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


class Retries(Struct, frozen=True, kw_only=True):
    """Requests that were sent again after a refusal."""

    asked: Annotated[str, "The value of --retry."]
    attempts: Annotated[int, "How often requests were sent, all attempts together."]
    requests: Annotated[int, "Requests that were sent more than once."]
    ok: Annotated[int, "Those of them that succeeded in the end."]
    failed: Annotated[int, "Those of them whose last attempt failed, too."]
    most_attempts: Annotated[int, "The most attempts of one request."]
    first_refusals: Annotated[Outcomes, "The same requests, by the outcome of their first attempt."]
    first_refusal_ms: Annotated[
        GroupLatency,
        "Time from sent to the end of the refusal, of first attempts that were refused.",
    ]
    first_ttft_ms: Annotated[
        GroupLatency,
        "TTFT of requests whose first attempt succeeded, on the clock of `latency_from`.",
    ]
    first_e2el_ms: Annotated[
        GroupLatency,
        "E2EL of requests whose first attempt succeeded, on the clock of `latency_from`.",
    ]
    retried_ttft_ms: Annotated[
        GroupLatency,
        "TTFT that users saw of requests that succeeded after a retry: from due, over all "
        "attempts.",
    ]
    retried_e2el_ms: Annotated[
        GroupLatency,
        "E2EL that users saw of requests that succeeded after a retry: from due, over all "
        "attempts.",
    ]

    @classmethod
    def of(cls, run: RunData) -> Self | None:
        """Summarize them; None without --retry."""
        if run.settings.retry is None:
            return None
        snapshot = run.snapshot
        again, sent = snapshot.retried, snapshot.sent >= 0
        once = ~np.isin(snapshot.index, again["index"])
        ok = again["e2el_ns"] >= 0
        refusals = np.unique(again["first_status"], return_counts=True)
        answered = once & (snapshot.e2el >= 0)
        streamed = (
            answered & (snapshot.ttft >= 0) if run.settings.streams else np.zeros_like(answered)
        )
        ttft = again["ttft_ns"][ok] if run.settings.streams else again["ttft_ns"][:0]
        return cls(
            asked=run.settings.retry,
            attempts=int(sent.sum()) + int((again["attempts"].astype(np.int64) - 1).sum()),
            requests=len(again),
            ok=int(ok.sum()),
            failed=int(np.isin(snapshot.index[snapshot.ttft == FAILED], again["index"]).sum()),
            most_attempts=int(again["attempts"].max()) if len(again) else min(1, int(sent.sum())),
            first_refusals={
                status_class(status): count
                for status, count in zip(*map(np.ndarray.tolist, refusals), strict=True)
            },
            first_refusal_ms=GroupLatency.of(again["first_ns"]),
            first_ttft_ms=GroupLatency.of(snapshot.ttft[streamed]),
            first_e2el_ms=GroupLatency.of(snapshot.e2el[answered]),
            retried_ttft_ms=GroupLatency.of(ttft),
            retried_e2el_ms=GroupLatency.of(again["e2el_ns"][ok]),
        )


class Departures(Struct, frozen=True, kw_only=True):
    """Requests whose users left before the answer was complete."""

    asked: Annotated[str, "The value of --disconnect."]
    drawn: Annotated[int, "Requests that were sent and whose user was to leave."]
    disconnected: Annotated[
        int, "Those of them whose connection the client closed before the answer was complete."
    ]
    never_sent: Annotated[
        int, "Further turns of sessions, which were not sent because their user had left."
    ]
    server: Annotated[ServerStop, "Whether the servers stopped, by their own counters."]

    @classmethod
    def of(cls, run: RunData) -> Self | None:
        """Count them; None without --disconnect."""
        if run.settings.disconnect is None:
            return None
        snapshot = run.snapshot
        draws = {draws.end.name: draws for draws in EarlyEndDraws.each(run.settings)}["disconnect"]
        return cls(
            asked=run.settings.disconnect,
            drawn=sum(map(draws.drawn, snapshot.index[snapshot.sent >= 0].tolist())),
            disconnected=snapshot.disconnected,
            never_sent=ended_by(snapshot.outcomes, Cause.USER) - snapshot.disconnected,
            server=ServerStop.of(run) if snapshot.disconnected else ServerStop(),
        )


class ServerStop(Struct, frozen=True, kw_only=True):
    """What the servers' own counters say of the requests whose users left."""

    stopped: Annotated[
        bool | None,
        "Whether they stopped working for all of these requests; null: their counters do not say.",
    ] = None
    aborted: Annotated[
        float | None, "Requests that they count as aborted; null: they do not count them."
    ] = None
    finished: Annotated[
        float | None,
        "Answers that they generated to the end, beyond those of ok requests; null: unknown.",
    ] = None
    unread_tokens: Annotated[
        float | None,
        "Output tokens that they generated beyond those that came; null: they do not count them.",
    ] = None
    unfinished: Annotated[
        float | None,
        "Requests that were running or waiting at the last scrape, after the run; null: unknown.",
    ] = None
    scraped_after_s: Annotated[
        float | None,
        "Time from the end of the last request to that scrape, s; null: there was none.",
    ] = None

    @classmethod
    def of(cls, run: RunData) -> Self:
        """Read the counters; those of servers that other clients used say nothing."""
        telemetry, snapshot = run.telemetry, run.snapshot
        if server.unknown_because(run) or server.served_alone(run) is False:
            return cls()
        aborted, ended = telemetry.increase("aborted"), telemetry.increase("requests")
        levels = [telemetry.last(level) for level in ("running", "waiting")]
        reported = [level for level in levels if level is not None]
        unfinished = sum(reported) if reported else None
        left, ok = snapshot.disconnected, server.answered(run)
        others = snapshot.not_ok + snapshot.cut_off  # their end on the server is unknown
        finished = None
        # One counter of vLLM has both, by reason; many of its releases do not count aborted
        # requests at all.
        if ended is not None and telemetry.has_same_name("requests", "aborted"):
            finished = max(0.0, ended - (aborted or 0.0) - ok)
        generated, came = telemetry.increase("generation_tokens"), server.received_tokens(run)
        may_be_stale = any(
            source.names.get("running") == OF_LAST_STEP for source in telemetry.sources
        )
        works_on = bool(unfinished) and (
            not may_be_stale or telemetry.grew_after("generation_tokens")
        )
        stopped = None
        if (aborted or 0.0) >= left + snapshot.histograms[UNFINISHED].count:
            stopped = True
        elif works_on or (finished or 0.0) > others:
            stopped = False
        elif finished == unfinished == 0:
            stopped = True
        return cls(
            stopped=stopped,
            aborted=aborted,
            finished=finished,
            unread_tokens=None if generated is None else max(0.0, generated - came),
            unfinished=unfinished,
            scraped_after_s=telemetry.last_at_s - int(snapshot.closed.max()) / 1e9,
        )
