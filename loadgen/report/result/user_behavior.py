"""User behavior: the requests whose users left (--disconnect), and those that were sent again
(--retry).
"""

from __future__ import annotations

from typing import Annotated, Self

import numpy as np
from msgspec import Struct

from loadgen.checks import server
from loadgen.core.outcome import Cause, ended_by
from loadgen.core.request_rows import FAILED
from loadgen.metrics.run_data import RunData
from loadgen.metrics.server.names import OF_LAST_STEP
from loadgen.metrics.snapshot import UNFINISHED
from loadgen.report.result.latencies import GroupLatency
from loadgen.report.result.outcomes import Outcomes
from loadgen.workload.draws import EarlyEndDraws

WHOSE_USERS_LEFT = "whose users left (--disconnect), and what they would have sent next."


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
        GroupLatency, "Of their first attempts, from sent to the end of the refusal."
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
                f"status({status})": count
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
