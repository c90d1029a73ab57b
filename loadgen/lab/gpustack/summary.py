"""The summary of a run in guidellm's JSON format, which GPUStack reads; a function of the records.

docs/benchmark-runner.md defines each field.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from loadgen.config.backends import BACKENDS
from loadgen.lab.gpustack.request_stats import (
    STATUSES,
    Requests,
    by_status,
    concurrency,
    distribution,
    rates,
    sample,
)
from loadgen.lab.gpustack.steps import Strategy
from loadgen.lab.gpustack.transient import NO_TRANSIENTS, Transients
from loadgen.metrics.records.file import RecordFile
from loadgen.report.result import RunResult
from loadgen.report.result.fields import to_json_values

REPORT_VERSION = 1  # of guidellm's report format
Distribution = dict[str, Any]


def summarize(
    records: RecordFile, strategy: Strategy, result: RunResult, phases: Transients = NO_TRANSIENTS
) -> dict[str, Any]:
    """Return the summary of one run: metadata, benchmarks, and loadgen's verdict.

    Args:
        records: The records of its requests.
        strategy: Its load.
        result: The result of the same run.
        phases: The requests that the summary leaves out.
    """
    wall_ns = time.time_ns() - time.monotonic_ns()
    sent_groups = groups = by_status(records)
    if phases != NO_TRANSIENTS:
        groups = by_status(phases.counted(list(records), records.header.settings))
    made = _together(sent_groups)
    whole = _together(groups)
    first, last = (
        (min(made.start), max(made.end)) if made.start else (records.start_ns, records.start_ns)
    )
    start, end = (min(whole.start), max(whole.end)) if whole.start else (first, first)
    counts = {status: len(groups[status].start) for status in STATUSES} | {
        "total": len(whole.start)
    }
    sent = {status: len(sent_groups[status].start) for status in STATUSES} | {
        "total": len(made.start)
    }
    first_s, start_s, end_s, last_s = ((at + wall_ns) / 1e9 for at in (first, start, end, last))
    clock_s = (records.start_ns + wall_ns) / 1e9
    benchmark: dict[str, Any] = {
        "type_": "generative_benchmark",
        "config": {"strategy": strategy.to_dict()},
        "scheduler_metrics": {
            "start_time": clock_s,
            "request_start_time": first_s,
            "measure_start_time": start_s,
            "measure_end_time": end_s,
            "request_end_time": last_s,
            "end_time": last_s,
            "requests_made": sent,
        },
        "metrics": {"request_totals": counts}
        | metrics(groups | {"total": whole}, sent_groups | {"total": made}, start, end),
        "start_time": start_s,
        "end_time": end_s,
        "duration": (end - start) / 1e9,
        "warmup_duration": (start - first) / 1e9,
        "cooldown_duration": (last - end) / 1e9,
    }
    path = records.header.settings.endpoint_path or BACKENDS["openai-chat"].path
    failed = {
        status: groups[status].samples
        for status in ("errored", "incomplete")
        if groups[status].samples
    }
    if failed:
        benchmark["requests_truncated"] = {
            status: [sample(record, wall_ns, path) for record in samples]
            for status, samples in failed.items()
        }
    facts = {
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
        "loadgen": to_json_values(facts),
    }


def coverage(path: Path, summary: dict[str, Any], log: str) -> str:
    """Return which requests a summary counts, in a line for the job's log; empty if it counts all.

    Args:
        path: The path of the summary.
        summary: What `summarize` returned.
        log: What the log counts.
    """
    (benchmark,) = summary["benchmarks"]
    counted = benchmark["metrics"]["request_totals"]["total"]
    made = benchmark["scheduler_metrics"]["requests_made"]["total"]
    if counted == made:
        return ""
    return (
        f"{path} counts {counted} of {made} requests, without those of --warmup and "
        f"--cooldown; {log}"
    )


def metrics(
    counted: dict[str, Requests], made: dict[str, Requests], start: int, end: int
) -> dict[str, dict[str, Distribution]]:
    """Return all distributions, by metric and status.

    Args:
        counted: The requests that count, by status, and all of them as "total".
        made: All requests, in the same way: what they did between `start` and `end` is part of the
            rates.
        start: When the first that counts was sent, ns.
        end: When the last of them was closed, ns.
    """
    of_time: dict[str, Callable[[Requests], Distribution]] = {
        "requests_per_second": lambda r: _rates(r.end, np.ones(len(r.end)), start, end),
        "request_concurrency": lambda r: _concurrency(r, start, end),
        "prompt_tokens_per_second": lambda r: _rates(r.first, r.first_prompts, start, end),
        "output_tokens_per_second": lambda r: _rates(
            _joined(r.token_times), _joined(r.token_counts), start, end
        ),
        "tokens_per_second": lambda r: _rates(
            _joined([*r.token_times, np.array(r.first)]),
            _joined([*r.token_counts, np.array(r.first_prompts)]),
            start,
            end,
        ),
    }
    per_request: dict[str, Callable[[Requests], Distribution]] = {
        "request_latency": lambda r: distribution(r.latency_s),
        "request_streaming_iterations_count": lambda r: distribution(r.events),
        "prompt_token_count": lambda r: distribution(r.prompt_tokens),
        "output_token_count": lambda r: distribution(r.output_tokens),
        "total_token_count": lambda r: distribution(np.add(r.prompt_tokens, r.output_tokens)),
        "time_to_first_token_ms": lambda r: distribution(r.ttft_ms),
        "time_per_output_token_ms": lambda r: distribution(r.tpot_ms, r.tpot_tokens),
        "inter_token_latency_ms": lambda r: distribution(r.itl_ms, r.itl_tokens),
        "output_tokens_per_iteration": lambda r: distribution(_joined(r.token_counts)),
        "iter_tokens_per_iteration": lambda r: distribution(
            _joined([counts[1:] for counts in r.token_counts])
        ),
        "inter_token_latency_per_chunk_ms": lambda r: distribution(_joined(r.gaps_ms)),
    }
    distributions = {
        name: {status: of(requests) for status, requests in group.items()}
        for functions, group in ((of_time, made), (per_request, counted))
        for name, of in functions.items()
    }
    if not distributions["inter_token_latency_per_chunk_ms"]["total"]["count"]:
        # Readers accept that this one is missing.
        del distributions["inter_token_latency_per_chunk_ms"]
    return distributions


def _together(groups: dict[str, Requests]) -> Requests:
    return groups["successful"] + groups["errored"] + groups["incomplete"]


def _concurrency(requests: Requests, start: int, end: int) -> Distribution:
    starts = np.array(requests.start, dtype=np.int64)
    ends = np.array(requests.end, dtype=np.int64)
    within = (ends > start) & (starts < end)
    from_s, to_s = (_s(np.clip(times[within], start, end), start) for times in (starts, ends))
    return concurrency(from_s, to_s, 0.0, (end - start) / 1e9)


def _rates(times: Any, amounts: Any, start: int, end: int) -> Distribution:
    return rates(_s(times, start), amounts, 0.0, (end - start) / 1e9)


def _s(times: Any, start: int) -> Any:
    return (np.asarray(times, dtype=np.int64) - start) / 1e9


def _joined(parts: list[Any]) -> Any:
    return np.concatenate(parts) if parts else np.empty(0)
