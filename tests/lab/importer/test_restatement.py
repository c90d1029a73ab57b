"""A published result as a run's summary: vLLM's names, without inconsistent values."""

import re
from pathlib import Path
from typing import Any

import pytest

from loadgen.errors import BadInput
from loadgen.lab.audit.files import results
from loadgen.lab.audit.published import Published
from loadgen.lab.importer.entries import Source
from loadgen.lab.importer.restatement import restated, untrue_of_all
from loadgen.report import to_json
from tests.helpers.audited_pages import block
from tests.helpers.run_facts import result, steady
from tests.helpers.tool_results import SGLANG, VLLM, guidellm


def of_json(data: Any) -> Published:
    return results("result.json", to_json(data))[0]


def of_block(tmp_path: Path, **given: float) -> Published:
    """The result of a block in which all is as it must be, but for what is given."""
    path = tmp_path / "page.md"
    path.write_text(block(**given))
    found = Source.read(str(path)).entries[0].result
    assert found is not None
    return found


def test_a_block_has_the_names_of_vllms_result(tmp_path: Path) -> None:
    summary = restated(of_block(tmp_path, e2el=1100.0, cap=11), 100)
    own = summary.pop("loadgen")
    assert summary == {
        "num_prompts": 100,
        "completed": 100,
        "failed": 0,
        "max_concurrency": 11,
        "duration": 10.0,
        "total_input_tokens": 10_000,
        "total_output_tokens": 10_100,
        "request_throughput": 10.0,
        "output_throughput": 1010.0,
        "total_token_throughput": 2010.0,
        "input_throughput": 1000.0,  # not printed: 10000 / 10 s
        "max_output_tokens_per_s": 2020.0,
        "max_concurrent_requests": 11,
        **{f"{statistic}_ttft_ms": 100.0 for statistic in ("mean", "median", "p99")},
        **{f"{statistic}_tpot_ms": 10.0 for statistic in ("mean", "median", "p99")},
        **{f"{statistic}_itl_ms": 10.0 for statistic in ("mean", "median", "p99")},
        "mean_e2el_ms": 1100.0,
    }
    assert (own["verdict"], own["reasons"], own["slo"], own["simulated"]) == (None, [], [], False)
    assert own["error_rate"] == 0.0
    assert "input_throughput" not in own["published"]


# In a run that was interrupted the rest did not fail.
@pytest.mark.parametrize(
    ("data", "asked", "expected"),
    [
        ({"num_prompts": "many", "failed": 3}, 1000, (103, 100, 3)),
        ({"failed": 3}, 1000, (103, 100, 3)),  # what the result says goes first
        ({"failed": None}, 120, (120, 100, 20)),  # then what the workload asks
        ({"failed": None}, 0, (100, 100, 0)),  # then nothing is known of any other
        ({"num_prompts": 110}, 1000, (110, 100, 0)),
    ],
)
def test_how_many_requests_were_sent(
    data: dict[str, Any], asked: int, expected: tuple[int, int, int]
) -> None:
    summary = restated(of_json(VLLM | data), asked)
    assert (summary["num_prompts"], summary["completed"], summary["failed"]) == expected


@pytest.mark.parametrize(
    ("given", "untrue", "kept"),
    [
        (
            {"tpot": 1.0, "itl": 10.0, "e2el": 1100.0},
            ["mean_tpot_ms", "p99_tpot_ms"],
            ["mean_itl_ms"],
        ),
        (
            {"tpot": 10.0, "itl": 0.0, "e2el": 1100.0},
            ["mean_itl_ms", "mean_tpot_ms"],
            ["mean_ttft_ms"],
        ),
        (
            {"tpot": 10.0, "itl": 4.0, "e2el": 1100.0},
            ["mean_itl_ms", "mean_tpot_ms"],
            ["mean_ttft_ms"],
        ),
        ({"itl": 10.0, "median_itl": 0.01}, ["mean_itl_ms", "median_itl_ms"], ["mean_tpot_ms"]),
        ({"ttft": 0.0}, ["mean_ttft_ms", "p99_ttft_ms"], ["mean_tpot_ms"]),
        ({"peak": 20_000.0}, ["max_output_tokens_per_s"], ["output_throughput"]),
        ({"cap": 4, "in_flight": 7}, ["max_concurrent_requests"], ["max_concurrency"]),
    ],
)
def test_a_number_that_is_not_what_it_is_called_is_null_and_kept_as_printed(
    tmp_path: Path, given: dict[str, float], untrue: list[str], kept: list[str]
) -> None:
    summary = restated(of_block(tmp_path, **given), 100)
    assert [summary[name] for name in untrue] == [None] * len(untrue)
    assert None not in [summary[name] for name in kept]
    assert set(untrue) <= summary["loadgen"]["published"].keys()
    assert summary["loadgen"]["verdict"] == "SUSPECT"


