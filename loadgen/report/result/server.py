"""Server: the metrics that servers and GPUs reported during a run, beside what was measured."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, Self

import msgspec
from msgspec import Struct

from loadgen.metrics.run_data import RunData
from loadgen.metrics.server.names import ACCEPTED_AT, COUNTERS, HIGHEST, SUMMED
from loadgen.metrics.server.prom_histogram import PromHistogram
from loadgen.metrics.server.series import SourceSeries
from loadgen.metrics.server.telemetry import Gpu, Telemetry
from loadgen.report.result.fields import about
from loadgen.report.result.latencies import Bounds
from loadgen.util.number_format import to_ms

QUANTITIES = (*SUMMED, *HIGHEST, *COUNTERS)
PATTERN = {"pattern": f"^{ACCEPTED_AT}[0-9]+$"}  # of the names of further ones
Readings = list[float | None]


class BucketCounts(Struct, frozen=True, kw_only=True):
    """A Prometheus histogram."""

    count: Annotated[float, about("Number of values.")]
    sum: Annotated[float, about("Sum of the values, s.")]
    upto: Annotated[
        list[tuple[float | None, float]],
        about("Pairs: a bound, s, null: none; how many values are at most the bound."),
    ]

    @classmethod
    def of(cls, histogram: PromHistogram) -> Self:
        """Type a histogram."""
        return cls(**histogram.to_dict())


class MetricsSource(Struct, frozen=True, kw_only=True):
    """What one source reported. Lists have an item for each scrape."""

    ttft: Annotated[BucketCounts | None, about("The server's histogram of TTFT, s; null: it has none.")]
    url: Annotated[str, about("The URL of its metrics.")]
    target: Annotated[str, about("Base URL of the server that it describes.")]
    at_s: Annotated[list[float], about("Time of the scrape, s from the start of the clock; negative before it.")]
    took_ms: Annotated[list[float], about("Duration of the scrape, ms.")]
    moments: Annotated[
        list[Literal["first", "tick", "last"]],
        about("Before the clock started, while it ran, after the last request."),
    ]
    failed: Annotated[list[str | None], about("Why a scrape failed; null: it did not.")]
    names: Annotated[
        dict[str, str],
        about(
            "The server's name of each quantity.", propertyNames={"anyOf": [{"enum": [*QUANTITIES, "ttft"]}, PATTERN]}
        ),
    ]
    series: Annotated[
        dict[str, Readings],
        about(
            "By quantity, the reported values: levels as read, counts since the first scrape; null: none. Levels: "
            "running and waiting requests, share of the KV cache in use (0 to 1), share of "
            "drafted tokens that were accepted in the last batch, and the tokens of one of its steps. Counts: requests "
            "that ended, those that the server gave up, prompt and output tokens, preemptions, prompt tokens looked up "
            "in the prefix cache with hits and misses, drafts, drafted and accepted tokens, accepted tokens at each "
            "position of a draft.",
            propertyNames={"anyOf": [{"enum": [*QUANTITIES]}, PATTERN]},
        ),
    ]
    restarts: Annotated[int, about("How often its counters were reset.")]

    @classmethod
    def of(cls, source: SourceSeries) -> Self:
        """Type the scrapes of a source."""
        ttft = None if source.ttft is None else BucketCounts.of(source.ttft)
        return cls(**source.to_dict() | {"ttft": ttft})


class GpuSeries(Struct, frozen=True, kw_only=True):
    """Readings of a GPU, an item for each time; null: the GPU does not report it."""

    power_w: Annotated[Readings, about("Power, W.")]
    sm_clock_mhz: Annotated[Readings, about("Clock, MHz.")]
    busy_share: Annotated[Readings, about("Share of the time in which the GPU was busy, 0 to 1.")]
    memory_bytes: Annotated[Readings, about("Memory in use, bytes.")]


class GpuReadings(Struct, frozen=True, kw_only=True):
    """One GPU, by NVML."""

    name: Annotated[str | None, about("Name in NVML.")]
    at_s: Annotated[list[float], about("When it was read, s from the start of the clock.")]
    series: Annotated[GpuSeries, about("The readings.")]

    @classmethod
    def of(cls, gpu: Gpu) -> Self:
        """Type the readings of a GPU."""
        return cls(name=gpu.name, at_s=gpu.at_s, series=GpuSeries(**gpu.series))


class Level(Struct, frozen=True, kw_only=True):
    """A level over the run."""

    mean: Annotated[float | None, about("Its mean; null: it was never reported.")]
    max: Annotated[float | None, about("Its maximum; null: it was never reported.")]

    @classmethod
    def of(cls, series: Iterable[float | None]) -> Self:
        """Summarize a series; None in it: nothing was reported."""
        values = [value for value in series if value is not None]
        return cls(mean=sum(values) / len(values) if values else None, max=max(values, default=None))


class ServerLevels(Struct, frozen=True, kw_only=True):
    """Levels of the server over the run."""

    running: Annotated[Level, about("Running requests.")]
    waiting: Annotated[Level, about("Waiting requests.")]
    kv_usage: Annotated[Level, about("Share of the KV cache in use, 0 to 1.")]


class GpuLevels(Struct, frozen=True, kw_only=True):
    """One GPU over the run."""

    power_w: Annotated[Level, about("Power, W.")]
    sm_clock_mhz: Annotated[Level, about("Clock, MHz.")]
    busy_share: Annotated[Level, about("Share of the time in which the GPU was busy, 0 to 1.")]
    memory_bytes: Annotated[Level, about("Memory in use, bytes.")]

    @classmethod
    def of(cls, gpu: Gpu) -> Self:
        """Summarize the readings while the clock ran."""

        def level(quantity: str) -> Level:
            return Level.of(value for at_s, value in zip(gpu.at_s, gpu.series[quantity], strict=True) if at_s >= 0)

        return cls(**{quantity: level(quantity) for quantity in cls.__struct_fields__})


class ServerCounts(Struct, frozen=True, kw_only=True):
    """Increase of each count of the server during the run; null: the server does not report it."""

    requests: Annotated[float | None, about("Requests that ended.")]
    aborted: Annotated[float | None, about("Requests that it gave up, of them in vLLM.")] = None
    prompt_tokens: Annotated[float | None, about("Prompt tokens.")]
    generation_tokens: Annotated[float | None, about("Output tokens.")]
    preemptions: Annotated[float | None, about("Preemptions of requests.")]


class ServerTtft(Struct, frozen=True, kw_only=True):
    """The server's own TTFT of all its requests in the run, ms."""

    count: Annotated[float, about("Requests.")]
    mean: Annotated[float, about("Their mean, exactly.")]
    p50: Annotated[Bounds | None, about("The bounds of its bucket; the second is null above the last bucket.")]
    p99: Annotated[Bounds | None, about("The bounds of its bucket; the second is null above the last bucket.")]


