"""Latencies: percentiles that fall, first tokens after the last one or at once, requests longer than their run."""

from itertools import pairwise

from loadgen.config.output import METRICS
from loadgen.lab.audit.finding import Finding, Findings
from loadgen.lab.audit.number import Number
from loadgen.lab.audit.published import Published, title

STATISTICS = ("mean", "median", "p50", "p75", "p90", "p95", "p99", "p99.9")
ASCENDING = STATISTICS[1:]


def latencies(result: Published) -> Findings:
    """What must hold of the latencies of any run in which a request succeeded."""
    if result["ok"].value:
        yield from _at_once(result)
        yield from _order(result)
        yield from _bounds(result)


def _at_once(result: Published) -> Findings:
    for metric in ("ttft", "e2el"):
        for statistic in STATISTICS:
            name = f"{statistic}_{metric}_ms"
            if result[name].value <= 0:
                why = "an answer takes time: the stamp was taken before the first token"
                says = f"{title(name)} {result[name]} ms"
                yield Finding(result.where(name), "latency-zero", says, "above 0", why, cause=metric)


def _order(result: Published) -> Findings:
    for metric in METRICS:
        names = [name for s in ASCENDING if (name := f"{s}_{metric}_ms") in result.numbers]
        for lower, higher in pairwise(names):
            below, above = result[lower], result[higher]
            if below.above(above):
                says, at_least = f"{title(higher)} {above} ms", f"at least {below} ms"
                why = f"no percentile is below a lower one, and {title(lower)} is {below} ms"
                yield Finding(result.where(higher), "percentile-order", says, at_least, why)


def _bounds(result: Published) -> Findings:
    duration = result["duration_s"]
    for statistic in STATISTICS:
        first, last = f"{statistic}_ttft_ms", f"{statistic}_e2el_ms"
        ttft, e2el = result[first], result[last]
        if ttft.above(e2el):
            why = f"each first token comes before the last one, and {title(last)} is {e2el} ms"
            yield _bound(result, first, e2el, why)
        if (e2el or ttft).above(duration * 1000):
            yield _bound(result, last if e2el else first, duration * 1000, f"the whole run took {duration} s")


def _bound(result: Published, name: str, most: Number, why: str) -> Finding:
    return Finding(result.where(name), "latency-bounds", f"{title(name)} {result[name]} ms", f"at most {most} ms", why)
