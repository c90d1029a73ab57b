"""Server: metrics that servers and GPUs reported beside what was measured, the prefix cache, and
calls to servers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Generic, Literal, Self, TypeVar

import msgspec
from msgspec import Meta, Struct

from loadgen.checks import prefix_cache
from loadgen.config.load import WARM, CacheProtocol
from loadgen.metrics.records.trailer import Moment
from loadgen.metrics.run_data import RunData
from loadgen.metrics.server.names import ACCEPTED_AT, COUNTERS, HIGHEST, SUMMED
from loadgen.metrics.server.telemetry import Gpu, Telemetry
from loadgen.report.result.fields import from_json_values
from loadgen.report.result.latencies import Bounds
from loadgen.util.number_format import to_ms

QUANTITIES = (*SUMMED, *HIGHEST, *COUNTERS)
PATTERN = {"pattern": f"^{ACCEPTED_AT}[0-9]+$"}  # of the names of further ones
Readings = list[float | None]
T = TypeVar("T")


class BucketCounts(Struct, frozen=True, kw_only=True):
    """A Prometheus histogram."""

    count: Annotated[float, "Number of values."]
    sum: Annotated[float, "Sum of the values, s."]
    upto: Annotated[
        list[tuple[float | None, float]],
        "Pairs: a bound, s, null: none; how many values are at most the bound.",
    ]


class MetricsSource(Struct, frozen=True, kw_only=True):
    """What one source reported. Lists have an item for each scrape."""

    ttft: Annotated[BucketCounts | None, "The server's histogram of TTFT, s; null: it has none."]
    url: Annotated[str, "The URL of its metrics."]
    target: Annotated[str, "Base URL of the server that it describes."]
    at_s: Annotated[
        list[float], "Time of the scrape, s from the start of the clock; negative before it."
    ]
    took_ms: Annotated[list[float], "Duration of the scrape, ms."]
    moments: Annotated[
        list[Literal["first", "tick", "last"]],
        "Before the clock started, while it ran, after the last request.",
    ]
    failed: Annotated[list[str | None], "Why a scrape failed; null: it did not."]
    names: Annotated[
        dict[str, str],
        "The server's name of each quantity.",
        Meta(
            extra_json_schema={
                "propertyNames": {"anyOf": [{"enum": [*QUANTITIES, "ttft"]}, PATTERN]}
            }
        ),
    ]
    series: Annotated[
        dict[str, Readings],
        "By quantity, the reported values: levels as read, counts since the first scrape; null: "
        "none. Levels: running and waiting requests, share of the KV cache in use (0 to 1), share "
        "of drafted tokens that were accepted in the last batch, and the tokens of one of its "
        "steps. Counts: requests that ended, those that the server gave up, prompt and output "
        "tokens, preemptions, prompt tokens looked up in the prefix cache with hits and misses, "
        "drafts, drafted and accepted tokens, accepted tokens at each position of a draft.",
        Meta(extra_json_schema={"propertyNames": {"anyOf": [{"enum": [*QUANTITIES]}, PATTERN]}}),
    ]
    restarts: Annotated[int, "How often its counters were reset."]


class EachGpuLevel(Struct, Generic[T], frozen=True, kw_only=True):
    """What each level of a GPU has."""

    power_w: Annotated[T, "Power, W."]
    sm_clock_mhz: Annotated[T, "Clock, MHz."]
    busy_share: Annotated[T, "Share of the time in which the GPU was busy, 0 to 1."]
    memory_bytes: Annotated[T, "Memory in use, bytes."]


class GpuSeries(EachGpuLevel[Readings], frozen=True, kw_only=True):
    """Readings of a GPU, an item for each time; null: the GPU does not report it."""


class GpuReadings(Struct, frozen=True, kw_only=True):
    """One GPU, by NVML."""

    name: Annotated[str | None, "Name in NVML."]
    at_s: Annotated[list[float], "When it was read, s from the start of the clock."]
    series: GpuSeries


class Level(Struct, frozen=True, kw_only=True):
    """A level over the run."""

    mean: Annotated[float | None, "Its mean; null: it was never reported."]
    max: Annotated[float | None, "Its maximum; null: it was never reported."]

    @classmethod
    def of(cls, series: Iterable[float | None]) -> Self:
        """Summarize a series; None in it: nothing was reported."""
        values = [value for value in series if value is not None]
        return cls(
            mean=sum(values) / len(values) if values else None, max=max(values, default=None)
        )


class ServerLevels(Struct, frozen=True, kw_only=True):
    """Levels of the server over the run."""

    running: Annotated[Level, "Running requests."]
    waiting: Annotated[Level, "Waiting requests."]
    kv_usage: Annotated[Level, "Share of the KV cache in use, 0 to 1."]


class GpuLevels(EachGpuLevel[Level], frozen=True, kw_only=True):
    """One GPU over the run."""

    @classmethod
    def of(cls, gpu: Gpu) -> Self:
        """Summarize the readings while the clock ran."""

        def level(quantity: str) -> Level:
            return Level.of(
                value
                for at_s, value in zip(gpu.at_s, gpu.series[quantity], strict=True)
                if at_s >= 0
            )

        return cls(**{quantity: level(quantity) for quantity in cls.__struct_fields__})


class ServerCounts(Struct, frozen=True, kw_only=True):
    """Increase of each count of the server during the run; null: the server does not report it."""

    requests: Annotated[float | None, "Requests that ended."]
    aborted: Annotated[float | None, "Requests that it gave up, of them in vLLM."] = None
    prompt_tokens: Annotated[float | None, "Prompt tokens."]
    generation_tokens: Annotated[float | None, "Output tokens."]
    preemptions: Annotated[float | None, "Preemptions of requests."]


class ServerTtft(Struct, frozen=True, kw_only=True):
    """The server's own TTFT of all its requests in the run, ms."""

    count: Annotated[float, "Requests."]
    mean: Annotated[float, "Their mean, exactly."]
    p50: Annotated[
        Bounds | None, "The bounds of its bucket; the second is null above the last bucket."
    ]
    p99: Annotated[
        Bounds | None, "The bounds of its bucket; the second is null above the last bucket."
    ]


