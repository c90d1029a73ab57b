"""Numbers of published pages that cannot be: what takes their place, and what is kept as
printed.
"""

import pytest

from tests.helpers.imported_files import arm, page

QWEN_9B, QWEN_30B = "qwen3.5-9b-h100", "qwen3-30b-a3b-910b"


def test_impossible_throughput_is_computed_and_kept_as_printed() -> None:
    summary = arm(page(QWEN_9B).findings, "Engine", "vLLM").trials[0].runs["sharegpt"].summary
    # (342058 + 281412) / 54.74
    assert summary["total_token_throughput"] == pytest.approx(11389.66, abs=0.005)
    assert summary["output_throughput"] == pytest.approx(5140.88, abs=0.005)  # 281412 / 54.74
    assert summary["request_throughput"] == 18.27  # which 1000 / 54.74 is
    printed = summary["loadgen"]["published"]
    assert (printed["total_token_throughput"], printed["output_throughput"]) == (11527.14, 5202.94)
    assert summary["loadgen"]["verdict"] == "SUSPECT"
    assert (
        "wrong throughput: total 11527.14 tok/s, should be 11389.66 tok/s"
        in summary["loadgen"]["reasons"]
    )


def test_tpot_that_is_ttft_by_tokens_is_kept_only_as_printed() -> None:
    for trial in page(QWEN_9B).trials:
        for ran in trial.runs.values():
            assert ran.summary["mean_tpot_ms"] is None
    ((ran,),) = (
        trial.runs.values() for trial in page(QWEN_9B).trials if "SGLang" in trial.request.arm
    )
    assert ran.summary["loadgen"]["published"]["mean_tpot_ms"] == 138.86
    assert ran.summary["mean_itl_ms"] == 45.86  # (39080 - 26217.15) / (281412 / 1000 - 1) = 45.87


def test_a_peak_that_cannot_be_is_not_available() -> None:
    small = arm(page(QWEN_30B).findings, "confirmation", "baseline").trials
    (ran,) = (trial.runs["sharegpt-bs4"] for trial in small if "sharegpt-bs4" in trial.runs)
    assert ran.summary["max_concurrent_requests"] is None
    assert ran.summary["loadgen"]["published"]["max_concurrent_requests"] == 7  # of 4
