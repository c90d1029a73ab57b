"""Results of AIPerf, guidellm and inference-perf are baselines of a comparison, and say what of
them is not compared.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loadgen.cli.main import dispatch
from loadgen.lab.tools import tool_files
from loadgen.lab.tools.tool_files import AIPERF_RECORDS
from loadgen.lab.tools.tool_result import ToolResult
from tests.helpers.source import ROOT

RECORDED = ROOT / "tests" / "qa" / "peers" / "recorded"
AIPERF = RECORDED / "aiperf" / "profile_export_aiperf.json"
GUIDELLM = RECORDED / "guidellm" / "guidellm.json"
INFERENCE_PERF = RECORDED / "inference-perf" / "stage_0_lifecycle_metrics.json"


def read(path: Path) -> ToolResult:
    (result,) = tool_files.read(str(path))
    return result


def data(path: Path) -> dict[str, Any]:
    whole: dict[str, Any] = json.loads(path.read_text())
    return whole


def test_tool_is_known_by_its_file() -> None:
    tools = [read(path).tool for path in (AIPERF, GUIDELLM, INFERENCE_PERF)]
    assert tools == ["AIPerf 0.13.0", "guidellm", "inference-perf"]


def test_aiperf_itl_is_compared_as_tpot_and_its_chunks_as_icl() -> None:
    result, saved = read(AIPERF), data(AIPERF)
    assert result.gap == "icl"
    for name, key in (
        ("mean_ttft_ms", saved["time_to_first_token"]["avg"]),
        ("p99_tpot_ms", saved["inter_token_latency"]["p99"]),
        ("median_itl_ms", saved["inter_chunk_latency"]["p50"]),
        ("completed", 100),
    ):
        assert result.number(name) == key


def test_aiperf_times_may_have_another_unit(tmp_path: Path) -> None:
    saved = data(AIPERF)
    saved["time_to_first_token"] |= {"unit": "sec", "avg": 0.5}
    saved["request_latency"] = {"unit": "fortnights", "avg": 1.0}
    path = tmp_path / "result.json"
    path.write_text(json.dumps(saved))
    assert read(path).number("mean_ttft_ms") == 500
    assert read(path).number("mean_e2el_ms") is None


def test_guidellm_tpot_and_percentiles_of_its_itl_are_left_out(tmp_path: Path) -> None:
    saved = data(GUIDELLM)
    (run,) = saved["benchmarks"]
    statistics = {"mean": 25.0, "percentiles": {"p99": 30.0}}
    run["metrics"]["time_per_output_token_ms"] = {"successful": statistics}
    path = tmp_path / "benchmarks.json"
    path.write_text(json.dumps(saved))
    result = read(path)
    gaps = run["metrics"]["inter_token_latency_ms"]["successful"]
    assert result.number("mean_itl_ms") == gaps["total_sum"] / gaps["count"]
    assert [name for name in result.flat if "tpot" in name or "p99_itl" in name] == []
    assert result.number("p99_ttft_ms") == pytest.approx(51.568985)
    assert "neither is compared" in result.about


def test_guidellm_rates_and_counts_are_read(tmp_path: Path) -> None:
    saved = data(GUIDELLM)
    metrics = saved["benchmarks"][0]["metrics"]
    metrics["request_totals"] = {"successful": 97, "errored": 3, "total": 100}
    metrics["requests_per_second"] = {"successful": {"mean": 9.5}}
    metrics["request_latency"] = {"successful": {"mean": 1.5, "median": 1.25, "percentiles": {}}}
    saved["benchmarks"] *= 2
    path = tmp_path / "benchmarks.json"
    path.write_text(json.dumps(saved))
    first, second = tool_files.read(str(path))
    assert (first.where, second.where) == (f"{path}: run 1", f"{path}: run 2")
    names = ("completed", "failed", "request_throughput", "mean_e2el_ms", "median_e2el_ms")
    assert [first.number(name) for name in names] == [97, 3, 9.5, 1500, 1250]


def test_inference_perf_seconds_become_ms() -> None:
    result = read(INFERENCE_PERF)
    assert result.number("p99_ttft_ms") == pytest.approx(28.388)
    assert result.number("median_tpot_ms") == pytest.approx(20.009)
    assert result.number("request_rate") == 50


def record(index: int, ttft_ms: float, gaps_ms: list[float], error: Any = None) -> str:
    end_ms = ttft_ms + sum(gaps_ms)
    metrics = {
        "time_to_first_token": {"value": ttft_ms, "unit": "ms"},
        "inter_chunk_latency": {"value": gaps_ms, "unit": "ms"},
        "request_latency": {"value": end_ms, "unit": "ms"},
        "input_sequence_length": {"value": 8, "unit": "tokens"},
        "output_sequence_length": {"value": 1 + len(gaps_ms), "unit": "tokens"},
    }
    metadata = {"session_num": index, "request_start_ns": 10**18 + index * 10**9}
    return json.dumps({"metadata": metadata, "metrics": {} if error else metrics, "error": error})


def test_aiperf_records_beside_the_result_give_its_requests(tmp_path: Path) -> None:
    path = tmp_path / AIPERF.name
    path.write_text(AIPERF.read_text())
    assert read(path).requests is None
    warm = json.loads(record(9, 1, [1]))
    warm["metadata"]["benchmark_phase"] = "warmup"
    lines = [record(0, 20, [5, 7]), record(1, 30, [9]), record(2, 0, [], {"message": "x"})]
    (tmp_path / AIPERF_RECORDS).write_text("\n".join([*lines, json.dumps(warm)]) + "\n")
    requests = read(path).requests
    assert requests is not None
    assert requests.ok.tolist() == [True, True, False]
    assert np.concatenate(requests.values("ttft")).tolist() == [20, 30]
    assert np.concatenate(requests.values("icl")) == pytest.approx([5, 7, 9])
    assert np.concatenate(requests.values("tpot")) == pytest.approx([6, 9])


@pytest.mark.parametrize("baseline", [AIPERF, GUIDELLM])
def test_comparison_says_what_is_not_compared(
    baseline: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dispatch(["compare", str(baseline), str(INFERENCE_PERF), "--anyway"]) in (0, 5)
    text = " ".join(capsys.readouterr().out.split())
    assert read(baseline).incomparable
    assert read(baseline).about in text
    assert "TTFT p50" in text
    assert "normalized time per output token has no counterpart" in text


def test_report_prints_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["report", str(GUIDELLM)]) == 0
    out = capsys.readouterr().out
    assert "Mean ITL (ms):                           19.85" in out
    assert "Median ITL (ms):                         n/a" in out


def test_benchmarks_of_a_guidellm_sweep_are_not_starts_of_one_side(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sweep.json"
    (run,) = data(GUIDELLM)["benchmarks"]
    path.write_text(json.dumps({"benchmarks": [run | {"duration": s} for s in (10, 20)]}))
    assert dispatch(["compare", str(path), str(GUIDELLM)]) == 2
    told = "have different workloads: benchmark 1 of 2 and 2 of 2; name runs of one workload"
    assert told in capsys.readouterr().err
    assert dispatch(["report", str(path)]) == 0


def test_inference_perf_stages_of_other_concurrency_are_other_workloads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stage = data(INFERENCE_PERF)
    for number, cap in enumerate((4, 16)):
        stage["benchmark_time_seconds"] = cap
        stage["load_summary"] |= {"requested_rate": None, "concurrency": cap}
        (tmp_path / f"stage_{number}.json").write_text(json.dumps(stage))
    sides = [str(tmp_path / f"stage_{number}.json") for number in (0, 1)]
    assert dispatch(["compare", *sides]) == 2
    assert "different workloads: --max-concurrency 4 and 16" in capsys.readouterr().err


def test_a_cancelled_run_of_aiperf_is_partial(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cancelled.json"
    cut = {"was_cancelled": True, "request_count": {"unit": "requests", "avg": 60.0}}
    path.write_text(json.dumps(data(AIPERF) | cut))
    assert dispatch(["compare", str(path), str(AIPERF)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert '"A" no verdict and partial' in told
    assert f"{path}: PARTIAL: cancelled" in told
    assert dispatch(["report", str(path)]) == 0
    assert "AIPerf 0.13.0, PARTIAL (cancelled)" in " ".join(capsys.readouterr().out.split())