class MeasuredTtft(Struct, frozen=True, kw_only=True):
    """TTFT from sent, as loadgen measured it, ms; null: none was measured."""

    count: Annotated[int, about("Requests.")]
    mean: Annotated[float | None, about("Their mean.")]
    p50: Annotated[float | None, about("Their median.")]
    p99: Annotated[float | None, about("Their 99th percentile.")]


class TtftComparison(Struct, frozen=True, kw_only=True):
    """The server's own TTFT and the one that loadgen measured, ms."""

    server: Annotated[ServerTtft, about("The server's TTFT.")]
    ours: Annotated[MeasuredTtft, about("loadgen's TTFT.")]

    @classmethod
    def of(cls, run: RunData) -> Self | None:
        """Compare; None where the server keeps no TTFT."""
        buckets, measured = run.telemetry.ttft, run.snapshot.histograms["ttft_sent"]
        if buckets is None or buckets.mean is None:
            return None

        def bounds(p: float) -> Bounds | None:
            between = buckets.interval(p)
            return between and [None if bound is None else bound * 1e3 for bound in between]

        return cls(
            server=ServerTtft(count=buckets.count, mean=buckets.mean * 1e3, p50=bounds(50), p99=bounds(99)),
            ours=MeasuredTtft(
                count=measured.count,
                mean=to_ms(measured.mean),
                p50=to_ms(measured.percentile(50)),
                p99=to_ms(measured.percentile(99)),
            ),
        )


