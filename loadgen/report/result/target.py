"""Targets: what each of several servers did."""

from __future__ import annotations

from typing import Annotated, Self

from msgspec import Struct

from loadgen.config.settings import shown_urls
from loadgen.metrics.run_data import RunData
from loadgen.report.result.latencies import Latencies
from loadgen.report.result.outcomes import Outcomes
from loadgen.report.result.request_group import part_fields


class Target(Struct, frozen=True, kw_only=True):
    """Results of one of several targets."""

    base_url: Annotated[str, "Its URL, without a user."]
    requests: Annotated[int, "Requests sent to it that ended."]
    ok: Annotated[int, "Requests that succeeded."]
    failed: Annotated[int, "Requests that failed, without cancelled ones."]
    outcomes: Annotated[Outcomes, "Its requests by how they ended."]
    output_tokens: Annotated[int, "Output tokens of its ok requests."]
    request_throughput: Annotated[float | None, "Ok requests per second of the whole run; null where nothing was sent."]
    output_throughput: Annotated[
        float | None, "Output tokens per second of the whole run; null where nothing was sent."
    ]
    max_concurrent_requests: Annotated[int, "Peak number of requests in flight at this target."]
    latency_ms: Annotated[Latencies, "Its latencies, as in the whole result, ms."]

    @classmethod
    def each(cls, run: RunData) -> list[Self]:
        """Summarize each of several targets, in their order; empty where there is one, which is the whole."""
        parts = zip(shown_urls(run.settings), run.snapshot.targets, strict=False)
        return [cls(base_url=url, **part_fields(run, part)) for url, part in parts]
