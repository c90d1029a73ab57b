"""Results as JSON: each kind is read by its own meaning; other files are refused in one line."""

import json
from pathlib import Path
from typing import Any

import pytest

from loadgen.errors import BadInput
from loadgen.report import to_json
from tests.helpers.audited_pages import found, only, rules
from tests.helpers.run_facts import result, steady
from tests.helpers.saved_json import render
from tests.helpers.tool_results import SGLANG, VLLM, guidellm


def audited(tmp_path: Path, data: Any) -> Any:
    return found(tmp_path, json.dumps(data), "result.json")


@pytest.mark.parametrize("clean", [VLLM, SGLANG, guidellm()], ids=["vllm", "sglang", "guidellm"])
def test_a_result_whose_numbers_agree_has_no_finding(tmp_path: Path, clean: dict) -> None:
    assert audited(tmp_path, clean) == []


def test_vllms_rates_are_its_tokens_by_its_duration(tmp_path: Path) -> None:
    assert (
        only(audited(tmp_path, VLLM | {"total_token_throughput": 2011.0}), "throughput").should_be
        == "2010 tok/s"
    )


def test_vllms_peak_above_the_cap_is_found(tmp_path: Path) -> None:
    assert rules(audited(tmp_path, VLLM | {"max_concurrent_requests": 16})) == {"peak-concurrency"}
    assert rules(
        audited(tmp_path, VLLM | {"max_concurrent_requests": 101, "max_concurrency": None})
    ) == {"peak-concurrency"}


def test_lengths_of_replies_decide_whether_they_are_all_the_same(tmp_path: Path) -> None:
    wrong = VLLM | {"mean_tpot_ms": 9.0}
    assert rules(audited(tmp_path, wrong)) == {"tpot"}
    assert audited(tmp_path, wrong | {"output_lens": [100, 102] * 50}) == []


def test_sglangs_file_has_a_run_in_each_line(tmp_path: Path) -> None:
    lines = [SGLANG, SGLANG | {"mean_ttft_ms": 0.0}, SGLANG | {"concurrency": 12.0}]
    findings = found(tmp_path, "\n".join(map(json.dumps, lines)) + "\n", "runs.jsonl")
    assert [
        (finding.place.line, finding.rule) for finding in findings if finding.rule != "tpot"
    ] == [(2, "latency-zero"), (3, "in-flight")]


def test_sglangs_input_has_a_rate_of_its_own(tmp_path: Path) -> None:
    finding = only(audited(tmp_path, SGLANG | {"input_throughput": 999.0}), "throughput")
    assert (finding.says, finding.should_be) == ("input 999 tok/s", "1000 tok/s")


def test_guidellms_rates_may_be_off_by_what_lies_beyond_its_events(tmp_path: Path) -> None:
    finding = only(audited(tmp_path, guidellm(tokens_per_second=2032.0)), "throughput")
    assert "+1.09%" in finding.why
    assert finding.place.within == "benchmark 1"


def test_guidellms_rates_of_a_warmup_that_is_not_counted_are_not_compared_with_counts(
    tmp_path: Path,
) -> None:
    data = guidellm(tokens_per_second=2100.0)
    assert rules(audited(tmp_path, data)) == {"throughput"}
    data["benchmarks"][0]["scheduler_metrics"] = {
        "requests_made": {"successful": 120, "total": 120}
    }
    assert audited(tmp_path, data) == []


def test_guidellms_tpot_is_the_whole_latency_by_the_tokens(tmp_path: Path) -> None:
    finding = only(audited(tmp_path, guidellm(time_per_output_token_ms=100 / 101)), "tpot")
    assert (finding.says, finding.should_be) == ("mean TPOT 0.99 ms", "10.89 ms")
    assert "TTFT by output tokens" in finding.why


def test_guidellm_itl_of_zero_is_found(tmp_path: Path) -> None:
    assert (
        only(audited(tmp_path, guidellm(inter_token_latency_ms=0.0)), "itl-zero").should_be
        == "10 ms"
    )