class OutputTokens(Struct, frozen=True, kw_only=True):
    """Output tokens."""

    server: Annotated[float | None, about("As the server counts them; null: it does not.")]
    ours: Annotated[int, about("As loadgen counted.")]


class ServerMetrics(Struct, frozen=True, kw_only=True):
    """What servers and GPUs reported (docs/server-metrics.md). Several sources are combined like one server."""

    sources: Annotated[list[MetricsSource], about("The sources that reported something.")]
    gpus: Annotated[list[GpuReadings], about("GPUs of this machine, if the server is on it.")]
    missing: Annotated[list[str], about("Servers without metrics, and sources without values, if others had some.")] = (
        msgspec.field(default_factory=list)
    )
    covers_run: Annotated[
        bool, about("Whether each source reported before and after the run, so that differences belong to the run.")
    ]
    restarts: Annotated[int, about("How often counters were reset.")]
    levels: Annotated[ServerLevels, about("Levels over the run.")]
    counts: Annotated[
        ServerCounts, about("Increase of each count during the run; null: the server does not report it.")
    ]
    prefix_hit_rate: Annotated[
        float | None,
        about("Share of prompt tokens that were in the prefix cache, 0 to 1; null: none was looked up, or unknown."),
    ]
    spec_acceptance: Annotated[
        float | None,
        about("Share of drafted tokens that were accepted, 0 to 1; null: none was drafted, or unknown."),
    ]
    ttft_ms: Annotated[
        TtftComparison | None,
        about("The server's own TTFT and the measured one from sent, ms; null: the server has none."),
    ]
    output_tokens: Annotated[OutputTokens, about("Output tokens.")]
    gpu_levels: Annotated[list[GpuLevels], about("Levels of each GPU, in the order of `gpus`.")]

    @classmethod
    def of(cls, run: RunData) -> Self | None:
        """Summarize the telemetry of a run; None where there is none."""
        telemetry = run.telemetry
        if not telemetry.sources and not telemetry.gpus and not telemetry.missing:
            return None

        def level(quantity: str) -> Level:
            return Level.of(telemetry.levels(quantity))

        increases: dict[str, Any] = {name: telemetry.increase(name) for name in ServerCounts.__struct_fields__}
        counted = run.snapshot.counters["output_tokens"]
        return cls(
            sources=[MetricsSource.of(source) for source in telemetry.sources],
            gpus=[GpuReadings.of(gpu) for gpu in telemetry.gpus],
            missing=list(telemetry.missing),
            covers_run=telemetry.covers,
            restarts=telemetry.restarts,
            levels=ServerLevels(running=level("running"), waiting=level("waiting"), kv_usage=level("kv_usage")),
            counts=ServerCounts(**increases),
            prefix_hit_rate=telemetry.prefix_hit_rate,
            spec_acceptance=telemetry.spec_acceptance,
            ttft_ms=TtftComparison.of(run),
            output_tokens=OutputTokens(server=telemetry.increase("generation_tokens"), ours=counted),
            gpu_levels=[GpuLevels.of(gpu) for gpu in telemetry.gpus],
        )

    def telemetry(self) -> Telemetry:
        """Restore the telemetry that it summarizes."""
        return Telemetry.from_dict(msgspec.to_builtins(self))
