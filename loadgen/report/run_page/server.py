"""Server: its metrics beside what was measured, and what each of several targets did."""

from collections.abc import Iterator

from loadgen.report import cache_lines, server_lines
from loadgen.report.html import Block, Paragraph, Table, line
from loadgen.report.result import RunResult
from loadgen.util.number_format import fixed

NO_METRICS = "No server metrics: --server-metrics was off, or the server has no metrics that are known."
UNKNOWN_METRICS = "Server metrics are unknown: the run was killed before its end."


def blocks(result: RunResult) -> Iterator[Block]:
    """Write the targets, the prefix cache, then the metrics of the server, or that there are none."""
    if result.targets:
        yield from _targets(result)
    for text in cache_lines.lines(result):
        yield Paragraph(line(f"{text}."))
    metrics = result.server
    if metrics is None:
        yield Paragraph(line(NO_METRICS if result.client.wall_s is not None else UNKNOWN_METRICS))
        return
    if metrics.missing:
        yield Paragraph(line(server_lines.missing_servers(metrics.missing)))
    if metrics.sources:
        yield Paragraph(line(server_lines.heading(metrics.sources)))
        yield Table.of(("", *server_lines.HEADINGS), server_lines.table(result, metrics), text_columns=1)
    if metrics.gpus:
        yield Paragraph(line(f"{server_lines.gpu_summary(metrics.gpu_levels)}."))


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
        rows.append((one.base_url, *numbers, *latencies))
    yield Table.of(head, rows, text_columns=1)
