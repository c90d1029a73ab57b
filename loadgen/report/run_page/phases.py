"""Phases: the table of what became of each phase of a rate profile."""

from collections.abc import Iterator

from loadgen.report.html import Block, Paragraph, Table, cell, line
from loadgen.report.result import RunResult
from loadgen.report.result.request_group import GroupLatency
from loadgen.util.number_format import fixed

METRICS = {"TTFT": "ttft_ms", "TPOT": "tpot_ms", "E2EL": "e2el_ms"}


def blocks(result: RunResult) -> Iterator[Block]:
    """Write a row for each phase; nothing where the rate has none."""
    if not result.phases:
        return
    metrics = METRICS if result.streams else {"E2EL": "e2el_ms"}
    yield Paragraph(line(f"The phases of the load; latencies in ms from {result.latency_from}, p50 / p99."))
    head = ("phase", "requests", "ok", "failed", "ok/s", "tok/s", *metrics, "recovered after, s")
    rows = []
    for phase in result.phases:
        rates = (fixed(phase.answers_per_s, 2), fixed(phase.output_throughput, 1))
        latencies = (_percentiles(getattr(phase, name)) for name in metrics.values())
        recovered = "" if phase.recovered_after_s is None else fixed(phase.recovered_after_s, 2)
        counts = map(str, (phase.requests, phase.ok, phase.failed))
        rows.append(tuple(map(cell, (phase.load, *counts, *rates, *latencies, recovered))))
    yield Table(head, tuple(rows), text_columns=1)


def _percentiles(latency: GroupLatency) -> str:
    return f"{fixed(latency.p50, 2)} / {fixed(latency.p99, 2)}"
