"""Server metrics: what servers and GPUs reported, as lines of a report."""

from collections.abc import Iterable, Iterator

from loadgen.report.result.server import (
    GpuLevels,
    Level,
    MetricsSource,
    OutputTokens,
    ServerMetrics,
    TtftComparison,
)
from loadgen.util.number_format import UNKNOWN, fixed, percent, plural


def lines(metrics: ServerMetrics | None) -> Iterator[str]:
    """Write the block of the console report; nothing where there are no metrics."""
    if metrics is None:
        return
    if metrics.missing:
        yield missing_servers(metrics.missing)
    if metrics.sources:
        yield heading(metrics.sources)
        found = (_load(metrics), _caches(metrics), *_times(metrics.ttft_ms), _tokens(metrics.output_tokens))
        yield from (f"  {line}" for line in found if line)
    if metrics.gpus:
        yield gpu_summary(metrics.gpu_levels)


def missing_servers(missing: list[str]) -> str:
    """Name the servers without metrics, where others have some."""
    return f"No server metrics from {', '.join(missing)}: the metrics of the other servers do not cover the whole run."


def heading(sources: list[MetricsSource]) -> str:
    """Name the sources, and how often they were scraped."""
    scrapes = sum(len(source.failed) for source in sources)
    failed = sum(why is not None for source in sources for why in source.failed)
    where = sources[0].url if len(sources) == 1 else f"{len(sources)} sources"
    return f"Server metrics ({where}; {plural(scrapes, 'scrape')}" + (f", {failed} failed):" if failed else "):")


def _load(metrics: ServerMetrics) -> str:
    levels, preemptions = metrics.levels, metrics.counts.preemptions
    parts = [f"running {mean_and_max(levels.running, '{:.1f}')}", f"waiting {mean_and_max(levels.waiting, '{:.1f}')}"]
    parts.append(f"KV cache {mean_and_max(levels.kv_usage, '{:.1%}')}")
    if preemptions is not None:
        parts.append(plural(round(preemptions), "preemption"))
    return ", ".join(part for part in parts if part.split()[-1] != UNKNOWN)


def mean_and_max(level: Level, form: str) -> str:
    """Write the mean and the maximum of a level."""
    return UNKNOWN if level.mean is None else f"{form.format(level.mean)} (max {form.format(level.max)})"


def _caches(metrics: ServerMetrics) -> str:
    found = {"of prompt tokens from the prefix cache": metrics.prefix_hit_rate}
    found["of drafted tokens accepted"] = metrics.spec_acceptance
    return ", ".join(f"{percent(share, 1)} {what}" for what, share in found.items() if share is not None)


def _times(ttft: TtftComparison | None) -> Iterator[str]:
    if ttft is None:
        return
    server, ours = ttft.server, ttft.ours
    theirs = f"mean {fixed(server.mean)}, p50 {bucket(server.p50)}, p99 {bucket(server.p99)}"
    yield f"TTFT (ms) {theirs}; loadgen from sent {fixed(ours.mean)}, {fixed(ours.p50)}, {fixed(ours.p99)}"


def bucket(ends: list[float | None] | None) -> str:
    """Write a percentile of which only the bucket is known."""
    match ends:
        case [low, None]:
            return f"above {low:.0f}"
        case [low, high]:
            return f"{low:g} to {high:g}"
    return UNKNOWN


def _tokens(tokens: OutputTokens) -> str:
    return "" if tokens.server is None else f"output tokens {tokens.server:.0f}; loadgen {tokens.ours}"


def gpu_summary(levels: list[GpuLevels]) -> str:
    """Sum up the GPUs in a line."""
    parts = []
    if power := _known(gpu.power_w.mean for gpu in levels):
        parts.append(f"{sum(power):.0f} W on average")
    if busy := _known(gpu.busy_share.mean for gpu in levels):
        parts.append(f"{percent(sum(busy) / len(busy))} busy")
    if clock := _known(gpu.sm_clock_mhz.mean for gpu in levels):
        parts.append(f"{sum(clock) / len(clock):.0f} MHz")
    if memory := _known(gpu.memory_bytes.max for gpu in levels):
        parts.append(f"{sum(memory) / 1e9:.1f} GB in use")
    return f"GPUs ({len(levels)}): {', '.join(parts) or UNKNOWN}"


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]
