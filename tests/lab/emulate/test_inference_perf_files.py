"""The report files of inference-perf are made of the records of a run."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from loadgen.cli.main import dispatch
from loadgen.lab.tools import tool_files
from tests.helpers.counted_run import COUNT, FAILED, GAP_MS, UNSENT, counted_run
from tests.helpers.source import ROOT

RECORDED = ROOT / "tests" / "qa" / "peers" / "recorded" / "inference-perf"
STAGE, SUMMARY = "stage_0_lifecycle_metrics.json", "summary_lifecycle_metrics.json"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    records = counted_run(tmp_path / "run.jsonl")
    target = tmp_path / "reports"
    flags = ("--as", "inference-perf", "--to", str(target))
    assert dispatch(["report", str(records), *flags]) == 0
    return target


def contents(path: Path) -> dict[str, Any]:
    whole: dict[str, Any] = json.loads(path.read_text())
    return whole


def ok_lines(folder: Path) -> list[dict[str, Any]]:
    lines = map(orjson.loads, (folder.parent / "run.jsonl").read_bytes().splitlines()[1:-1])
    return [line for line in lines if line["outcome"] == "ok"]


def test_latencies_are_those_of_the_records_in_seconds(folder: Path) -> None:
    lines = ok_lines(folder)
    latency = contents(folder / SUMMARY)["successes"]["latency"]
    values = {
        "request_latency": [line["closed"] - line["sent"] for line in lines],
        "time_to_first_token": [line["first_token"] - line["sent"] for line in lines],
        "time_per_output_token": [GAP_MS * 1_000_000] * COUNT,
        "inter_token_latency": [
            later - earlier for line in lines for earlier, later in pairwise(line["token_times"])
        ],
    }
    for name, ns in values.items():
        seconds = np.array(ns) / 1e9
        assert latency[name]["mean"] == pytest.approx(seconds.mean())
        assert latency[name]["median"] == pytest.approx(np.median(seconds))
        assert latency[name]["p99.9"] == pytest.approx(np.percentile(seconds, 99.9))


def test_counts_and_tokens_add_up(folder: Path) -> None:
    summary, lines = contents(folder / SUMMARY), ok_lines(folder)
    successes, failures = summary["successes"], summary["failures"]
    assert (successes["count"], failures["count"]) == (COUNT, FAILED + UNSENT)
    assert summary["load_summary"]["count"] == COUNT + FAILED + UNSENT
    tokens = sum(line["completion_tokens"] for line in lines)
    assert successes["output_tokens"]["total"] == tokens
    assert successes["output_tokens"]["mean"] == pytest.approx(tokens / COUNT)
    span_s = summary["benchmark_time_seconds"]
    assert successes["throughput"]["output_tokens_per_sec"] == pytest.approx(tokens / span_s)
    assert successes["client_fallback_requests"] == {"prompt": 0, "output": 0}
    assert failures["by_label"] == {
        "status": {"count": FAILED, "messages": [{"message": "busy"}]},
        "dns_error": {"count": UNSENT, "messages": [{"message": "why"}]},
    }


def test_load_is_of_requests_that_were_sent(folder: Path) -> None:
    lines = map(orjson.loads, (folder.parent / "run.jsonl").read_bytes().splitlines()[1:-1])
    sent_s = [(line["due"] + line["sent"]) / 1e9 for line in lines if line["sent"] is not None]
    load = contents(folder / SUMMARY)["load_summary"]
    assert load["send_duration"] == pytest.approx(max(sent_s) - min(sent_s))
    assert load["achieved_rate"] == pytest.approx((COUNT + FAILED) / load["send_duration"])


def test_keys_and_statistics_are_those_of_a_recorded_file(folder: Path) -> None:
    whole, stage = contents(RECORDED / STAGE), contents(folder / STAGE)
    assert whole["load_summary"].keys() <= stage["load_summary"].keys()
    assert stage["load_summary"]["requested_rate"] == 10
    for name, statistics in whole["successes"]["latency"].items():
        assert stage["successes"]["latency"][name].keys() == statistics.keys()


def test_files_are_a_baseline_that_loadgen_reads_again(folder: Path) -> None:
    (result,) = tool_files.read(str(folder / STAGE))
    summary = contents(folder / SUMMARY)
    assert result.tool == "inference-perf"
    assert result.number("duration") == summary["benchmark_time_seconds"]
    assert result.number("failed") == FAILED + UNSENT
    assert result.number("mean_tpot_ms") == pytest.approx(GAP_MS)


def test_a_table_of_it_is_not_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = counted_run(tmp_path / "run.jsonl")
    assert dispatch(["report", str(records), "--as", "inference-perf"]) == 2
    told = "--as: of inference-perf only the files are written; add --to FOLDER"
    assert told in capsys.readouterr().err
