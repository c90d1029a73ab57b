"""The server's part of the result: what it said of itself, beside what was measured."""

from collections.abc import Iterable, Iterator
from typing import Any

from loadgen.metrics.run_data import Evidence
from loadgen.metrics.server.telemetry import Gpu
from loadgen.util.gpus import QUANTITIES
from loadgen.util.number_format import UNKNOWN, fixed, percent, plural, to_ms

LEVELS = ("running", "waiting", "kv_usage")
COUNTS = ("requests", "prompt_tokens", "generation_tokens", "preemptions")
PERCENTILES = (50, 99)


def server(evidence: Evidence) -> dict[str, Any] | None:
    """As JSON; None where nobody said anything."""
    telemetry, counters, gpus = evidence.telemetry, evidence.snapshot.counters, evidence.telemetry.gpus
    if not telemetry.sources and not gpus and not telemetry.missing:
        return None
    return telemetry.to_dict() | {
        "covers_run": telemetry.covers,
        "restarts": telemetry.restarts,
        "levels": {level: _level(telemetry.levels(level)) for level in LEVELS},
        "counts": {count: telemetry.increase(count) for count in COUNTS},
        "prefix_hit_rate": telemetry.prefix_hit_rate,
        "spec_acceptance": telemetry.spec_acceptance,
        "ttft_ms": _ttft(evidence),
        "output_tokens": {"server": telemetry.increase("generation_tokens"), "ours": counters["output_tokens"]},
        "gpu_levels": [{quantity: _level(_on_the_clock(gpu, quantity)) for quantity in QUANTITIES} for gpu in gpus],
    }


def _on_the_clock(gpu: Gpu, quantity: str) -> list[float | None]:
    return [value for at_s, value in zip(gpu.at_s, gpu.series[quantity], strict=True) if at_s >= 0]


def _level(series: Iterable[float | None]) -> dict[str, float | None]:
    values = [value for value in series if value is not None]
    return {"mean": sum(values) / len(values) if values else None, "max": max(values, default=None)}


def _ttft(evidence: Evidence) -> dict[str, Any] | None:
    """The server's own TTFT, of whatever it served, and ours from sent."""
    theirs, ours = evidence.telemetry.ttft, evidence.snapshot.histograms["ttft_sent"]
    if theirs is None or theirs.mean is None:
        return None
    told: dict[str, Any] = {"count": theirs.count, "mean": theirs.mean * 1e3}
    seen: dict[str, Any] = {"count": ours.count, "mean": to_ms(ours.mean)}
    for p in PERCENTILES:
        between = theirs.interval(p)
        told[f"p{p}"] = between and [None if end is None else end * 1e3 for end in between]
        seen[f"p{p}"] = to_ms(ours.percentile(p))
    return {"server": told, "ours": seen}


def lines(said: dict[str, Any] | None) -> Iterator[str]:
    """The block of the console report; nothing where nothing was said."""
    if said is None:
        return
    if missing := said.get("missing"):  # results of earlier versions do not say
        yield of_missing(missing)
    if said["sources"]:
        yield heading(said["sources"])
        yield from (
            f"  {line}" for line in (_load(said), _caches(said), *_times(said["ttft_ms"]), _tokens(said)) if line
        )
    if said["gpus"]:
        yield of_gpus(said["gpu_levels"])


def of_missing(missing: list[str]) -> str:
    """Which servers told nothing while others did."""
    return f"No server metrics from {', '.join(missing)}: those of the other servers are not of the whole run."


def heading(sources: list[dict[str, Any]]) -> str:
    """Who said it, and how often it was asked."""
    scrapes = sum(len(source["failed"]) for source in sources)
    failed = sum(why is not None for source in sources for why in source["failed"])
    where = sources[0]["url"] if len(sources) == 1 else f"{len(sources)} sources"
    return f"The server of itself ({where}; {plural(scrapes, 'scrape')}" + (f", {failed} failed):" if failed else "):")


def _load(said: dict[str, Any]) -> str:
    parts = [f"{level} {spread(said['levels'][level], '{:.1f}')}" for level in ("running", "waiting")]
    parts.append(f"KV cache {spread(said['levels']['kv_usage'], '{:.1%}')}")
    if said["counts"]["preemptions"] is not None:
        parts.append(plural(round(said["counts"]["preemptions"]), "preemption"))
    return ", ".join(part for part in parts if part.split()[-1] != UNKNOWN)


def spread(level: dict[str, float | None], form: str) -> str:
    """A level: its mean and its maximum."""
    return UNKNOWN if level["mean"] is None else f"{form.format(level['mean'])} (max {form.format(level['max'])})"


def _caches(said: dict[str, Any]) -> str:
    found = {"of prompt tokens from the prefix cache": said["prefix_hit_rate"]}
    found["of drafted tokens accepted"] = said["spec_acceptance"]
    return ", ".join(f"{percent(share, 1)} {what}" for what, share in found.items() if share is not None)


def _times(ttft: dict[str, Any] | None) -> Iterator[str]:
    if ttft is None:
        return
    theirs, ours = ttft["server"], ttft["ours"]
    told = [f"mean {fixed(theirs['mean'])}"] + [f"p{p} {between(theirs[f'p{p}'])}" for p in PERCENTILES]
    seen = [fixed(ours[key]) for key in ("mean", "p50", "p99")]
    yield f"TTFT (ms) {', '.join(told)}; ours from sent {', '.join(seen)}"


def between(ends: list[float | None] | None) -> str:
    """A percentile of which only the bucket is known."""
    match ends:
        case [low, None]:
            return f"above {low:.0f}"
        case [low, high]:
            return f"{low:g} to {high:g}"
    return UNKNOWN


def _tokens(said: dict[str, Any]) -> str:
    tokens = said["output_tokens"]
    return "" if tokens["server"] is None else f"output tokens {tokens['server']:.0f}; ours {tokens['ours']}"


def of_gpus(levels: list[dict[str, Any]]) -> str:
    """What the GPUs did, all together."""

    def over(quantity: str, statistic: str) -> list[float]:
        return [gpu[quantity][statistic] for gpu in levels if gpu[quantity][statistic] is not None]

    parts = []
    if power := over("power_w", "mean"):
        parts.append(f"{sum(power):.0f} W on average")
    if busy := over("busy_share", "mean"):
        parts.append(f"{percent(sum(busy) / len(busy))} busy")
    if clock := over("sm_clock_mhz", "mean"):
        parts.append(f"{sum(clock) / len(clock):.0f} MHz")
    if memory := over("memory_bytes", "max"):
        parts.append(f"{sum(memory) / 1e9:.1f} GB in use")
    return f"GPUs ({len(levels)}): {', '.join(parts) or UNKNOWN}"
