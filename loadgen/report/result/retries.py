"""Retries: requests that were sent again after a refusal (--retry), and what they cost their users."""

from __future__ import annotations

from typing import Annotated, Self

import numpy as np
from msgspec import Struct

from loadgen.metrics.run_data import RunData
from loadgen.metrics.snapshot import FAILED
from loadgen.report.result.outcomes import Outcomes
from loadgen.report.result.request_group import GroupLatency


class Retries(Struct, frozen=True, kw_only=True):
    """Requests that were sent again after a refusal."""

    asked: Annotated[str, "The value of --retry."]
    attempts: Annotated[int, "How often requests were sent, all attempts together."]
    requests: Annotated[int, "Requests that were sent more than once."]
    ok: Annotated[int, "Those of them that succeeded in the end."]
    failed: Annotated[int, "Those of them whose last attempt failed, too."]
    most_attempts: Annotated[int, "The most attempts of one request."]
    first_refusals: Annotated[Outcomes, "The same requests, by the outcome of their first attempt."]
    first_refusal_ms: Annotated[GroupLatency, "Of their first attempts, from sent to the end of the refusal."]
    first_ttft_ms: Annotated[
        GroupLatency, "TTFT of requests whose first attempt succeeded, on the clock of `latency_from`."
    ]
    first_e2el_ms: Annotated[
        GroupLatency, "E2EL of requests whose first attempt succeeded, on the clock of `latency_from`."
    ]
    retried_ttft_ms: Annotated[
        GroupLatency, "TTFT that users saw of requests that succeeded after a retry: from due, over all attempts."
    ]
    retried_e2el_ms: Annotated[
        GroupLatency, "E2EL that users saw of requests that succeeded after a retry: from due, over all attempts."
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
        streamed = answered & (snapshot.ttft >= 0) if run.settings.streams else np.zeros_like(answered)
        ttft = again["ttft_ns"][ok] if run.settings.streams else again["ttft_ns"][:0]
        return cls(
            asked=run.settings.retry,
            attempts=int(sent.sum()) + int((again["attempts"].astype(np.int64) - 1).sum()),
            requests=len(again),
            ok=int(ok.sum()),
            failed=int(np.isin(snapshot.index[snapshot.ttft == FAILED], again["index"]).sum()),
            most_attempts=int(again["attempts"].max()) if len(again) else min(1, int(sent.sum())),
            first_refusals={
                f"status({status})": count for status, count in zip(*map(np.ndarray.tolist, refusals), strict=True)
            },
            first_refusal_ms=GroupLatency.of(again["first_ns"]),
            first_ttft_ms=GroupLatency.of(snapshot.ttft[streamed]),
            first_e2el_ms=GroupLatency.of(snapshot.e2el[answered]),
            retried_ttft_ms=GroupLatency.of(ttft),
            retried_e2el_ms=GroupLatency.of(again["e2el_ns"][ok]),
        )
