"""Departures: the requests whose users left (--disconnect), and whether the server stopped working for them."""

from __future__ import annotations

from typing import Annotated, Self

from msgspec import Struct

from loadgen.checks import server
from loadgen.metrics.run_data import RunData
from loadgen.metrics.server.names import OF_LAST_STEP
from loadgen.metrics.snapshot import UNFINISHED


class ServerStop(Struct, frozen=True, kw_only=True):
    """What the servers' own counters say of the requests whose users left."""

    stopped: Annotated[
        bool | None, "Whether they stopped working for all of these requests; null: their counters do not say."
    ] = None
    aborted: Annotated[float | None, "Requests that they count as aborted; null: they do not count them."] = None
    finished: Annotated[
        float | None, "Answers that they generated to the end, beyond those of ok requests; null: unknown."
    ] = None
    unread_tokens: Annotated[
        float | None, "Output tokens that they generated beyond those that came; null: they do not count them."
    ] = None
    unfinished: Annotated[
        float | None, "Requests that were running or waiting at the last scrape, after the run; null: unknown."
    ] = None
    scraped_after_s: Annotated[
        float | None, "Time from the end of the last request to that scrape, s; null: there was none."
    ] = None

    @classmethod
    def of(cls, run: RunData) -> Self:
        """Read the counters; those of servers that other clients used say nothing."""
        telemetry, snapshot = run.telemetry, run.snapshot
        if server.unknown_because(run) or server.served_alone(run) is False:
            return cls()
        aborted, ended = telemetry.increase("aborted"), telemetry.increase("requests")
        levels = [telemetry.last(level) for level in ("running", "waiting")]
        known = [level for level in levels if level is not None]
        unfinished = sum(known) if known else None
        left, ok = snapshot.disconnected, snapshot.ok + len(run.trailer.probe_e2el_ns)
        others = snapshot.not_ok + snapshot.cut_off  # their end on the server is unknown
        finished = None
        # One counter of vLLM has both, by reason; many of its releases do not count aborted requests at all.
        if ended is not None and telemetry.has_same_name("requests", "aborted"):
            finished = max(0.0, ended - (aborted or 0.0) - ok)
        generated, counters = telemetry.increase("generation_tokens"), snapshot.counters
        came = counters["output_tokens"] + counters["lost_token_events"] + run.probes  # a probe has one token
        may_be_stale = any(source.names.get("running") == OF_LAST_STEP for source in telemetry.sources)
        works_on = bool(unfinished) and (not may_be_stale or telemetry.grew_after("generation_tokens"))
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


class Departures(Struct, frozen=True, kw_only=True):
    """Requests whose users left before the answer was complete."""

    asked: Annotated[str, "The value of --disconnect."]
    drawn: Annotated[int, "Requests that were sent and whose user was to leave."]
    disconnected: Annotated[int, "Those of them whose connection the client closed before the answer was complete."]
    never_sent: Annotated[int, "Further turns of sessions, which were not sent because their user had left."]
    server: Annotated[ServerStop, "Whether the servers stopped, by their own counters."]

    @classmethod
    def of(cls, run: RunData) -> Self | None:
        """Count them; None without --disconnect."""
        if run.settings.disconnect is None:
            return None
        snapshot = run.snapshot
        return cls(
            asked=run.settings.disconnect,
            drawn=snapshot.counters["departures"],
            disconnected=snapshot.disconnected,
            never_sent=snapshot.outcomes.get("disconnected", 0) - snapshot.disconnected,
            server=ServerStop.of(run) if snapshot.disconnected else ServerStop(),
        )
