"""Results of other tools for `loadgen report` and `loadgen compare`: reader, report, and `ToolRun`.

The reader is found by `loadgen.results`. The report is vLLM's block of a result, what the result
is, and what an audit finds.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property, partial
from typing import Any

import numpy as np

from loadgen.analysis.compare.compared_run import LOAD, ComparedRun
from loadgen.analysis.compare.metrics import ERROR_RATE, Meaning, Metric, percentiles_of
from loadgen.analysis.compare.other_result import OtherResult
from loadgen.analysis.compare.run_requests import EndedRequests, LatencyValues, RunRequests
from loadgen.core.histogram import Histogram
from loadgen.lab.tools import tool_files
from loadgen.lab.tools.tool_result import ToolRequests, ToolResult
from loadgen.report.result.numbers import PERCENTILE_KEY
from loadgen.report.tool_block import VLLM_LATENCIES, vllm_block
from loadgen.util.arrays import Floats
from loadgen.util.terminal_text import printable, wrap

WIDTH = 80
ROWS = (
    *("completed", "failed", "max_concurrency", "request_rate", "duration", "total_input_tokens"),
    "total_output_tokens",
    "request_throughput",
    "request_goodput",
    "output_throughput",
    "max_output_tokens_per_s",
    *("max_concurrent_requests", "total_token_throughput"),
)
KEYS = {
    "request_throughput": "request_throughput",
    "output_throughput": "output_throughput",
    "total_throughput": "total_token_throughput",
    "goodput": "request_goodput",
}


def read(path: str) -> list[OtherResult]:
    """Read the results of another tool in a file; empty if the file holds none of a tool that is
    known.

    Raises:
        BadInput: The file cannot be read.
    """
    return [
        OtherResult(result.tool, partial(render, result), partial(ToolRun, result))
        for result in tool_files.read(path)
    ]


def render(result: ToolResult) -> str:
    """Return the whole text; counts that the file does not have are left out, other numbers are
    n/a.
    """
    numbers = {name: result.number(name) for name in (*ROWS, *result.flat)}
    for count in (
        "completed",
        "failed",
        "max_concurrency",
        "total_input_tokens",
        "total_output_tokens",
    ):
        if (value := numbers[count]) is not None:
            numbers[count] = int(value)
    percentiles = dict.fromkeys(
        name.partition("_")[0] for name in result.flat if PERCENTILE_KEY.match(name)
    )
    metrics = [metric for metric in VLLM_LATENCIES if f"mean_{metric}_ms" in result.flat]
    shown: dict[str, Any] = {}
    for name in ("median", *percentiles):
        shown |= {f"{name}_{metric}_ms": None for metric in metrics}
    rate = result.flat.get("request_rate")
    finite = isinstance(rate, int | float) and rate < float("inf")
    shown |= numbers | {"request_rate": rate if finite else "inf"}
    lines = [
        *vllm_block(shown, metrics, [float(p[1:]) for p in percentiles]),
        "",
        *wrap(f"{result.where} is {result.about}.", WIDTH, "    "),
        *wrap(result.audit, WIDTH, "    "),
    ]
    return "\n".join(map(printable, lines)) + "\n"


class ToolRun(ComparedRun):
    """One run of another tool.

    Args:
        result: The result, as it was read.
    """

    meaning = Meaning("sent", as_vllm=True)

    def __init__(self, result: ToolResult) -> None:
        self._result = result
        self.where = result.where
        self.tool = result.tool
        self.date = str(result.flat.get("date") or "")
        self.reasons = []
        self.failed_checks = []
        self.workload = {}
        self.environment = {}
        names = (*LOAD, "benchmark")
        self.load = {name: result.flat[name] for name in names if name in result.flat}
        self.partial = result.partial
        self.key = (
            self.tool,
            self.date,
            *map(result.number, ("duration", "completed", "total_output_tokens", "mean_ttft_ms")),
        )
        requests = result.requests
        ok = result.number("completed")
        failed = result.number("failed")
        self.succeeded = None if ok is None else int(ok)
        self.error_rate = None if requests is None else float((~requests.ok).mean())
        if ok is not None and failed is not None and ok + failed:
            self.error_rate = failed / (ok + failed)
        if requests is None:
            self.requests_missing = f"{self.where} {result.details}"
        self.warnings = [f"{self.where} is {result.about}; {result.audit}"]

    @property
    def load_text(self) -> str:
        """As `ComparedRun.load_text`."""
        rate = self.load.get("request_rate")
        cap = self.load.get("max_concurrency")
        number = self.load.get("num_prompts", self._result.flat.get("completed"))
        parts = [
            f"{number:g} requests" if isinstance(number, int | float) else "",
            "" if rate is None else f"{rate} req/s",
            f"at most {cap} in flight" if cap else "",
        ]
        return f"{', '.join(filter(None, parts))}, by {self.tool}."

    def value(self, metric: Metric, meaning: Meaning) -> float | None:
        """As `ComparedRun.value`: as the tool printed it, else of the single requests."""
        if metric.name == ERROR_RATE:
            return self.error_rate
        if not metric.latency:
            return self._result.number(KEYS[metric.name]) if metric.name in KEYS else None
        latency = metric.latency
        if latency not in ("ttft", "tpot", "e2el", self._result.gap):
            return None
        name = "itl" if latency == self._result.gap else latency
        statistic = "median" if metric.statistic == "p50" else metric.statistic
        if (printed := self._result.number(f"{statistic}_{name}_ms")) is not None:
            return printed
        values = self._values[latency]
        if not len(values):
            return None
        if statistic in ("mean", "max"):
            return float(values.mean() if statistic == "mean" else values.max())
        return float(
            np.percentile(values, 50.0 if metric.percentile is None else metric.percentile)
        )

    def resolution(self, metric: Metric, meaning: Meaning) -> float:
        """As `ComparedRun.resolution`: of a throughput one request; the error of latencies is
        unknown.
        """
        counted = self._result.number("completed") or 1.0
        return 1 / max(1.0, counted) if metric.name in KEYS else 0.0

    def read_requests(self, metrics: Iterable[Metric], meaning: Meaning) -> RunRequests | None:
        """As `ComparedRun.read_requests`."""
        requests = self._result.requests
        if requests is None:
            return None
        compared = list(metrics)
        latencies = {}
        for latency in requests.latencies:
            values = requests.values(latency)
            together = self._values[latency]
            percentiles = percentiles_of(latency, compared) if len(together) else []
            limits = {p: np.percentile(together, p) for p in percentiles}
            within = {
                p: np.array([float((of_request <= limit).sum()) for of_request in values])
                for p, limit in limits.items()
            }
            distribution = Histogram()
            distribution.record_many(np.rint(1e6 * together).astype(np.int64))
            sums = np.array([float(np.sum(of_request)) for of_request in values])
            counts = np.array([float(len(of_request)) for of_request in values])
            latencies[latency] = LatencyValues(sums, counts, within, distribution)
        failed = (~requests.ok).astype(float)
        return RunRequests(failed, np.ones(len(requests)), latencies, *self._ended(requests))

    @cached_property
    def _values(self) -> Mapping[str, Any]:
        requests = self._result.requests
        none = np.empty(0)
        values: dict[str, Floats] = {}
        if requests is not None:
            values = {name: np.concatenate(requests.values(name)) for name in requests.latencies}
        return defaultdict(lambda: none, values)

    def _ended(self, requests: ToolRequests) -> tuple[EndedRequests, float]:
        """Return the requests for throughputs, and how many were in flight on average.

        Without the times at which they were sent, throughputs cannot be resampled.
        """
        e2el_s = np.nan_to_num(requests.e2el) / 1000
        duration_s = self._result.number("duration") or 0.0
        in_flight = float(e2el_s.sum()) / duration_s if duration_s else float(len(requests))
        if requests.start_s is None:
            return EndedRequests(
                np.full(len(requests), duration_s / max(1, len(requests))), {}
            ), in_flight
        ends = requests.start_s + e2el_s
        order = np.argsort(ends, kind="stable")
        waits_s = np.diff(ends[order], prepend=requests.start_s.min())
        counts = {
            "request_throughput": requests.ok.astype(float),
            "output_throughput": requests.output,
            "total_throughput": requests.output + np.where(requests.ok, requests.input, 0.0),
        }
        return EndedRequests(
            waits_s, {name: column[order] for name, column in counts.items()}
        ), in_flight