class MeasuredTtft(Struct, frozen=True, kw_only=True):
    """TTFT from sent, as loadgen measured it, ms; null: none was measured."""

    count: Annotated[int, "Requests."]
    mean: Annotated[float | None, "Their mean."]
    p50: Annotated[float | None, "Their median."]
    p99: Annotated[float | None, "Their 99th percentile."]


class TtftComparison(Struct, frozen=True, kw_only=True):
    """The server's own TTFT and the one that loadgen measured, ms."""

    server: ServerTtft
    ours: MeasuredTtft

    @classmethod
    def of(cls, run: RunData) -> Self | None:
        """Compare; None where the server keeps no TTFT."""
        buckets, measured = run.telemetry.ttft, run.snapshot.histograms["ttft_sent"]
        if buckets is None or buckets.mean is None:
            return None
        p50, p99 = (
            [None if bound is None else bound * 1e3 for bound in between] if between else None
            for between in map(buckets.interval, (50, 99))
        )
        return cls(
            server=ServerTtft(count=buckets.count, mean=buckets.mean * 1e3, p50=p50, p99=p99),
            ours=MeasuredTtft(
                count=measured.count,
                mean=to_ms(measured.mean),
                p50=to_ms(measured.percentile(50)),
                p99=to_ms(measured.percentile(99)),
            ),
        )


