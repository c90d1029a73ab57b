"""Classes: the table of what became of the requests of each class."""

from collections.abc import Iterator

from loadgen.report.result import RunResult
from loadgen.report.result.request_class import ClassResult
from loadgen.report.targets import METRICS, percentiles
from loadgen.util.number_format import fixed, percent

COLUMNS = (("share", 8), ("requests", 9), ("ok", 8), ("failed", 8), ("tok/s", 11))
LEFT, GOOD = ("left", 8), ("good", 8)


def titles(result: RunResult) -> tuple[tuple[str, int], ...]:
    """Return the columns before the latencies, each with its width."""
    further = []
    if any(one.left for one in result.classes):
        further.append(LEFT)
    if any(one.good_share is not None for one in result.classes):
        further.append(GOOD)
    return (*COLUMNS, *further)


def cells(result: RunResult, one: ClassResult) -> list[str]:
    """Write the cells of a class below these columns."""
    counts = [percent(one.share, 1), str(one.requests), str(one.ok), str(one.failed), fixed(one.output_throughput, 2)]
    further = {LEFT: str(one.left), GOOD: percent(one.good_share, 1)}
    return [*counts, *(further[column] for column in titles(result)[len(COLUMNS) :])]


def table(result: RunResult) -> Iterator[str]:
    """Write a row for each class for the console; nothing without classes."""
    if not result.classes:
        return
    columns, clock = titles(result), result.latency_from
    metrics = METRICS if result.streams else {"E2EL": "e2el"}
    width = max(len("class"), *(len(one.name) for one in result.classes))
    yield f"Classes; latencies in ms from {clock}, p50 / p99"
    head = "".join(f"{title:>{wide}}" for title, wide in columns)
    yield f"{'class':<{width}}{head}" + "".join(f"{name:>20}" for name in metrics)
    for one in result.classes:
        line = "".join(f"{cell:>{wide}}" for cell, (_, wide) in zip(cells(result, one), columns, strict=True))
        line += "".join(percentiles(one.latency_ms.latency(metric, clock)) for metric in metrics.values())
        yield f"{one.name:<{width}}{line}".rstrip()
    yield ""
