"""The metrics that runs are compared by: numbers of a result, under the names that conditions
use.
"""

import itertools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from loadgen.config import slo
from loadgen.core.histogram import Histogram
from loadgen.metrics.statistic import statistic_ms
from loadgen.report.result import RunResult as Result
from loadgen.report.result.latencies import Clock
from loadgen.report.result.server import ServerMetrics

LATENCIES = ("ttft", "ttfo", "tpot", "icl", "itl", "e2el")
THROUGHPUT = "throughput"
STATISTICS = ("mean", "p50", "p90", "p99")
# Metrics that are a fixed multiple of another in every run, if all answers are as long or have one
# event per token.
MAY_REPEAT = {
    "output_throughput": "request_throughput",
    "total_throughput": "request_throughput",
    "ttfo": "ttft",
    "itl": "icl",
}
ERROR_RATE = "error_rate"
BUCKET = 1 / 1024  # maximum width of a bucket of a Histogram, as a share of its lowest value
MAX_WORDS = 8  # of a name for which a similar one is searched


Reader = Callable[[Result], float | None]


@dataclass(frozen=True, slots=True)
class Meaning:
    """How the latencies of all sides are read.

    Attributes:
        clock: Where latencies start: due or sent.
        as_vllm: Whether TPOT divides by the output tokens but one, as other tools do, and not by
            those after the first event.
    """

    clock: Clock
    as_vllm: bool = False

    def distribution(self, latency: str) -> str:
        """Return the distribution of a latency: ttft, ttfo, tpot, icl, itl or e2el."""
        return (
            "tpot_n1"
            if self.as_vllm and latency == "tpot"
            else slo.distribution(latency, self.clock)
        )


@dataclass(frozen=True, slots=True)
class Metric:
    """A number of a result.

    Attributes:
        name: As in a condition: output_throughput, ttft_p99.
        unit: The unit of its values: ms, req/s, tok/s; empty if it has none, "%" for shares.
        more_is_better: Its direction; None if it depends on the purpose.
        label: Its name for people; empty for latencies.
        read: Reads it from a result, except latencies.
        counted: Returns the number of requests that a throughput counts; None for other metrics.
        from_server: Whether the server reported it; else loadgen measured it.
        latency: The latency of which it is a statistic, as in an SLO; empty for other metrics.
        statistic: Which statistic of the latency it is; empty for other metrics.
    """

    name: str
    unit: str
    more_is_better: bool | None
    label: str = ""
    read: Reader = lambda result: None
    counted: Callable[[Result], float] | None = None
    from_server: bool = False
    latency: str = ""
    statistic: str = ""

    @classmethod
    def of_latency(cls, latency: str, statistic: str) -> "Metric":
        """Return the metric that is a statistic of a latency."""
        return cls(f"{latency}_{statistic}", "ms", False, latency=latency, statistic=statistic)

    @property
    def title(self) -> str:
        """Name for people: "TTFT p99", "Requests/s"."""
        return self.label or f"{self.latency.upper()} {self.statistic}"

    @property
    def subject(self) -> str:
        """What it is a number of: its latency, or THROUGHPUT; else its own name."""
        return self.latency or (self.name if self.counted is None else THROUGHPUT)

    @property
    def is_share(self) -> bool:
        """Whether it is a share, whose differences are percentage points instead of ratios."""
        return self.unit == "%"

    @property
    def of_successes(self) -> bool:
        """Whether only requests that succeeded have it."""
        return bool(self.latency)

    @property
    def percentile(self) -> float | None:
        """The percentile, 0 to 100; None for other metrics."""
        return slo.percentile(self.statistic) if self.latency else None

    def value(
        self, result: Result, histograms: Mapping[str, Histogram], meaning: Meaning
    ) -> float | None:
        """Return the value in a result; None if it has none.

        Args:
            result: The result of the run.
            histograms: The distributions of the result, by name.
            meaning: How latencies are read.
        """
        if self.latency:
            return statistic_ms(histograms[meaning.distribution(self.latency)], self.statistic)
        if self.name == "goodput" and meaning != Meaning(result.latency_from):
            return result.numbers.request_goodput
        return self.read(result)

    @property
    def may_repeat(self) -> str:
        """The name of the metric that it may be a fixed multiple of in every run; empty for most
        metrics.
        """
        other = MAY_REPEAT.get(self.latency or self.name, "")
        return f"{other}_{self.statistic}" if other and self.latency else other

    def resolution(self, result: Result, meaning: Meaning) -> float:
        """Return the width of the range in which the true metric of a result lies, as a share of
        its value.

        A latency lies within its client error on both sides, a percentile of an older result in a
        bucket of its distribution, and a throughput within one request. 0: the metric is exact.
        """
        if (error := self._client_error(result, meaning)) is not None:
            return 2 * error
        if self.percentile is not None:
            return BUCKET
        return 0.0 if self.counted is None else 1 / max(1, self.counted(result))

    def _client_error(self, result: Result, meaning: Meaning) -> float | None:
        if result.client_error_ms is None or self.statistic in ("", "max"):
            return None
        name, column = (
            meaning.distribution(self.latency),
            "p50" if self.statistic == "median" else self.statistic,
        )
        error_ms = result.client_error_ms.named(name).get(column)
        value_ms = None if error_ms is None else result.latency_ms.named(name)[column]
        return error_ms / value_ms if error_ms is not None and value_ms else None


