"""Converters of other projects that read the JSON of `vllm bench serve` read that of loadgen.

The converter of llm-d (llmdbenchmark/analysis/benchmark_report, of 2026-08-21) needs a number for
each of `NUMBERS`, and divides by `num_prompts`.
"""

import pytest

from loadgen.config.settings import RunSettings
from loadgen.metrics.records.trailer import WorkerReport
from tests.helpers.run_facts import failed, result, steady

LATENCIES = [
    f"{statistic}_{metric}_ms"
    for metric in ("ttft", "tpot", "itl", "e2el")
    for statistic in ("mean", "std", "median", "p99")
]
NUMBERS = (
    *("num_prompts", "completed", "total_input_tokens", "total_output_tokens"),
    *("output_throughput", "total_token_throughput", "request_throughput"),
    *LATENCIES,
)


@pytest.mark.parametrize("failures", [0, 1])
def test_llm_d_finds_a_number_for_each_key_that_it_needs(failures: int) -> None:
    records = [*(steady(index) for index in range(9)), *map(failed, range(9, 9 + failures))]
    data = result(records, RunSettings(max_concurrency=4))
    assert [key for key in NUMBERS if not isinstance(data[key], int | float)] == []
    assert data["num_prompts"] - data["completed"] == failures
    assert (data["request_rate"], data["max_concurrency"]) == ("inf", 4)


def test_a_run_without_an_answer_has_no_latency_to_read() -> None:
    """The converter refuses null; vLLM writes 0 ms, which would be the best of all results."""
    data = result([failed(0), failed(1)])
    assert {data[key] for key in LATENCIES} == {None}


def test_inferencex_finds_the_times_between_which_power_counts() -> None:
    """Its aggregate_power.py integrates power from the one to the other, s since 1970."""
    records = [steady(index, due=100 * index, ttft=20, gap=10, n=3) for index in range(9)]
    unknown, known = (
        result(records, shards=[WorkerReport(start_unix_ns=start_ns)])
        for start_ns in (None, 1_700_000_000 * 10**9)
    )
    assert "benchmark_start_time_unix" not in unknown
    assert known["benchmark_start_time_unix"] == 1_700_000_000
    assert known["benchmark_end_time_unix"] == pytest.approx(1_700_000_000.84)
    assert known["duration"] == pytest.approx(0.84)
    of_later = result(records[1:], shards=[WorkerReport(start_unix_ns=1_700_000_000 * 10**9)])
    assert of_later["benchmark_start_time_unix"] == pytest.approx(1_700_000_000.1)
