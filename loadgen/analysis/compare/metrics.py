"""Metrics: what two sides are compared by, each a number of a result, by the name that a condition has for it."""

import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from loadgen.config import slo
from loadgen.core.histogram import Histogram
from loadgen.report.distribution import number
from loadgen.report.result import RunResult as Result
from loadgen.report.result.server import ServerMetrics

LATENCIES = ("ttft", "ttfo", "tpot", "icl", "itl", "e2el")
STATISTICS = ("mean", "p50", "p90", "p99")
# What a throughput, or a latency, is a fixed multiple of in every run, where nothing tells the two apart.
REPEATED = {
    "output_throughput": "request_throughput",
    "total_throughput": "request_throughput",
    "ttfo": "ttft",
    "itl": "icl",
}
ERROR_RATE = "error_rate"
BUCKET = 1 / 1024  # of its lowest value: the most that one of a Histogram is wide
LONGEST = 8  # words of a name in which another is looked for


@dataclass(frozen=True, slots=True)
class Metric:
    """A number of a result.

    Attributes:
        name: As a condition names it: output_throughput, ttft_p99.
        unit: Of its values: ms, req/s, tok/s; empty where it has none, "%" for shares.
        more_is_better: What is a gain; None where that is not for anybody else to say.
        ours: Whether loadgen measured it; else the server said it.
    """

    name: str
    unit: str
    more_is_better: bool | None
    ours: bool = True

    @property
    def is_share(self) -> bool:
        """Whether it is a share of 1, of which differences are told in percentage points, not ratios in percent."""
        return self.unit == "%"

    @property
    def of_the_ok(self) -> bool:
        """Whether it is of the requests alone that succeeded."""
        return self.latency is not None

    @property
    def latency(self) -> tuple[str, str] | None:
        """The latency and the statistic of it, as an SLO names them; None for any other number."""
        return slo.named(self.name)

    @property
    def percentile(self) -> float | None:
        """Which percentile of a latency it is; None for any other number."""
        return slo.percentile(self.latency[1]) if self.latency is not None else None

    def of(self, result: Result, histograms: Mapping[str, Histogram]) -> float | None:
        """Its value in a result; None where that has none.

        Args:
            result: Of a run.
            histograms: Its distributions.
        """
        if self.latency is not None:
            latency, name = self.latency
            return number(histograms[slo.distribution(latency, result.latency_from)], name)
        return _FOUND[self.name](result)

    @property
    def repeats(self) -> str:
        """The name of the metric of which it is a fixed multiple, where nothing tells them apart; empty for most."""
        if self.latency is None:
            return REPEATED.get(self.name, "")
        other = REPEATED.get(self.latency[0])
        return f"{other}_{self.latency[1]}" if other else ""

    def resolution(self, result: Result) -> float:
        """How finely a result tells it, as a share of its value; 0 where it is exact.

        A percentile is told to a bucket of its distribution, a throughput to one request.
        """
        if self.percentile is not None:
            return BUCKET
        counted = _COUNTED.get(self.name)
        return 0.0 if counted is None else 1 / max(1, counted(result))


def _server(number: Callable[[ServerMetrics], float | None]) -> Callable[[Result], float | None]:
    """Select a number of the server's part of a result; None where it has none."""

    def found(result: Result) -> float | None:
        return None if result.server is None else number(result.server)

    return found


_FOUND: dict[str, Callable[[Result], float | None]] = {
    "request_throughput": lambda result: result.numbers.request_throughput,
    "output_throughput": lambda result: result.numbers.output_throughput,
    "total_throughput": lambda result: result.numbers.total_token_throughput,
    "goodput": lambda result: result.rates.goodput_requests_per_s,
    ERROR_RATE: lambda result: result.error_rate,
    "server_ttft_mean": _server(lambda server: None if server.ttft_ms is None else server.ttft_ms.server.mean),
    "server_prefix_hit_rate": _server(lambda server: server.prefix_hit_rate),
    "server_spec_acceptance": _server(lambda server: server.spec_acceptance),
    "server_preemptions": _server(lambda server: server.counts.preemptions),
    "server_running": _server(lambda server: server.levels.running.mean),
    "server_waiting": _server(lambda server: server.levels.waiting.mean),
    "server_kv_usage": _server(lambda server: server.levels.kv_usage.mean),
}
# How many requests a throughput counts.
_COUNTED: dict[str, Callable[[Result], float]] = {
    **dict.fromkeys(
        ("request_throughput", "output_throughput", "total_throughput"), lambda result: float(result.numbers.completed)
    ),
    "goodput": lambda result: (result.rates.goodput_requests_per_s or 0.0) * result.numbers.duration,
}
TOTALS = (
    Metric("request_throughput", "req/s", True),
    Metric("output_throughput", "tok/s", True),
    Metric("total_throughput", "tok/s", True),
    Metric("goodput", "req/s", True),
    Metric(ERROR_RATE, "%", False),
)
SERVER = (
    Metric("server_ttft_mean", "ms", False, ours=False),
    Metric("server_prefix_hit_rate", "%", None, ours=False),
    Metric("server_spec_acceptance", "%", None, ours=False),
    Metric("server_preemptions", "", None, ours=False),
    Metric("server_running", "", None, ours=False),
    Metric("server_waiting", "", None, ours=False),
    Metric("server_kv_usage", "%", None, ours=False),
)
USUAL = (
    *TOTALS,
    *(Metric(f"{latency}_{name}", "ms", False) for latency in LATENCIES for name in STATISTICS),
    *SERVER,
)


def named(name: str) -> Metric | None:
    """The metric of this name; None where there is none."""
    for metric in USUAL:
        if metric.name == name:
            return metric
    return Metric(name, "ms", False) if slo.named(name) else None


def meant(name: str) -> Metric | None:
    """The metric of which the words stand in a name that is none, as in p99_ttft_ms; None where they are of none."""
    words = re.findall(r"[a-z0-9.]+", name)[:LONGEST]
    pairs = ("_".join(pair) for pair in itertools.permutations(words, 2))
    return next(filter(None, map(named, (*pairs, *words))), None)
