"""Server: its metrics beside what was measured, and what each of several targets did."""

from collections.abc import Iterator
from typing import Any

from loadgen.report import server_lines
from loadgen.report.html import Block, Paragraph, Table, cell, line
from loadgen.report.result import RunResult
from loadgen.report.result.server import ServerMetrics
from loadgen.util.number_format import fixed, percent

NO_METRICS = "No server metrics: --server-metrics was off, or the server has no metrics that are known."
UNKNOWN_METRICS = "Server metrics are unknown: the run was killed before its end."


def blocks(result: RunResult) -> Iterator[Block]:
    """Write the targets, then the metrics of the server, or that there are none."""
    if result.targets:
        yield from _targets(result)
    metrics = result.server
    if metrics is None:
        yield Paragraph(line(NO_METRICS if result.client.wall_s is not None else UNKNOWN_METRICS))
        return
    if metrics.missing:
        yield Paragraph(line(server_lines.missing_servers(metrics.missing)))
    if metrics.sources:
        yield Paragraph(line(server_lines.heading(metrics.sources)))
        yield Table(("", "the server", "ours"), tuple(_rows(result, metrics)), text_columns=1)
    if metrics.gpus:
        yield Paragraph(line(f"{server_lines.gpu_summary(metrics.gpu_levels)}."))


def _rows(result: RunResult, metrics: ServerMetrics) -> Iterator[tuple[Any, ...]]:
    """Write the numbers that both have, then those of the server alone; without those that it did not report."""
    ttft, counts, levels, tokens = metrics.ttft_ms, metrics.counts, metrics.levels, result.tokens
    rows: dict[str, tuple[str, str]] = {}
    if ttft is not None:
        theirs, ours = ttft.server, ttft.ours
        rows["mean TTFT, ms; loadgen from sent"] = (fixed(theirs.mean), fixed(ours.mean))
        rows["p50 TTFT, ms; loadgen from sent"] = (server_lines.bucket(theirs.p50), fixed(ours.p50))
        rows["p99 TTFT, ms; loadgen from sent"] = (server_lines.bucket(theirs.p99), fixed(ours.p99))
    for what, count, measured in (
        ("requests that have ended", counts.requests, sum(result.outcomes.values())),
        ("input tokens", counts.prompt_tokens, tokens.input_tokens),
        ("output tokens", counts.generation_tokens, tokens.output_tokens),
        ("preemptions", counts.preemptions, None),
    ):
        if count is not None:
            rows[what] = (f"{count:.0f}", "" if measured is None else f"{measured}")
    for what, level, form in (
        ("requests running, mean", levels.running, "{:.1f}"),
        ("requests waiting, mean", levels.waiting, "{:.1f}"),
        ("KV cache in use, mean", levels.kv_usage, "{:.1%}"),
    ):
        if level.mean is not None:
            rows[what] = (server_lines.mean_and_max(level, form), "")
    for what, share in (
        ("prompt tokens from the prefix cache", metrics.prefix_hit_rate),
        ("drafted tokens accepted", metrics.spec_acceptance),
    ):
        if share is not None:
            rows[what] = (percent(share, 1), "")
    return (tuple(map(cell, (what, *values))) for what, values in rows.items())


def _targets(result: RunResult) -> Iterator[Block]:
    balance, clock = result.provenance.settings.balance, result.latency_from
    count = len(result.targets)
    yield Paragraph(line(f"{count} targets shared the requests ({balance}); latencies are counted from {clock}."))
    head = ("target", "requests", "ok", "failed", "tok/s", "most in flight", "TTFT p50", "p99", "E2EL p50", "p99")
    rows = []
    for one in result.targets:
        numbers = [str(one.requests), str(one.ok), str(one.failed)]
        numbers += [fixed(one.output_throughput, 2), str(one.max_concurrent_requests)]
        ttft, e2el = one.latency_ms.latency("ttft", clock), one.latency_ms.latency("e2el", clock)
        latencies = map(fixed, (ttft.p50_ms, ttft.p99_ms, e2el.p50_ms, e2el.p99_ms))
        rows.append(tuple(map(cell, (one.base_url, *numbers, *latencies))))
    yield Table(head, tuple(rows), text_columns=1)
