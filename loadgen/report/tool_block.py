"""The blocks of `vllm bench serve` and of SGLang's `bench_serving`, row for row, and the labels of
their rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from loadgen.config.output import parse_percentiles
from loadgen.document import Code
from loadgen.features import probe
from loadgen.report.result import RunResult
from loadgen.report.result.numbers import meaning
from loadgen.util.number_format import UNKNOWN, percentile

WIDTH = 50
TITLE = f"{' Serving Benchmark Result ':=^{WIDTH}}"
# The rows of vLLM's block: the key of each, its label and its format.
VLLM_TOTALS = {
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
# The latencies of both: the metric of each in keys, its name in labels, and the header above it.
VLLM_LATENCIES = {
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
SGLANG_LATENCIES = {
    "e2e_latency": ("E2E Latency", "End-to-End Latency"),
    "ttft": ("TTFT", "Time to First Token"),
    "tpot": ("TPOT", "Time per Output Token (excl. 1st token)"),
    "itl": ("ITL", "Inter-Token Latency"),
}
# The rows of SGLang's block above the latencies: the key of each, its label, and its decimals.
SGLANG_TOTALS = {
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
SGLANG_STATISTICS = ("mean", "median", "p90", "p95", "p99")
SGLANG_RATE = "Traffic request rate:"
SGLANG_CAP = "Max request concurrency:"
SGLANG_MAX_ITL = "Max ITL (ms):"


def tool_block(result: RunResult) -> Code:
    """Write the block of vLLM, or of SGLang where the run was asked for it."""
    settings = result.provenance.settings
    if result.sglang is not None:
        longest_ms = result.latency_ms.named(meaning(settings)["itl"]).max_ms
        rows = sglang_block(result.flat(), longest_ms)
    else:
        selected = settings.percentile_metrics.split(",")
        rows = vllm_block(result.flat(), selected, parse_percentiles(settings.metric_percentiles))
    return Code("\n".join(rows))


def vllm_block(
    result: Mapping[str, Any], metrics: Sequence[str], percentiles: Sequence[float]
) -> Iterator[str]:
    """Write the lines of `vllm bench serve`'s block.

    Args:
        result: The numbers, by `vllm bench serve`'s names.
        metrics: The latencies that are shown, as far as they are among the numbers.
        percentiles: Those that are shown of each latency, 0 to 100.
    """
    yield TITLE
    left_out = {key for key in IF_PRESENT if key not in result} | {
        key for key in IF_KNOWN if result[key] is None
    }
    if result["request_rate"] == "inf":
        left_out.add("request_rate")
    if "output_throughput" not in result:
        left_out.update(OF_TOKENS)
    for key, (label, form) in VLLM_TOTALS.items():
        if key not in left_out:
            yield _row(label, result[key], form)
    yield from _known("Probe Requests", probe.ROWS, result)
    statistics = ("mean", "median", *map(percentile, percentiles))
    for metric, names in VLLM_LATENCIES.items():
        if metric in metrics and f"mean_{metric}_ms" in result:
            yield from _latency(metric, names, statistics, result)
    yield from _known("Speculative Decoding", SPEC_DECODE, result)
    if rates := result.get("spec_decode_per_position_acceptance_rates"):
        yield "Per-position acceptance (%):"
        for position, rate in enumerate(rates):
            yield _row(f"  Position {position}:", rate * 100)
    yield "=" * WIDTH


def sglang_block(result: Mapping[str, Any], max_itl_ms: float | None) -> Iterator[str]:
    """Write the lines of SGLang's block.

    Args:
        result: The numbers, by SGLang's names.
        max_itl_ms: The longest gap, ms; None: there is none.
    """
    yield TITLE
    yield _row("Backend:", result["backend"], "")
    yield _row(SGLANG_RATE, result["request_rate"], "")
    yield _row(SGLANG_CAP, result["max_concurrency"] or "not set", "")
    for key, (label, digits) in SGLANG_TOTALS.items():
        yield _row(label, result[key], f".{digits}f")
    if limits := result.get("goodput_slos_ms"):
        yield f"{'Goodput':-^{WIDTH}}"
        texts = (f"{metric}:{limit:g}" for metric, limit in limits.items())
        yield _row("SLOs (ms):", " ".join(texts), "")
        yield _row("Request goodput (req/s):", result["request_goodput"])
        shares = {
            f"{metric.upper()} ": of for metric, of in result["slo_attainment_by_metric"].items()
        }
        for name, share in ({"": result["slo_attainment"]} | shares).items():
            yield _row(f"{name}SLO attainment (%):", None if share is None else 100 * share)
    for metric, names in SGLANG_LATENCIES.items():
        yield from _latency(metric, names, SGLANG_STATISTICS, result)
    yield _row(SGLANG_MAX_ITL, max_itl_ms)
    yield "=" * WIDTH


def _latency(
    metric: str, names: tuple[str, str], statistics: Sequence[str], result: Mapping[str, Any]
) -> Iterator[str]:
    """Write the rows of a latency below its header."""
    name, header = names
    yield f"{header:-^{WIDTH}}"
    for statistic in statistics:
        yield _row(f"{statistic.title()} {name} (ms):", result[f"{statistic}_{metric}_ms"])


def _known(
    title: str, rows: Mapping[str, tuple[str, str]], result: Mapping[str, Any]
) -> Iterator[str]:
    """Write the rows that are known below a title; nothing where none is."""
    known = {key: result[key] for key in rows if result.get(key) is not None}
    if known:
        yield f"{title:-^{WIDTH}}"
    for key, value in known.items():
        yield _row(rows[key][0], value, rows[key][1])


def _row(label: str, value: float | str | None, form: str = ".2f") -> str:
    return f"{label:<40} {UNKNOWN if value is None else format(value, form):<10}"
