"""Phases: the table of what became of each phase of a rate profile."""

from collections.abc import Iterator

from loadgen.report.latency_table import few_mark
from loadgen.report.result import RunResult
from loadgen.report.result.request_group import GroupLatency
from loadgen.util.number_format import fixed

COLUMNS = (("requests", 9), ("ok", 7), ("failed", 7), ("ok/s", 9), ("tok/s", 10))
METRICS = {"TTFT": "ttft_ms", "TPOT": "tpot_ms", "E2EL": "e2el_ms"}


def table(result: RunResult) -> Iterator[str]:
    """Write a row for each phase for the console; nothing where the rate has no phases."""
    if not result.phases:
        return
    metrics = METRICS if result.streams else {"E2EL": "e2el_ms"}
    width = max(len("phase"), *(len(phase.load) for phase in result.phases))
    yield f"Phases; latencies in ms from {result.latency_from}, p50 / p99"
    titles = "".join(f"{title:>{wide}}" for title, wide in COLUMNS)
    yield f"{'phase':<{width}}{titles}" + "".join(f"{name:>20}" for name in metrics)
    for phase in result.phases:
        rates = (fixed(phase.answers_per_s, 2), fixed(phase.output_throughput, 1))
        cells = (phase.requests, phase.ok, phase.failed, *rates)
        line = "".join(f"{cell:>{wide}}" for cell, (_, wide) in zip(cells, COLUMNS, strict=True))
        line += "".join(_percentiles(getattr(phase, name)) for name in metrics.values())
        yield f"{phase.load:<{width}}{line}".rstrip()
    for phase in result.phases:
        if phase.recovered_after_s is not None:
            yield f"Backlog of before the burst reached {phase.recovered_after_s:.3g} s after it, in {phase.load}"
    yield ""


def _percentiles(latency: GroupLatency) -> str:
    cells = [fixed(latency.p50, 2), fixed(latency.p99, 2)]
    return f"{' / '.join(cells):>19}{few_mark('p99', latency.count) or ' '}"
