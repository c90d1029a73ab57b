"""The result files of other tools, by the names of `vllm bench serve`: those of vLLM's and SGLang's
own tools, of AIPerf, guidellm and inference-perf.

Only numbers that mean the same are among the values; each tool says which do not.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from loadgen.errors import BadInput
from loadgen.lab.audit import files
from loadgen.lab.audit.published import Published
from loadgen.lab.tools.tool_result import ToolResult

Flat = dict[str, Any]
VLLM = "vllm bench serve"
VLLM_RS = "vllm-rs bench serve"
SGLANG = "SGLang's bench_serving"
DETAILS = {VLLM: "--save-detailed", VLLM_RS: "--save-detailed", SGLANG: "--output-details"}
GENERATE = ("sglang", "sglang-native")  # SGLang's names of its own API
# SGLang's keys -> vLLM's of the same meaning
TO_VLLM = {"total_throughput": "total_token_throughput"}
AIPERF_RECORDS = "profile_export.jsonl"  # beside profile_export_aiperf.json
PERCENTILES = ("p90", "p95", "p99")
MS = {"ms": 1.0, "s": 1e3, "sec": 1e3, "us": 1e-3, "ns": 1e-6}
AIPERF_LATENCIES = {
    "time_to_first_token": "ttft",
    "inter_token_latency": "tpot",
    "inter_chunk_latency": "itl",
    "request_latency": "e2el",
}
AIPERF_NUMBERS = {
    "request_count": "completed",
    "error_request_count": "failed",
    "benchmark_duration": "duration",
    "total_isl": "total_input_tokens",
    "total_osl": "total_output_tokens",
    "request_throughput": "request_throughput",
    "output_token_throughput": "output_throughput",
    "total_token_throughput": "total_token_throughput",
    "goodput": "request_goodput",
}
GUIDELLM_LATENCIES = {"time_to_first_token_ms": ("ttft", 1.0), "request_latency": ("e2el", 1e3)}
GUIDELLM_RATES = {
    "requests_per_second": "request_throughput",
    "output_tokens_per_second": "output_throughput",
    "tokens_per_second": "total_token_throughput",
}
PERF_LATENCIES = {
    "time_to_first_token": "ttft",
    "time_per_output_token": "tpot",
    "inter_token_latency": "itl",
    "request_latency": "e2el",
}
PERF_RATES = {
    "requests_per_sec": "request_throughput",
    "output_tokens_per_sec": "output_throughput",
    "total_tokens_per_sec": "total_token_throughput",
}


def read(path: str) -> list[ToolResult]:
    """Read the results of another tool in a file: one JSON object, a list, or one object in each
    line.

    Returns:
        Empty if the file holds none of a tool that is known.

    Raises:
        BadInput: The file cannot be read.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput((), f"{path}: {error.strerror}", "name a result") from error
    except UnicodeDecodeError:
        return []
    numbers: list[Published] | list[None]
    try:
        published = files.results(path, text)
    except (BadInput, json.JSONDecodeError):
        published = []
    if foreign := _foreign(path, text):
        numbers = published if len(published) == len(foreign) else [None] * len(foreign)
        places = [f"{path}: run {number}" for number in range(1, len(foreign) + 1)]
    elif all(result.data and "loadgen" not in result.data for result in published):
        foreign, numbers = [_script(result.data) for result in published], [*published]
        places = [f"{path}: line {result.place.line}" for result in published]
    else:
        return []
    return [
        replace(result, where=path if len(foreign) == 1 else place, published=number)
        for result, place, number in zip(foreign, places, numbers, strict=True)
    ]


def _script(data: Mapping[str, Any]) -> ToolResult:
    """Read a result of `vllm bench serve`, its client in Rust, or SGLang's `bench_serving`."""
    if "mean_e2e_latency_ms" in data:
        tool = SGLANG
    else:
        tool = VLLM_RS if "steady_state" in data or "max_model_len" in data else VLLM
    names = {name: TO_VLLM.get(name, name.replace("_e2e_latency_ms", "_e2el_ms")) for name in data}
    flat = {name: data[key] for key, name in names.items()}
    gap = "itl" if tool == SGLANG and flat.get("backend") in GENERATE else "icl"
    return ToolResult(tool, flat, gap, "", f"was saved without {DETAILS[tool]}")