class ServerMeans(Struct, frozen=True, kw_only=True):
    """Means over the run by the server's histograms, ms; null: unknown.

    The first four add up to the measured mean TTFT from sent; where the server served others, too,
    `path` and `front` are unknown.
    """

    path: Annotated[
        float | None, "The measured TTFT less the server's own: the way there and back."
    ]
    front: Annotated[
        float | None, "The server's TTFT less queue and prefill: HTTP, template, tokenizer."
    ]
    queue: Annotated[float | None, "From the queue to the first step of a request."]
    prefill: Annotated[float | None, "From there to its first token."]
    decode: Annotated[float | None, "From there to its last token."]
    itl: Annotated[float | None, "Between two tokens."]
    steps: Annotated[float | None, "Steps of the engine; of llama.cpp calls of its decoder."]
    step_tokens: Annotated[float | None, "Tokens that a step computes."]

    @classmethod
    def of(cls, run: RunData) -> Self:
        """Compute them from what was scraped before the run and after it."""
        telemetry, measured = run.telemetry, run.snapshot.histograms["ttft_sent"]
        ms = {
            name: None if (mean := telemetry.mean(name)) is None else mean * 1e3
            for name in ("queue", "prefill", "decode", "itl")
        }
        own = telemetry.ttft
        path = front = None
        queue, prefill = ms["queue"], ms["prefill"]
        counts = {telemetry.increase("queue_count"), telemetry.increase("prefill_count")}
        if (
            own is not None
            and own.mean is not None
            and measured.mean is not None
            and own.count == measured.count
            and telemetry.covers
            and not telemetry.restarts
        ):
            path = measured.mean / 1e6 - own.mean * 1e3
            if counts == {own.count} and queue is not None and prefill is not None:
                front = own.mean * 1e3 - queue - prefill
        return cls(
            path=path,
            front=front,
            steps=telemetry.increase("step_tokens_count"),
            step_tokens=telemetry.mean("step_tokens"),
            **ms,
        )


class OutputTokens(Struct, frozen=True, kw_only=True):
    """Output tokens."""

    server: Annotated[float | None, "As the server counts them; null: it does not."]
    ours: Annotated[int, "As loadgen counted."]


class ServerMetrics(Struct, frozen=True, kw_only=True):
    """What servers and GPUs reported (docs/live.md).

    Several sources are combined like one server.
    """

    sources: Annotated[list[MetricsSource], "The sources that reported something."]
    gpus: Annotated[list[GpuReadings], "GPUs of this machine, if the server is on it."]
    missing: Annotated[
        list[str], "Servers without metrics, and sources without values, if others had some."
    ] = []
    covers_run: Annotated[
        bool,
        "Whether each source reported before and after the run, so that differences belong to the "
        "run.",
    ]
    restarts: Annotated[int, "How often counters were reset."]
    levels: ServerLevels
    counts: ServerCounts
    prefix_hit_rate: Annotated[
        float | None,
        "Share of prompt tokens that were in the prefix cache, 0 to 1; null: none was looked up, "
        "or unknown.",
    ]
    spec_acceptance: Annotated[
        float | None,
        "Share of drafted tokens that were accepted, 0 to 1; null: none was drafted, or unknown.",
    ]
    ttft_ms: Annotated[
        TtftComparison | None,
        "The server's own TTFT and the measured one from sent, ms; null: the server has none.",
    ]
    means_ms: Annotated[ServerMeans | None, "Means over the run; null: the file is older."] = None
    output_tokens: OutputTokens
    gpu_levels: Annotated[list[GpuLevels], "Levels of each GPU, in the order of `gpus`."]

    @classmethod
    def of(cls, run: RunData) -> Self | None:
        """Summarize the telemetry of a run; None where there is none."""
        telemetry = run.telemetry
        if not telemetry.sources and not telemetry.gpus and not telemetry.missing:
            return None

        counted = run.snapshot.counters["output_tokens"]
        return from_json_values(
            telemetry.to_dict()
            | {
                "covers_run": telemetry.covers,
                "restarts": telemetry.restarts,
                "levels": {
                    name: Level.of(telemetry.levels(name))
                    for name in ServerLevels.__struct_fields__
                },
                "counts": {
                    name: telemetry.increase(name) for name in ServerCounts.__struct_fields__
                },
                "prefix_hit_rate": telemetry.prefix_hit_rate,
                "spec_acceptance": telemetry.spec_acceptance,
                "ttft_ms": TtftComparison.of(run),
                "means_ms": ServerMeans.of(run),
                "output_tokens": {
                    "server": telemetry.increase("generation_tokens"),
                    "ours": counted,
                },
                "gpu_levels": list(map(GpuLevels.of, telemetry.gpus)),
            },
            cls,
        )

    def telemetry(self) -> Telemetry:
        """Restore the telemetry that it summarizes."""
        return Telemetry.from_dict(msgspec.to_builtins(self))


