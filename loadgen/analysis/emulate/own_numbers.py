"""Ours: the numbers of loadgen's own report that answer the rows of other tools."""

from loadgen.config import slo
from loadgen.runner.run_result import Result
from loadgen.util.number_format import to_ms


def ours(result: Result, name: str) -> float | None:
    """A number of a result.

    Args:
        result: Of the run.
        name: A key of its JSON, or a latency and its statistic: "ttft mean", "itl p99", "e2el max"; ms, on the clock of
            --latency-from.
    """
    metric, _, statistic = name.partition(" ")
    if not statistic:
        value: float | None = getattr(result.numbers, name)
        return value
    histogram = result.snapshot.histograms[slo.distribution(metric, result.latency_from)]
    if statistic == "mean":
        return to_ms(histogram.mean)
    if statistic == "max":
        return to_ms(histogram.max)
    return to_ms(histogram.percentile(float(statistic.removeprefix("p"))))
