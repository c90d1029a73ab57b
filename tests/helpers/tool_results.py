"""Results of one run as JSON files of vLLM, SGLang and guidellm, with numbers that agree."""

from typing import Any

# As `vllm bench serve --save-result` keeps it; 100 replies of 101 tokens.
VLLM: dict[str, Any] = {
    "date": "20261121-015143",
    "completed": 100,
    "failed": 0,
    "max_concurrency": 11,
    "duration": 10.0,
    "total_input_tokens": 10_000,
    "total_output_tokens": 10_100,
    "request_throughput": 10.0,
    "output_throughput": 1010.0,
    "total_token_throughput": 2010.0,
    "output_lens": [101] * 100,
    "max_output_tokens_per_s": 2000.0,
    "max_concurrent_requests": 11,
    **{f"{statistic}_ttft_ms": 100.0 for statistic in ("mean", "median", "p99")},
    **{f"{statistic}_tpot_ms": 10.0 for statistic in ("mean", "median", "p99")},
    **{f"{statistic}_itl_ms": 10.0 for statistic in ("mean", "median", "p99")},
    "mean_e2el_ms": 1100.0,
}
# As SGLang's bench_serving appends it to a file, a line a run.
SGLANG: dict[str, Any] = {
    "backend": "sglang",
    "request_rate": float("inf"),
    "duration": 10.0,
    "completed": 100,
    "total_input_tokens": 10_000,
    "total_output_tokens": 10_100,
    "total_output_tokens_retokenized": 10_090,
    "request_throughput": 10.0,
    "input_throughput": 1000.0,
    "output_throughput": 1010.0,
    "mean_e2e_latency_ms": 1100.0,
    "median_e2e_latency_ms": 1100.0,
    "mean_ttft_ms": 100.0,
    "mean_tpot_ms": 10.0,
    "mean_itl_ms": 10.0,
    "median_itl_ms": 10.0,
    "concurrency": 11.0,
}


def guidellm(**metrics: float) -> dict[str, Any]:
    """Return a guidellm benchmark; its TPOT counts from the start of the request, over all
    tokens.
    """
    means = {
        "requests_per_second": 10.01,
        "output_tokens_per_second": 1011.0,
        "tokens_per_second": 2012.0,
        "request_latency": 1.1,
        "time_to_first_token_ms": 100.0,
        "time_per_output_token_ms": 1100 / 101,
        "inter_token_latency_ms": 10.0,
        "prompt_token_count": 100.0,
        "output_token_count": 101.0,
    } | metrics
    told: dict[str, Any] = {
        name: {
            "successful": {
                "mean": value,
                "median": value,
                "percentiles": {"p95": value, "p99": value},
            }
        }
        for name, value in means.items()
    }
    told["request_totals"] = {"successful": 100, "incomplete": 0, "errored": 0, "total": 100}
    return {"benchmarks": [{"start_time": 50.0, "end_time": 60.0, "metrics": told}]}