class PrefixCache(Struct, frozen=True, kw_only=True):
    """The server's prefix cache: its state when the clock started, and how much of the input it
    gave back.
    """

    protocol: Annotated[
        CacheProtocol,
        "The state that --cache requested; `server_calls` has the calls that emptied a cold one.",
    ]
    salt: Annotated[
        str | None, "What the first words of the prompts depend on; null: they have no salt."
    ]
    warm_requests: Annotated[
        int | None, "Requests that were to warm it up, to each server; null: none."
    ]
    warmed: Annotated[int | None, "Requests that warmed it up, of all servers; null: none were to."]
    warmed_by: Annotated[
        Literal["prefix", "prompt"] | None,
        "What each of these requests sent; null: there were none.",
    ]
    block_size: Annotated[int | None, "Tokens of a block of the cache; null: unknown."]
    block_size_from: Annotated[str | None, "Where that is from: a flag, a metric, or the default."]
    best_hit_rate: Annotated[
        float | None,
        "Share of the input that a cache could give back which keeps all it has seen of the run, 0 "
        "to 1; null: unknown.",
    ]
    unpredicted_share: Annotated[
        float | None,
        "Share of the input that the server counted beyond the prediction, and that "
        "`best_hit_rate` does not cover: a chat template that is unknown here; null: there is no "
        "prediction, or not all requests succeeded.",
    ]
    best_unknown: Annotated[str | None, "Why that is unknown; null: it is known."]
    hit_rate: Annotated[
        float | None,
        "Share of the input that the server says it took from the cache, 0 to 1; null: unknown.",
    ]
    hit_rate_from: Annotated[prefix_cache.Source | None, "Where the server says so; null: nowhere."]

    @classmethod
    def of(cls, run: RunData) -> Self:
        """Take what was done, planned and found in a run."""
        prompts, settings = run.header.provenance["prompts"], run.settings
        plan, best = prompts.get("prefix_cache", {}), prefix_cache.BestHits.of(prompts)
        rate, source = prefix_cache.hit_rate(run) or (None, None)
        warmed = sum(worker.cache_warmed for worker in run.workers)
        unknown = plan.get(
            "unknown", "no --cache was given, and the server's metrics do not describe a cache"
        )
        if "further" in prompts:
            unknown = "prompts were made while the run went on"
        return cls(
            protocol=settings.cache,
            salt=prompts.get("salt"),
            warm_requests=plan.get("warm_requests"),
            warmed=warmed if settings.cache == WARM else None,
            warmed_by=plan.get("warmed_by"),
            block_size=plan.get("block_size"),
            block_size_from=plan.get("block_size_from"),
            best_hit_rate=None if best is None else best.rate,
            unpredicted_share=None
            if best is None or best.requests != run.snapshot.ok
            else best.unpredicted(run.snapshot.counters["input_tokens"]),
            best_unknown=unknown if best is None else None,
            hit_rate=rate,
            hit_rate_from=source,
        )


class ServerCallResult(Struct, frozen=True, kw_only=True):
    """A POST request to a server that is not part of the load."""

    moment: Annotated[Moment, "Before the clock started, while it ran, or after the last request."]
    url: Annotated[str, "Where it went."]
    took_ms: Annotated[float, "How long the answer took, ms."]
    error: Annotated[str | None, "Why it failed; null: it did not."]
