"""The block of `vllm bench serve`, row for row."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from loadgen.util.number_format import UNKNOWN, percentile

WIDTH = 50
HEADERS = {
    "ttft": ("TTFT", "Time to First Token"),
    "tpot": ("TPOT", "Time per Output Token (excl. 1st token)"),
    "itl": ("ITL", "Inter-token Latency"),
    "e2el": ("E2EL", "End-to-end Latency"),
    "client_queue_time": ("Client Queue Time", "Client-side Queueing"),
    "e2el_including_client_queue": ("E2EL incl. Client Queue", "Queue-inclusive End-to-end Latency"),
}


SPEC_DECODE = {
    "acceptance_rate": ("Acceptance rate (%):", ".2f"),
    "acceptance_length": ("Acceptance length:", ".2f"),
    "num_drafts": ("Drafts:", ""),
    "draft_tokens": ("Draft tokens:", ""),
    "accepted_tokens": ("Accepted tokens:", ""),
}


def block(result: Mapping[str, Any], metrics: Sequence[str], percentiles: Sequence[float]) -> Iterator[str]:
    """Write the lines of `vllm bench serve`'s block.

    Args:
        result: The numbers, by `vllm bench serve`'s names.
        metrics: The latencies that are shown, as far as they are among the numbers.
        percentiles: Those that are shown of each.
    """
    yield f"{' Serving Benchmark Result ':=^{WIDTH}}"
    yield row("Successful requests:", result["completed"], "")
    if result["failed"] is not None:
        yield row("Failed requests:", result["failed"], "")
    if result["max_concurrency"] is not None:
        yield row("Maximum request concurrency:", result["max_concurrency"], "")
    if result["request_rate"] != "inf":
        yield row("Request rate configured (RPS):", result["request_rate"])
    yield row("Benchmark duration (s):", result["duration"])
    yield row("Total input tokens:", result["total_input_tokens"], "")
    if "total_output_tokens" in result:
        yield row("Total generated tokens:", result["total_output_tokens"], "")
    yield row("Request throughput (req/s):", result["request_throughput"])
    if "input_sequence_throughput" in result:
        yield row("Input throughput (inputs/s):", result["input_sequence_throughput"])
    if result["request_goodput"] is not None:
        yield row("Request goodput (req/s):", result["request_goodput"])
    if "output_throughput" in result:
        yield row("Output token throughput (tok/s):", result["output_throughput"])
        yield row("Peak output token throughput (tok/s):", result["max_output_tokens_per_s"])
        yield row("Peak concurrent requests:", result["max_concurrent_requests"])
    yield row("Total token throughput (tok/s):", result["total_token_throughput"])
    if result.get("probe_completed") is not None:
        yield f"{'Probe Requests':-^{WIDTH}}"
        yield row("Probe requests completed:", result["probe_completed"], "")
        yield row("Probe requests failed:", result["probe_failed"], "")
        if result["probe_completed"]:
            yield row("Median probe E2EL (ms):", result["probe_median_e2el_ms"])
            yield row("P99 probe E2EL (ms):", result["probe_p99_e2el_ms"])
            yield row("Max probe E2EL (ms):", result["probe_max_e2el_ms"])
    for metric, (name, header) in HEADERS.items():
        if metric in metrics and f"mean_{metric}_ms" in result:
            yield f"{header:-^{WIDTH}}"
            yield row(f"Mean {name} (ms):", result[f"mean_{metric}_ms"])
            yield row(f"Median {name} (ms):", result[f"median_{metric}_ms"])
            for p in percentiles:
                yield row(f"{percentile(p).upper()} {name} (ms):", result[f"{percentile(p)}_{metric}_ms"])
    yield from _spec_decode(result)
    yield "=" * WIDTH


def _spec_decode(result: Mapping[str, Any]) -> Iterator[str]:
    """Write the rows of speculative decoding that are known; nothing where there was none."""
    known = {name: result.get(f"spec_decode_{name}") for name in SPEC_DECODE}
    if all(value is None for value in known.values()):
        return
    yield f"{'Speculative Decoding':-^{WIDTH}}"
    for name, (label, form) in SPEC_DECODE.items():
        if known[name] is not None:
            yield row(label, known[name], form)
    if rates := result["spec_decode_per_position_acceptance_rates"]:
        yield "Per-position acceptance (%):"
        for position, rate in enumerate(rates):
            yield row(f"  Position {position}:", rate * 100)


def row(label: str, value: float | str | None, form: str = ".2f") -> str:
    """Write a row: its label and its value, n/a for None."""
    return f"{label:<40} {UNKNOWN if value is None else format(value, form):<10}"
