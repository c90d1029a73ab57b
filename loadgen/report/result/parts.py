"""Parts: what became of the requests to each of several targets, and of each class."""

from __future__ import annotations

from typing import Annotated, Any, Self

import msgspec
from msgspec import Struct

from loadgen.config import slo
from loadgen.config.settings import shown_urls
from loadgen.core.outcome import Outcome
from loadgen.metrics import throughput
from loadgen.metrics.run_data import RunData
from loadgen.metrics.snapshot import Snapshot
from loadgen.report.result.latencies import Latencies
from loadgen.report.result.limit import LimitResult, judge_limits
from loadgen.report.result.outcomes import Outcomes
from loadgen.report.result.rates import PerSecond, is_goodput_known


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
        return [cls(base_url=url, **_part_fields(run, part)) for url, part in parts]


class ClassResult(Struct, frozen=True, kw_only=True):
    """Results of one class of requests. Rates are over the time of the whole run, so that they add up."""

    name: Annotated[str, "Its name."]
    share: Annotated[float, "The part of all requests that it should get on average."]
    priority: Annotated[int | None, "The priority of its requests; null: they have none."]
    model: Annotated[str | None, "The model or adapter that they ask; null: that of the run."]
    requests: Annotated[int, "Its requests that ended."]
    ok: Annotated[int, "Requests that succeeded."]
    failed: Annotated[int, "Requests that failed, without cancelled ones."]
    left: Annotated[int, "Requests whose users left (--disconnect), and what they would have asked next."] = 0
    outcomes: Annotated[Outcomes, "Its requests by how they ended."]
    error_rate: Annotated[float | None, "As in the whole result; null where no request ended."]
    output_tokens: Annotated[int, "Output tokens of its ok requests."]
    request_throughput: Annotated[float | None, "Ok requests per second; null where nothing was sent."]
    output_throughput: Annotated[float | None, "Output tokens per second; null where nothing was sent."]
    goodput_requests_per_s: Annotated[
        float | None, "Requests per second that met every limit of its goodput, or of --goodput; null without limits."
    ]
    good_share: Annotated[float | None, "Share of its requests whose users stayed that did; null if that rate is null."]
    max_concurrent_requests: Annotated[int, "Peak number of its requests in flight."]
    latency_ms: Annotated[Latencies, "Its latencies, as in the whole result, ms."]
    slo: Annotated[list[LimitResult], "Each limit of its own SLO, judged by its requests alone."]

    @classmethod
    def each(cls, run: RunData) -> list[Self]:
        """Summarize each class, in their order; empty without classes."""
        found = list[Self]()
        for one, part in zip(run.settings.request_classes, run.snapshot.classes, strict=False):
            limits = slo.parse_goodput(run.settings.of_class(one).goodput)
            left, good = part.outcomes.get(Outcome.DISCONNECTED, 0), part.counters["good"]
            is_judged, stayed = is_goodput_known(limits, run.snapshot), part.ended - left
            found.append(
                cls(
                    name=one.name,
                    share=one.share,
                    priority=one.priority,
                    model=one.model,
                    left=left,
                    error_rate=part.failures.server_rate,
                    goodput_requests_per_s=PerSecond.of(run.snapshot).rate(good) if is_judged else None,
                    good_share=good / stayed if is_judged and stayed else None,
                    slo=judge_limits(one.slo, part, run.settings.latency_from),
                    **_part_fields(run, part),
                )
            )
        return found

    @property
    def named_limits(self) -> list[LimitResult]:
        """The limits of its SLO, each with the name of the class."""
        return [msgspec.structs.replace(row, limit=f"{self.name}:{row.limit}") for row in self.slo]


def _part_fields(run: RunData, part: Snapshot) -> dict[str, Any]:
    """Summarize the requests of a part of a run that were recorded apart, by the names of fields."""
    # Rates are over the time of the whole run, so that they add up.
    per_second, tokens = PerSecond.of(run.snapshot), part.counters["output_tokens"]
    return {
        "requests": part.ended,
        "ok": part.ok,
        "failed": part.not_ok,
        "outcomes": part.outcomes,
        "output_tokens": tokens,
        "request_throughput": per_second.rate(part.ok),
        "output_throughput": per_second.rate(tokens),
        "max_concurrent_requests": throughput.peak_concurrency(part),
        "latency_ms": Latencies.of(part, run.percentiles),
    }
