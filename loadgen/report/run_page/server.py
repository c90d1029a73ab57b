"""Server: its metrics beside what was measured, and what each of several targets did."""

from collections.abc import Iterator

from loadgen.report import cache_lines, group_tables, server_lines
from loadgen.report.html import Block, Paragraph, Table
from loadgen.report.result import RunResult
from loadgen.report.run_page import groups

NO_METRICS = "No server metrics: --server-metrics was off, or the server has no metrics that are known."
UNKNOWN_METRICS = "Server metrics are unknown: the run was killed before its end."


def blocks(result: RunResult) -> Iterator[Block]:
    """Write the targets, the prefix cache, then the metrics of the server, or that there are none."""
    if result.targets:
        balance, clock = result.provenance.settings.balance, result.latency_from
        about = f"{len(result.targets)} targets shared the requests ({balance}); latencies are counted from {clock}."
        yield Paragraph.of(about)
        yield groups.table(group_tables.targets(result))
    for text in cache_lines.lines(result):
        yield Paragraph.of(f"{text}.")
    metrics = result.server
    if metrics is None:
        yield Paragraph.of(NO_METRICS if result.client.wall_s is not None else UNKNOWN_METRICS)
        return
    if metrics.missing:
        yield Paragraph.of(server_lines.missing_servers(metrics.missing))
    if metrics.sources:
        yield Paragraph.of(server_lines.heading(metrics.sources))
        yield Table.of(("", *server_lines.HEADINGS), server_lines.table(result, metrics), text_columns=1)
    if metrics.gpus:
        yield Paragraph.of(f"{server_lines.gpu_summary(metrics.gpu_levels)}.")