def _foreign(path: str, text: str) -> list[ToolResult]:
    """Read the results of a tool whose files have other names; empty if it is none."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return []
    if not isinstance(data, dict):
        return []
    if "request_count" in data and "aiperf_version" in data:
        return [_aiperf(data, Path(path).with_name(AIPERF_RECORDS))]
    if isinstance(benchmarks := data.get("benchmarks"), list):
        runs = [run for run in benchmarks if _part(run, "metrics")]
        return [_guidellm(run, number, len(runs)) for number, run in enumerate(runs, 1)]
    if _part(data, "successes", "latency") and "load_summary" in data:
        return [_inference_perf(data)]
    return []


def _aiperf(data: Flat, records: Path) -> ToolResult:
    flat: Flat = {}
    for name, latency in AIPERF_LATENCIES.items():
        part = _part(data, name)
        statistics = part | {"mean": part.get("avg"), "median": part.get("p50")}
        flat |= _statistics(latency, statistics, MS.get(str(part.get("unit")), math.nan))
    for name, key in AIPERF_NUMBERS.items():
        if (value := _number(_part(data, name).get("avg"))) is not None:
            flat[key] = value
    version = data.get("aiperf_version")
    return ToolResult(
        f"AIPerf {version}",
        flat | {"failed": flat.get("failed", 0)} | _aiperf_requests(records),
        "icl",
        "its inter-token latency is a mean of each request, and is compared as TPOT; its rates are "
        "until the last content",
        f"has no {AIPERF_RECORDS} beside it",
        partial="cancelled" if data.get("was_cancelled") is True else None,
    )


def _aiperf_requests(path: Path) -> Flat:
    """Return the lists of single requests that a file beside the result has; empty without it."""
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
    except (OSError, ValueError):
        return {}
    rows = [row for row in rows if _part(row, "metadata").get("benchmark_phase") != "warmup"]

    def column(name: str, scale: float) -> list[float]:
        return [
            0.0 if value is None else value / scale
            for value in (_number(_part(row, "metrics", name).get("value")) for row in rows)
        ]

    length = "output_sequence_length"
    if any(not row.get("error") and not _part(row, "metrics", length) for row in rows):
        return {}  # the server counted no tokens
    gaps = [_part(row, "metrics", "inter_chunk_latency").get("value") or [] for row in rows]
    return {
        "ttfts": column("time_to_first_token", 1e3),
        "latencies": column("request_latency", 1e3),
        "itls": [[gap / 1e3 for gap in of_request] for of_request in gaps],
        "input_lens": column("input_sequence_length", 1.0),
        "output_lens": column(length, 1.0),
        "start_times": [_part(row, "metadata")["request_start_ns"] / 1e9 for row in rows],
        "errors": [str(row.get("error") or "") for row in rows],
    }


def _guidellm(run: Flat, number: int, runs: int) -> ToolResult:
    metrics = _part(run, "metrics")
    # Those in one file have different loads.
    flat: Flat = {"benchmark": f"{number} of {runs}"} if runs > 1 else {}
    for name, (latency, scale) in GUIDELLM_LATENCIES.items():
        flat |= _statistics(latency, _of_successful(metrics, name), scale)
    gaps = _of_successful(metrics, "inter_token_latency_ms")
    flat |= _statistics("itl", {"mean": gaps.get("mean")}, 1.0)
    totals = _part(metrics, "request_totals")
    counts = {"completed": totals.get("successful"), "failed": totals.get("errored")}
    if counts["completed"] is None:
        counts["completed"] = _of_successful(metrics, "time_to_first_token_ms").get("count")
    rates = {key: _of_successful(metrics, name).get("mean") for name, key in GUIDELLM_RATES.items()}
    values = counts | rates | {"duration": run.get("duration")}
    return ToolResult(
        "guidellm",
        flat | {name: value for name, value in values.items() if _number(value) is not None},
        "itl",
        "its TPOT counts from the start of a request, and the percentiles of its ITL are of means "
        "of requests: neither is compared; its rates are between events, not over the run",
        "is read without its single requests",
    )


def _of_successful(metrics: Flat, name: str) -> Flat:
    part = _part(metrics, name, "successful")
    count, total = _number(part.get("count")), _number(part.get("total_sum"))
    mean = {} if not count or total is None else {"mean": total / count}
    percentiles = _part(part, "percentiles")
    return mean | {"median": percentiles.get("p50")} | percentiles | part


def _inference_perf(data: Flat) -> ToolResult:
    latencies = _part(data, "successes", "latency")
    flat: Flat = {}
    for name, latency in PERF_LATENCIES.items():
        flat |= _statistics(latency, _part(latencies, name), 1e3)
    rates = _part(data, "successes", "throughput")
    values = {
        "completed": _part(data, "successes").get("count"),
        "failed": _part(data, "failures").get("count", 0),
        "duration": data.get("benchmark_time_seconds"),
        "request_rate": _part(data, "load_summary").get("requested_rate"),
        "max_concurrency": _part(data, "load_summary").get("concurrency"),
        "total_input_tokens": _part(data, "successes", "prompt_tokens").get("total"),
        "total_output_tokens": _part(data, "successes", "output_tokens").get("total"),
        **{key: rates.get(name) for name, key in PERF_RATES.items()},
    }
    return ToolResult(
        "inference-perf",
        flat | {name: value for name, value in values.items() if _number(value) is not None},
        "icl",
        "its normalized time per output token has no counterpart",
        "is read without its single requests",
    )


def _statistics(latency: str, statistics: Mapping[str, Any], scale: float) -> Flat:
    """Return the statistics of a latency that are there, ms."""
    values = ((name, _number(statistics.get(name))) for name in ("mean", "median", *PERCENTILES))
    return {
        f"{name}_{latency}_ms": value * scale
        for name, value in values
        if value is not None and not math.isnan(scale)
    }


def _part(data: Any, *keys: str) -> Flat:
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else {}


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and math.isfinite(value) else None
