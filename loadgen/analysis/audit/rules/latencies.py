"""Latencies: percentiles that fall, first tokens after the last one or at once, requests longer than their run."""

from collections.abc import Iterator
from itertools import pairwise

from loadgen.analysis.audit.finding import Finding
from loadgen.analysis.audit.published import Published, title
from loadgen.config.output import METRICS

STATISTICS = ("mean", "median", "p50", "p75", "p90", "p95", "p99", "p99.9")
ASCENDING = STATISTICS[1:]


def latencies(result: Published) -> Iterator[Finding]:
    """What must hold of the latencies of any run in which a request succeeded."""
    ok = result.get("ok")
    if ok is None or ok.value:
        yield from _at_once(result)
        yield from _order(result)
        yield from _bounds(result)


def _at_once(result: Published) -> Iterator[Finding]:
    for metric in ("ttft", "e2el"):
        for statistic in STATISTICS:
            name = f"{statistic}_{metric}_ms"
            found = result.get(name)
            if found is not None and found.value <= 0:
                why = "an answer takes time: the stamp was taken before the first token"
                yield Finding(
                    result.where(name), "latency-zero", f"{title(name)} {found} ms", "above 0", why, cause=metric
                )


def _order(result: Published) -> Iterator[Finding]:
    for metric in METRICS:
        names = [name for s in ASCENDING if (name := f"{s}_{metric}_ms") in result.numbers]
        for lower, higher in pairwise(names):
            below, above = result.numbers[lower], result.numbers[higher]
            if below.above(above):
                says, at_least = f"{title(higher)} {above} ms", f"at least {below} ms"
                why = f"no percentile is below a lower one, and {title(lower)} is {below} ms"
                yield Finding(result.where(higher), "percentile-order", says, at_least, why)


def _bounds(result: Published) -> Iterator[Finding]:
    duration = result.get("duration_s")
    for statistic in STATISTICS:
        ttft, e2el = result.get(f"{statistic}_ttft_ms"), result.get(f"{statistic}_e2el_ms")
        name = f"{statistic}_ttft_ms"
        if ttft is not None and e2el is not None and ttft.above(e2el):
            why = f"each first token comes before the last one, and {title(f'{statistic}_e2el_ms')} is {e2el} ms"
            yield Finding(result.where(name), "latency-bounds", f"{title(name)} {ttft} ms", f"at most {e2el} ms", why)
        longest, name = (e2el, f"{statistic}_e2el_ms") if e2el is not None else (ttft, name)
        if longest is not None and duration is not None and longest.above(duration * 1000):
            why = f"the whole run took {duration} s"
            most = f"at most {duration * 1000} ms"
            yield Finding(result.where(name), "latency-bounds", f"{title(name)} {longest} ms", most, why)