def _server(
    name: str, title: str, unit: str, number: Callable[[ServerMetrics], float | None]
) -> Metric:
    """Return a metric that the server reports; a result without such a part does not have it."""

    def read(result: Result) -> float | None:
        return None if result.server is None else number(result.server)

    better_if_more = False if name == "ttft_mean" else None
    return Metric(
        f"server_{name}", unit, better_if_more, f"Server: {title}", read, from_server=True
    )


def _completed(result: Result) -> float:
    return float(result.numbers.completed)


TOTALS = (
    Metric(
        "request_throughput",
        "req/s",
        True,
        "req/s",
        lambda result: result.numbers.request_throughput,
        _completed,
    ),
    Metric(
        "output_throughput",
        "tok/s",
        True,
        "Output tokens/s",
        lambda result: result.numbers.output_throughput,
        _completed,
    ),
    Metric(
        "total_throughput",
        "tok/s",
        True,
        "Total tokens/s",
        lambda result: result.numbers.total_token_throughput,
        _completed,
    ),
    Metric(
        "goodput",
        "req/s",
        True,
        "Goodput",
        lambda result: result.rates.goodput_requests_per_s,
        lambda result: (result.rates.goodput_requests_per_s or 0.0) * result.numbers.duration,
    ),
    Metric(ERROR_RATE, "%", False, "Error rate", lambda result: result.error_rate),
)
SERVER = (
    _server(
        "ttft_mean",
        "TTFT mean",
        "ms",
        lambda server: server.ttft_ms.server.mean if server.ttft_ms else None,
    ),
    _server("prefix_hit_rate", "prefix hit rate", "%", lambda server: server.prefix_hit_rate),
    _server("spec_acceptance", "draft tokens accepted", "%", lambda server: server.spec_acceptance),
    _server("preemptions", "preemptions", "", lambda server: server.counts.preemptions),
    _server("running", "running requests", "", lambda server: server.levels.running.mean),
    _server("waiting", "waiting requests", "", lambda server: server.levels.waiting.mean),
    _server("kv_usage", "KV cache usage", "%", lambda server: server.levels.kv_usage.mean),
)
DEFAULT_METRICS = (
    *TOTALS,
    *(Metric.of_latency(latency, statistic) for latency in LATENCIES for statistic in STATISTICS),
    *SERVER,
)


# All names, for people.
NAMES_TEXT = (
    f"{', '.join(metric.name for metric in (*TOTALS, *SERVER))}, or a latency "
    f"({', '.join(LATENCIES)}) with a statistic (mean, median, p99), such as ttft_p99"
)


def in_table_order(metrics: Iterable[Metric]) -> list[Metric]:
    """Sort metrics as tables show them, each once: rates, then each latency by mean, percentiles
    and maximum, then those of the server.
    """
    return sorted(dict.fromkeys(metrics), key=_place)


def _place(metric: Metric) -> tuple[int, float]:
    if not metric.latency:
        return (len(LATENCIES) if metric.from_server else -1), 0.0
    extremes = {"mean": -1.0, "max": 100.0}
    rank = extremes.get(metric.statistic, metric.percentile)
    return LATENCIES.index(metric.latency), 0.0 if rank is None else rank


def metric_by_name(name: str) -> Metric | None:
    """Return the metric of this name, or of this title in a table; None if there is none."""
    words = name.lower().split()
    split = slo.split_name("_".join(words))
    latency = Metric.of_latency(*split) if split else None
    named = (
        metric
        for metric in DEFAULT_METRICS
        if words in ([metric.name], metric.title.lower().split())
    )
    return next(named, latency)


def percentiles_of(latency: str, metrics: Iterable[Metric]) -> list[float]:
    """Return the percentiles of a latency that are among some metrics, 0 to 100, ascending."""
    percentiles = (metric.percentile for metric in metrics if metric.latency == latency)
    return sorted({p for p in percentiles if p is not None})


def similar_metric(name: str) -> Metric | None:
    """Return a metric whose words are in an unknown name, as in p99_ttft_ms; None if there is
    none.
    """
    words = re.findall(r"[a-z0-9.]+", name)[:MAX_WORDS]
    pairs = ("_".join(pair) for pair in itertools.permutations(words, 2))
    return next(filter(None, map(metric_by_name, (*pairs, *words))), None)
