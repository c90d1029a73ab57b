"""Targets in the report: what each of several servers did, in the words of the whole."""

from collections.abc import Callable, Iterator
from typing import Any

from loadgen.config.settings import shown_urls
from loadgen.metrics import throughput
from loadgen.metrics.run_data import Evidence
from loadgen.metrics.snapshot import LATENCIES
from loadgen.report.distribution import summary
from loadgen.stats.percentile_interval import least_samples
from loadgen.util.number_format import fixed

COLUMNS = (("requests", 9), ("ok", 8), ("failed", 8), ("tok/s", 11), ("peak", 6))
METRICS = {"TTFT": "ttft_{clock}", "TPOT": "tpot", "E2EL": "e2el_{clock}"}


def rows(evidence: Evidence, per_second: Callable[[float], float | None]) -> list[dict[str, Any]]:
    """A row for each of several targets, in their order; none where there is one, which is the whole.

    Args:
        evidence: Of the run.
        per_second: Makes a rate of a count: over the time of the whole run, so that the rates add up.
    """
    return [
        {
            "base_url": url,
            "requests": part.ended,
            "ok": part.ok,
            "failed": part.ended - part.ok - part.outcomes.get("cancelled", 0),
            "outcomes": part.outcomes,
            "output_tokens": part.counters["output_tokens"],
            "request_throughput": per_second(part.ok),
            "output_throughput": per_second(part.counters["output_tokens"]),
            "max_concurrent_requests": throughput.peak_concurrency(part),
            "latency_ms": {name: summary(part.histograms[name], evidence.percentiles) for name in LATENCIES},
        }
        for url, part in zip(shown_urls(evidence.settings), evidence.snapshot.targets, strict=False)
    ]


def table(own: dict[str, Any]) -> Iterator[str]:
    """The rows as lines for the console, from loadgen's part of a result; none where there is one target."""
    targets = own.get("targets")  # results saved before there were any do not have it
    if not targets:
        return
    differ = own["provenance"]["engine"].get("differ", [])
    yield from (f"The targets differ in {difference}" for difference in differ)
    width = max(len(row["base_url"]) for row in targets)
    titles = "".join(f"{title:>{wide}}" for title, wide in COLUMNS)
    balance, clock = own["provenance"]["settings"]["balance"], own["latency_from"]
    yield f"{len(targets)} targets, {balance}; latencies in ms from {clock}, p50 / p99"
    yield f"{'':<{width}}{titles}" + "".join(f"{name:>20}" for name in METRICS)
    for row in targets:
        rate = fixed(row["output_throughput"], 2)
        cells = (row["requests"], row["ok"], row["failed"], rate, row["max_concurrent_requests"])
        line = "".join(f"{cell:>{wide}}" for cell, (_, wide) in zip(cells, COLUMNS, strict=True))
        line += "".join(_percentiles(row["latency_ms"][name.format(clock=clock)]) for name in METRICS.values())
        yield f"{row['base_url']:<{width}}{line}".rstrip()
    yield ""


def _percentiles(latency: dict[str, float | None]) -> str:
    count = latency["count"] or 0
    cells = [fixed(latency[name], 2) for name in ("p50", "p99")]
    return f"{' / '.join(cells):>19}{'*' if 0 < count < least_samples(99) else ' '}"