@pytest.mark.parametrize(
    ("row", "untrue", "kept"),
    [
        (
            "Median TTFT (ms): 0.00",
            ["mean_ttft_ms", "median_ttft_ms", "p99_ttft_ms"],
            ["mean_tpot_ms"],
        ),
        # tokens that come together
        ("Median TPOT (ms): 0.00", ["median_tpot_ms"], ["mean_tpot_ms", "p99_tpot_ms"]),
    ],
)
def test_mean_of_a_latency_of_requests_goes_with_its_zero_median(
    tmp_path: Path, row: str, untrue: list[str], kept: list[str]
) -> None:
    path = tmp_path / "page.md"
    path.write_text(re.sub(rf"{re.escape(row[:16])}.*", row, block()))
    found = Source.read(str(path)).entries[0].result
    assert found is not None
    summary = restated(found, 100)
    assert [summary[name] for name in untrue] == [None] * len(untrue)
    assert None not in [summary[name] for name in kept]
    assert summary["loadgen"]["published"]["mean_ttft_ms"] == 100.0


def test_a_rate_that_does_not_follow_from_counts_and_duration_is_computed(tmp_path: Path) -> None:
    summary = restated(of_block(tmp_path, total=2300.0, rate=11.0), 100)
    assert (summary["total_token_throughput"], summary["request_throughput"]) == (2010.0, 10.0)
    assert summary["loadgen"]["published"]["total_token_throughput"] == 2300.0
    assert summary["loadgen"]["reasons"] == [
        "wrong throughput: requests 11 req/s, should be 10 req/s",
        "wrong throughput: total 2300 tok/s, should be 2010 tok/s",
    ]


def test_inconsistency_of_one_result_holds_for_the_file(tmp_path: Path) -> None:
    clean, wrong = (
        of_block(tmp_path, e2el=1100.0),
        of_block(tmp_path, tpot=1.0, itl=10.0, e2el=1100.0),
    )
    untrue = untrue_of_all([clean, wrong])
    assert untrue == {"tpot"}
    assert untrue_of_all([clean]) == set()
    assert restated(clean, 100, untrue)["mean_tpot_ms"] is None


def test_a_tpot_from_the_start_of_the_request_is_no_tpot() -> None:
    summary = restated(of_json(guidellm()), 100)
    assert summary["mean_tpot_ms"] is None
    assert summary["loadgen"]["published"]["mean_tpot_ms"] == pytest.approx(1100 / 101)
    assert (summary["mean_itl_ms"], summary["mean_e2el_ms"]) == (10.0, 1100.0)


def test_other_names_of_the_same_are_vllms_too() -> None:
    summary = restated(of_json(SGLANG | {"request_rate": 5.0}), 100)
    assert (summary["mean_e2el_ms"], summary["mean_e2e_latency_ms"]) == (1100.0, 1100.0)
    assert (summary["backend"], summary["request_rate"]) == ("sglang", 5.0)  # and what else it says


def test_own_result_is_unchanged_but_for_nested_values() -> None:
    data = result([steady(n) for n in range(20)])
    summary = restated(of_json(data), 0)
    plain = {key: value for key, value in data.items() if not isinstance(value, dict | list)}
    assert {key: summary[key] for key in plain} == pytest.approx(plain)
    for name in ("verdict", "overloaded", "simulated", "error_rate", "slo", "closed_loop"):
        assert summary["loadgen"][name] == data["loadgen"][name]
    assert summary["loadgen"]["servers"] == 1


@pytest.mark.parametrize("own", [[], {"targets": 2}, {"slo": [1]}, {"checks": [{}]}])
def test_a_part_of_ours_that_is_not_whole_is_refused(own: Any) -> None:
    with pytest.raises(BadInput) as caught:
        restated(of_json(VLLM | {"loadgen": own}), 100)
    assert str(caught.value).startswith("result.json:1 is incomplete (")


def test_a_number_too_large_to_be_one_is_none(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(
        block().replace("input tokens:                      10000", f"input tokens: {'9' * 400}")
    )
    found = Source.read(str(path)).entries[0].result
    assert found is not None
    summary = restated(found, 100)
    assert "total_input_tokens" not in summary
    assert summary["completed"] == 100