# -- loadgen's own


def test_a_clean_result_of_ours_has_no_finding_as_json_and_as_it_is_printed(tmp_path: Path) -> None:
    data = result([steady(n, due=50.0 * n, n=5) for n in range(40)])
    assert found(tmp_path, to_json(data), "result.json") == []
    assert found(tmp_path, f"# A run\n\n```\n{render(data)}```\n") == []


def test_a_run_that_does_not_believe_itself_is_believed_in_that(tmp_path: Path) -> None:
    invalid = only(
        audited(tmp_path, VLLM | {"loadgen": {"schema": 1, "verdict": "INVALID"}}), "verdict"
    )
    suspect = only(
        audited(tmp_path, VLLM | {"loadgen": {"schema": 1, "verdict": "SUSPECT"}}), "verdict"
    )
    assert (invalid.note, suspect.note) == (False, True)
    assert audited(tmp_path, VLLM | {"loadgen": {"schema": 1, "verdict": "VALID"}}) == []


def test_tpot_of_some_replies_is_not_held_against_all(tmp_path: Path) -> None:
    own = {"verdict": "VALID", "latency_ms": {"tpot_n1": {"count": 50}}}
    assert audited(tmp_path, VLLM | {"mean_tpot_ms": 9.0, "loadgen": own}) == []


def test_percentiles_of_ours_are_exact_to_three_digits(tmp_path: Path) -> None:
    whole_run = VLLM | {"p99_e2el_ms": 10_005.0}
    assert rules(audited(tmp_path, whole_run)) == {"latency-bounds"}
    assert audited(tmp_path, whole_run | {"loadgen": {"verdict": "VALID"}}) == []


def test_the_order_in_which_a_tool_adds_up_is_no_finding(tmp_path: Path) -> None:
    assert (
        audited(tmp_path, VLLM | {"request_throughput": 10.000001, "mean_tpot_ms": 10.000002}) == []
    )


# -- refused


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{}", "page.md:1 is JSON, but not a known result"),
        ("[1]", "is JSON, but not a known result"),
        ('{"benchmarks": [1]}', "is JSON, but not a known result"),
        ('{"benchmarks": []}', "is JSON, but not a known result"),
        ('{"benchmarks": [{"metrics": {}}]}', "is JSON, but not a known result"),
        ('{"completed": 1\n', "page.md:1 is not JSON"),
        ("[" * 100_000, "page.md:1 is not JSON"),
        ("A page without numbers.\n", "page.md: nothing here that I can check: no block"),
        ("", "page.md: nothing here that I can check: no block"),
        ("| Flag | Default |\n|---|---|\n| a | 1 |\n", "nothing here that I can check"),
    ],
)
def test_file_without_result_is_refused_in_one_line(
    tmp_path: Path, text: str, problem: str
) -> None:
    with pytest.raises(BadInput) as refused:
        found(tmp_path, text)
    assert refused.value.path == ()
    assert problem in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path: Path) -> None:
    from loadgen.lab.audit import audit

    with pytest.raises(BadInput, match="No such file"):
        audit(str(tmp_path / "none.md"))
    (tmp_path / "image.png").write_bytes(b"\x89PNG\xff\xfe")
    with pytest.raises(BadInput, match="is not a text file"):
        audit(str(tmp_path / "image.png"))


def test_odd_values_in_json_are_as_if_they_were_not_there(tmp_path: Path) -> None:
    odd = VLLM | {
        "mean_ttft_ms": None,
        "mean_tpot_ms": "NaN",
        "median_e2el_ms": True,
        "max_concurrency": "inf",
    }
    odd |= {
        "mean_itl_ms": float("nan"),
        "p99_itl_ms": float("-inf"),
        "median_itl_ms": float("inf"),
        "loadgen": 3,
    }
    assert audited(tmp_path, odd) == []
