"""The report files of inference-perf 0.7: `summary_lifecycle_metrics.json` of the run, and the same
of its only stage.

Latencies count from when a request was sent until its last byte; TTFT and gaps are those of answers
with several events, as inference-perf has them.
"""

from array import array
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.metrics.records.file import RecordFile
from loadgen.runner.run_result import from_records
from loadgen.util.clock import NS_PER_S
from loadgen.version import __version__

SUMMARY, STAGE = "summary_lifecycle_metrics.json", "stage_0_lifecycle_metrics.json"
PERCENTILES = (0.1, 1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9)


def contents(path: str) -> dict[str, Any]:
    """Return what the files of inference-perf have for a file of records, by their names.

    Raises:
        BadInput: The file has no records.
    """
    file = RecordFile(path)
    settings = file.header.settings
    summary = _summary(list(file), file.start_ns)
    verdict = str(from_records(path).verdict)
    summary["loadgen"] = {"version": __version__, "verdict": verdict, "records": path}
    rate = settings.request_rate
    load = summary["load_summary"] | {"requested_rate": rate if rate < float("inf") else None}
    if settings.max_concurrency is not None:
        load["concurrency"] = settings.max_concurrency
    return {SUMMARY: summary, STAGE: summary | {"load_summary": load}}


def _summary(records: Sequence[Record], start_ns: int) -> dict[str, Any]:
    ok = [record for record in records if record.outcome is Outcome.OK]
    failed = [record for record in records if record.outcome is not Outcome.OK]
    starts = [_began(record) for record in records]
    span_ns = max(map(_ended, records)) - min(starts) if records else 0
    span_s = span_ns / NS_PER_S
    sent = [record for record in records if record.sent]
    sent_at = list(map(_began, sent))
    send_s = (max(sent_at) - min(sent_at)) / NS_PER_S if sent else 0.0
    streamed = [record for record in ok if record.events > 1]
    tokens = [float(record.answer_tokens) for record in ok]
    prompts = [float(_prompt_tokens(record)) for record in ok]

    def per_second(total: float) -> float:
        return total / span_s if span_s else 0.0

    return {
        "benchmark_time_seconds": span_s,
        "load_summary": {
            "count": len(records),
            "schedule_delay": _distribution(
                [_began(record) - record.due for record in sent], NS_PER_S
            ),
            "send_duration": send_s,
            "achieved_rate": len(sent) / send_s if send_s else 0.0,
        },
        "successes": {
            "count": len(ok),
            "latency": {
                "request_latency": _distribution(list(map(_latency, ok)), NS_PER_S),
                "normalized_time_per_output_token": _distribution(
                    [
                        _latency(record) / count if count else 0.0
                        for record, count in zip(ok, tokens, strict=True)
                    ],
                    NS_PER_S,
                ),
                "time_per_output_token": _distribution(
                    [
                        (record.last_token - record.first_token) / (record.answer_tokens - 1)
                        for record in streamed
                        if record.answer_tokens > 1
                    ],
                    NS_PER_S,
                ),
                "time_to_first_token": _distribution(
                    [record.first_token - _began(record) for record in streamed], NS_PER_S
                ),
                "inter_token_latency": _distribution(
                    [
                        later - earlier
                        for record in streamed
                        for earlier, later in pairwise(array("q", record.marks))
                    ],
                    NS_PER_S,
                ),
            },
            "throughput": {
                "input_tokens_per_sec": per_second(sum(prompts)),
                "output_tokens_per_sec": per_second(sum(tokens)),
                "total_tokens_per_sec": per_second(sum(prompts) + sum(tokens)),
                "requests_per_sec": per_second(len(ok)),
            },
            "prompt_tokens": _prompts(ok),
            "output_len": _distribution(tokens),
            "output_tokens": {"total": sum(tokens)} | (_distribution(tokens) or {}),
            "client_fallback_requests": {
                "prompt": sum(record.prompt_tokens < 0 for record in ok),
                "output": sum(record.completion_tokens < 0 for record in ok),
            },
        },
        "failures": {
            "count": len(failed),
            "request_latency": _distribution(list(map(_latency, failed)), NS_PER_S),
            "prompt_tokens": _prompts(failed),
            "by_label": _labels(failed),
        },
    }


def _began(record: Record) -> int:
    """Return when it was sent, before a connection was opened; due, if it never was; ns."""
    return record.sent - record.connect_ns if record.sent else record.due


def _ended(record: Record) -> int:
    return max(record.closed, record.last_token, _began(record))


def _latency(record: Record) -> int:
    return _ended(record) - _began(record)


def _prompt_tokens(record: Record) -> int:
    return record.prompt_tokens if record.prompt_tokens >= 0 else max(record.input_tokens, 0)


def _prompts(records: Sequence[Record]) -> dict[str, Any]:
    tokens = [float(_prompt_tokens(record)) for record in records]
    cached = float(sum(max(record.cached_tokens, 0) for record in records))
    totals = {"total": sum(tokens), "cached": cached, "uncached": max(sum(tokens) - cached, 0.0)}
    return totals | (_distribution(tokens) or {})


def _labels(records: Sequence[Record]) -> dict[str, Any]:
    """Return the number of failures by their outcome, with the distinct details of each."""
    details = dict[str, Counter[str]]()
    for record in records:
        of_outcome = details.setdefault(str(record.outcome), Counter())
        of_outcome[record.detail or str(record.outcome)] += 1
    ordered = sorted(details.items(), key=lambda item: -item[1].total())
    return {
        outcome: {"count": counts.total(), "messages": [{"message": text} for text in counts]}
        for outcome, counts in ordered
    }


def _distribution(values: Sequence[float], unit: float = 1) -> dict[str, float] | None:
    """Return the statistics of values in a unit; None if there are none."""
    if not values:
        return None
    scaled = np.array(values, dtype=float) / unit
    statistics = {"mean": scaled.mean(), "min": scaled.min(), "max": scaled.max()}
    for p in PERCENTILES:
        statistics["median" if p == 50 else f"p{p:g}"] = np.percentile(scaled, p)
    return {name: float(value) for name, value in statistics.items()}
