"""Targets: the table of what each of several servers did."""

from collections.abc import Iterator

from loadgen.report.distribution import Distribution
from loadgen.report.latency_table import few_mark
from loadgen.report.result import RunResult
from loadgen.util.number_format import fixed

COLUMNS = (("requests", 9), ("ok", 8), ("failed", 8), ("tok/s", 11), ("peak", 6))
METRICS = {"TTFT": "ttft", "TPOT": "tpot", "E2EL": "e2el"}


def table(result: RunResult) -> Iterator[str]:
    """Write a row for each of several targets for the console; nothing where there is one."""
    targets = result.targets
    if not targets:
        return
    differ = result.provenance.engine.differ
    if isinstance(differ, list):
        yield from (f"The targets differ in {difference}" for difference in differ)
    width = max(len(row.base_url) for row in targets)
    titles = "".join(f"{title:>{wide}}" for title, wide in COLUMNS)
    balance, clock = result.provenance.settings.balance, result.latency_from
    yield f"{len(targets)} targets, {balance}; latencies in ms from {clock}, p50 / p99"
    metrics = METRICS if result.streams else {"E2EL": "e2el"}
    yield f"{'':<{width}}{titles}" + "".join(f"{name:>20}" for name in metrics)
    for row in targets:
        rate = fixed(row.output_throughput, 2)
        cells = (row.requests, row.ok, row.failed, rate, row.max_concurrent_requests)
        line = "".join(f"{cell:>{wide}}" for cell, (_, wide) in zip(cells, COLUMNS, strict=True))
        line += "".join(percentiles(row.latency_ms.latency(metric, clock)) for metric in metrics.values())
        yield f"{row.base_url:<{width}}{line}".rstrip()
    yield ""


def percentiles(latency: Distribution) -> str:
    """Write p50 / p99 in a column, with a star if the p99 is of too few requests."""
    cells = [fixed(latency.p50_ms, 2), fixed(latency.p99_ms, 2)]
    return f"{' / '.join(cells):>19}{few_mark('p99', latency.count) or ' '}"
