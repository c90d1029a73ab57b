"""The block of SGLang's `bench_serving`, row for row, and the labels of its rows."""

from collections.abc import Iterator, Mapping
from typing import Any

from loadgen.report.vllm_block import WIDTH, row

# The rows above the latencies: the key of each, its label, and the number of decimals.
TOTALS = {
    "completed": ("Successful requests:", 0),
    "duration": ("Benchmark duration (s):", 2),
    "total_input_tokens": ("Total input tokens:", 0),
    "total_input_text_tokens": ("Total input text tokens:", 0),
    "total_output_tokens": ("Total generated tokens:", 0),
    "total_output_tokens_retokenized": ("Total generated tokens (retokenized):", 0),
    "request_throughput": ("Request throughput (req/s):", 2),
    "input_throughput": ("Input token throughput (tok/s):", 2),
    "output_throughput": ("Output token throughput (tok/s):", 2),
    "max_output_tokens_per_s": ("Peak output token throughput (tok/s):", 2),
    "max_concurrent_requests": ("Peak concurrent requests:", 0),
    "total_throughput": ("Total token throughput (tok/s):", 2),
    "concurrency": ("Concurrency:", 2),
}
RATE = "Traffic request rate:"
CAP = "Max request concurrency:"
MAX_ITL = "Max ITL (ms):"
# The latencies: the metric of each in keys, its name in labels, and the header above it.
LATENCIES = {
    "e2e_latency": ("E2E Latency", "End-to-End Latency"),
    "ttft": ("TTFT", "Time to First Token"),
    "tpot": ("TPOT", "Time per Output Token (excl. 1st token)"),
    "itl": ("ITL", "Inter-Token Latency"),
}
STATISTICS = {"mean": "Mean", "median": "Median", "p90": "P90", "p95": "P95", "p99": "P99"}


def block(result: Mapping[str, Any], max_itl_ms: float | None) -> Iterator[str]:
    """Write the lines of SGLang's block.

    Args:
        result: The numbers, by SGLang's names.
        max_itl_ms: The longest gap, ms; None: there is none.
    """
    yield f"{' Serving Benchmark Result ':=^{WIDTH}}"
    yield row("Backend:", result["backend"], "")
    yield row(RATE, result["request_rate"], "")
    yield row(CAP, result["max_concurrency"] or "not set", "")
    for key, (label, digits) in TOTALS.items():
        yield row(label, result[key], f".{digits}f")
    if limits := result.get("goodput_slos_ms"):
        yield f"{'Goodput':-^{WIDTH}}"
        texts = (f"{metric}:{limit:g}" for metric, limit in limits.items())
        yield row("SLOs (ms):", " ".join(texts), "")
        yield row("Request goodput (req/s):", result["request_goodput"])
        yield row("SLO attainment (%):", _percent(result["slo_attainment"]))
        for metric, share in result["slo_attainment_by_metric"].items():
            yield row(f"{metric.upper()} SLO attainment (%):", _percent(share))
    for metric, (name, header) in LATENCIES.items():
        yield f"{header:-^{WIDTH}}"
        for statistic, title in STATISTICS.items():
            yield row(f"{title} {name} (ms):", result[f"{statistic}_{metric}_ms"])
    yield row(MAX_ITL, max_itl_ms)
    yield "=" * WIDTH


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share
