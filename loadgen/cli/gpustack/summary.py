"""The summary of a run in guidellm's JSON format, which GPUStack reads; a function of the records.

docs/benchmark-runner.md defines each field.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from loadgen.cli.gpustack.distribution import concurrency, distribution, rates
from loadgen.cli.gpustack.request_stats import STATUSES, Requests, by_status, sample
from loadgen.config.target import CHAT_ENDPOINT
from loadgen.metrics.records.file import RecordFile
from loadgen.report.result import RunResult
from loadgen.report.result.fields import to_json_values

REPORT_VERSION = 1  # of guidellm's report format
Distribution = dict[str, Any]


@dataclass(frozen=True)
class Strategy:
    """The load of a run, in guidellm's terms.

    Attributes:
        type_: The profile: constant, concurrent, ...
        rate: Requests per second or, for concurrent, requests in flight; None if the profile has no rate.
        max_concurrency: Maximum number of requests in flight.
    """

    type_: str
    rate: float | None
    max_concurrency: int | None


def summarize(records: RecordFile, strategy: Strategy, result: RunResult) -> dict[str, Any]:
    """Return the summary of one run: metadata, benchmarks, and loadgen's verdict.

    Args:
        records: The records of its requests.
        strategy: Its load.
        result: The result of the same run.
    """
    wall_ns = time.time_ns() - time.monotonic_ns()
    found = by_status(records)
    whole = found["successful"] + found["errored"] + found["incomplete"]
    start, end = (min(whole.start), max(whole.end)) if whole.start else (records.start_ns, records.start_ns)
    counts = {status: len(found[status].start) for status in STATUSES} | {"total": len(whole.start)}
    start_s, end_s = ((at + wall_ns) / 1e9 for at in (start, end))
    clock_s = (records.start_ns + wall_ns) / 1e9
    benchmark: dict[str, Any] = {
        "type_": "generative_benchmark",
        "config": {"strategy": vars(strategy)},
        "scheduler_metrics": {
            "start_time": clock_s,
            "request_start_time": start_s,
            "measure_start_time": start_s,
            "measure_end_time": end_s,
            "request_end_time": end_s,
            "end_time": end_s,
            "requests_made": counts,
        },
        "metrics": {"request_totals": counts} | metrics(found | {"total": whole}, start, end),
        "start_time": start_s,
        "end_time": end_s,
        "duration": (end - start) / 1e9,
        "warmup_duration": 0.0,
        "cooldown_duration": 0.0,
    }
    path = records.header.settings.endpoint or CHAT_ENDPOINT
    failed = {status: found[status].samples for status in ("errored", "incomplete") if found[status].samples}
    if failed:
        benchmark["requests_truncated"] = {
            status: [sample(record, wall_ns, path) for record in samples] for status, samples in failed.items()
        }
    own = {
        "verdict": result.verdict,
        "checks": result.checks,
        "partial": result.partial,
        "outcomes": result.outcomes,
        "tokens": result.tokens,
        "records": str(records.path),
    }
    return {
        "metadata": {
            "version": REPORT_VERSION,
            "generator": "loadgen",
            **to_json_values(result.provenance.versions),
        },
        "benchmarks": [benchmark],
        "loadgen": to_json_values(own),
    }


def metrics(found: dict[str, Requests], start: int, end: int) -> dict[str, dict[str, Distribution]]:
    """Return all distributions, by metric and status.

    Args:
        found: The requests by status, and all of them as "total".
        start: When the first was sent, ns.
        end: When the last was closed, ns.
    """
    each: dict[str, Callable[[Requests], Distribution]] = {
        "requests_per_second": lambda r: _rates(r.end, np.ones(len(r.end)), start, end),
        "request_concurrency": lambda r: concurrency(_s(r.start, start), _s(r.end, start), 0.0, (end - start) / 1e9),
        "request_latency": lambda r: distribution(r.latency_s),
        "request_streaming_iterations_count": lambda r: distribution(r.events),
        "prompt_token_count": lambda r: distribution(r.prompt_tokens),
        "output_token_count": lambda r: distribution(r.output_tokens),
        "total_token_count": lambda r: distribution(np.add(r.prompt_tokens, r.output_tokens)),
        "time_to_first_token_ms": lambda r: distribution(r.ttft_ms),
        "time_per_output_token_ms": lambda r: distribution(r.tpot_ms, r.tpot_tokens),
        "inter_token_latency_ms": lambda r: distribution(r.itl_ms, r.itl_tokens),
        "prompt_tokens_per_second": lambda r: _rates(r.first, r.first_prompts, start, end),
        "output_tokens_per_second": lambda r: _rates(_joined(r.token_times), _joined(r.token_counts), start, end),
        "tokens_per_second": lambda r: _rates(
            _joined([*r.token_times, np.array(r.first)]),
            _joined([*r.token_counts, np.array(r.first_prompts)]),
            start,
            end,
        ),
        "output_tokens_per_iteration": lambda r: distribution(_joined(r.token_counts)),
        "iter_tokens_per_iteration": lambda r: distribution(_joined([counts[1:] for counts in r.token_counts])),
        "inter_token_latency_per_chunk_ms": lambda r: distribution(_joined(r.gaps_ms)),
    }
    distributions = {name: {status: of(requests) for status, requests in found.items()} for name, of in each.items()}
    if not distributions["inter_token_latency_per_chunk_ms"]["total"]["count"]:
        del distributions["inter_token_latency_per_chunk_ms"]  # readers accept that this one is missing
    return distributions


def _rates(times: Any, amounts: Any, start: int, end: int) -> Distribution:
    return rates(_s(times, start), amounts, 0.0, (end - start) / 1e9)


def _s(times: Any, start: int) -> Any:
    return (np.asarray(times, dtype=np.int64) - start) / 1e9


def _joined(parts: list[Any]) -> Any:
    return np.concatenate(parts) if parts else np.empty(0)
