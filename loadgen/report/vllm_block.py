"""The block of `vllm bench serve`, row for row."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from loadgen.features import probe
from loadgen.util.number_format import UNKNOWN, percentile

WIDTH = 50
HEADERS = {
    "ttft": ("TTFT", "Time to First Token"),
    "tpot": ("TPOT", "Time per Output Token (excl. 1st token)"),
    "itl": ("ITL", "Inter-token Latency"),
    "e2el": ("E2EL", "End-to-end Latency"),
    "client_queue_time": ("Client Queue Time", "Client-side Queueing"),
    "e2el_including_client_queue": (
        "E2EL incl. Client Queue",
        "Queue-inclusive End-to-end Latency",
    ),
}

# The rows before the latencies: the key of each, its label and its format.
TOTALS = {
    "completed": ("Successful requests:", ""),
    "failed": ("Failed requests:", ""),
    "max_concurrency": ("Maximum request concurrency:", ""),
    "request_rate": ("Request rate configured (RPS):", ".2f"),
    "duration": ("Benchmark duration (s):", ".2f"),
    "total_input_tokens": ("Total input tokens:", ""),
    "total_output_tokens": ("Total generated tokens:", ""),
    "request_throughput": ("Request throughput (req/s):", ".2f"),
    "input_sequence_throughput": ("Input throughput (inputs/s):", ".2f"),
    "request_goodput": ("Request goodput (req/s):", ".2f"),
    "output_throughput": ("Output token throughput (tok/s):", ".2f"),
    "max_output_tokens_per_s": ("Peak output token throughput (tok/s):", ".2f"),
    "max_concurrent_requests": ("Peak concurrent requests:", ".2f"),
    "total_token_throughput": ("Total token throughput (tok/s):", ".2f"),
}
# Rows that are left out instead of n/a: where the value is None; where the key is missing; where
# there are no tokens.
IF_KNOWN = ("failed", "max_concurrency", "request_goodput")
IF_PRESENT = ("total_output_tokens", "input_sequence_throughput", "output_throughput")
OF_TOKENS = ("max_output_tokens_per_s", "max_concurrent_requests")
SPEC_DECODE = {
    "spec_decode_acceptance_rate": ("Acceptance rate (%):", ".2f"),
    "spec_decode_acceptance_length": ("Acceptance length:", ".2f"),
    "spec_decode_num_drafts": ("Drafts:", ""),
    "spec_decode_draft_tokens": ("Draft tokens:", ""),
    "spec_decode_accepted_tokens": ("Accepted tokens:", ""),
}


def block(
    result: Mapping[str, Any], metrics: Sequence[str], percentiles: Sequence[float]
) -> Iterator[str]:
    """Write the lines of `vllm bench serve`'s block.

    Args:
        result: The numbers, by `vllm bench serve`'s names.
        metrics: The latencies that are shown, as far as they are among the numbers.
        percentiles: Those that are shown of each latency, 0 to 100.
    """
    yield f"{' Serving Benchmark Result ':=^{WIDTH}}"
    left_out = {key for key in IF_PRESENT if key not in result} | {
        key for key in IF_KNOWN if result[key] is None
    }
    if result["request_rate"] == "inf":
        left_out.add("request_rate")
    if "output_throughput" not in result:
        left_out.update(OF_TOKENS)
    for key, (label, form) in TOTALS.items():
        if key not in left_out:
            yield row(label, result[key], form)
    yield from _known("Probe Requests", probe.ROWS, result)
    for metric, (name, header) in HEADERS.items():
        if metric in metrics and f"mean_{metric}_ms" in result:
            yield f"{header:-^{WIDTH}}"
            yield row(f"Mean {name} (ms):", result[f"mean_{metric}_ms"])
            yield row(f"Median {name} (ms):", result[f"median_{metric}_ms"])
            for p in percentiles:
                yield row(
                    f"{percentile(p).upper()} {name} (ms):", result[f"{percentile(p)}_{metric}_ms"]
                )
    yield from _known("Speculative Decoding", SPEC_DECODE, result)
    if rates := result.get("spec_decode_per_position_acceptance_rates"):
        yield "Per-position acceptance (%):"
        for position, rate in enumerate(rates):
            yield row(f"  Position {position}:", rate * 100)
    yield "=" * WIDTH


def _known(
    title: str, rows: Mapping[str, tuple[str, str]], result: Mapping[str, Any]
) -> Iterator[str]:
    """Write the rows that are known below a title; nothing where none is."""
    lines = [
        row(label, value, form)
        for key, (label, form) in rows.items()
        if (value := result.get(key)) is not None
    ]
    if lines:
        yield f"{title:-^{WIDTH}}"
        yield from lines


def row(label: str, value: float | str | None, form: str = ".2f") -> str:
    """Write a row: its label and its value, n/a for None."""
    return f"{label:<40} {UNKNOWN if value is None else format(value, form):<10}"
