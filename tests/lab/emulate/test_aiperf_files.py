"""The files of AIPerf are made of the records of a run: what its own readers take, with the numbers
that `--as aiperf` prints.
"""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from loadgen.cli.main import dispatch
from loadgen.config.settings import RunSettings
from loadgen.core.outcome import Outcome
from loadgen.lab.tools import tool_files
from loadgen.lab.tools.emulate import aiperf_files, compare, write_files
from tests.helpers.compared_runs import kept
from tests.helpers.counted_run import COUNT, FAILED, counted_run
from tests.helpers.run_facts import due_at, failed, steady
from tests.helpers.source import ROOT

RECORDED = ROOT / "tests" / "qa" / "peers" / "recorded" / "aiperf" / "profile_export_aiperf.json"
# What AIPerf 0.13 requires of a request's metadata.
REQUIRED = {
    *("session_num", "request_start_ns", "request_end_ns", "worker_id"),
    *("record_processor_id", "benchmark_phase"),
}


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, dict[str, Any], list[dict[str, Any]]]:
    """The records of a run, the summary, and the lines of requests."""
    records = counted_run(tmp_path / "run.jsonl")
    folder = tmp_path / "new" / "artifacts"
    assert dispatch(["report", str(records), "--as", "aiperf", "--to", str(folder)]) == 0
    lines = (folder / "profile_export.jsonl").read_text().splitlines()
    summary = json.loads((folder / "profile_export_aiperf.json").read_text())
    return records, summary, list(map(json.loads, lines))


def test_summary_has_the_numbers_that_the_emulation_prints(files: Any) -> None:
    records, summary, _ = files
    rows = {row.row.label: row.row.value for row in compare(records, "aiperf").rows}
    for title, name in (
        ("Time to First Token (ms)", "time_to_first_token"),
        ("Request Latency (ms)", "request_latency"),
        ("Inter Token Latency (ms)", "inter_token_latency"),
        ("Output Sequence Length (tokens)", "output_sequence_length"),
        ("Output Token Throughput Per User (tokens/sec/user)", "output_token_throughput_per_user"),
    ):
        for statistic in ("avg", "p50", "p99"):
            assert summary[name][statistic] == pytest.approx(rows[f"{title} {statistic}"])
    for title, name in (
        ("Request Throughput (requests/sec)", "request_throughput"),
        ("Output Token Throughput (tokens/sec)", "output_token_throughput"),
        ("Request Count (requests)", "request_count"),
    ):
        assert summary[name]["avg"] == pytest.approx(rows[title])


def test_metrics_have_the_keys_and_units_of_a_recorded_file(files: Any) -> None:
    _, summary, _ = files
    whole = json.loads(RECORDED.read_text())
    for name, metric in whole.items():
        if name in summary and isinstance(metric, dict):
            assert summary[name]["unit"] == metric["unit"]
            assert metric.keys() <= summary[name].keys()
    assert summary["aiperf_version"] == whole["aiperf_version"]
    assert summary["loadgen"]["verdict"] in ("VALID", "SUSPECT", "INVALID")


def test_lines_have_the_times_of_the_records_since_1970(files: Any) -> None:
    path, summary, lines = files
    first, *rest = map(orjson.loads, path.read_bytes().splitlines())
    records = [line for line in rest if "end" not in line and line["sent"] is not None]
    assert len(lines) == len(records)
    for line, record in zip(lines, records, strict=True):
        metadata = line["metadata"]
        assert metadata.keys() >= REQUIRED
        sent_ns = first["start_unix_ns"] + record["due"] + record["sent"] - record["connect"]
        assert metadata["request_start_ns"] == sent_ns
        assert metadata["session_num"] == record["index"]
        assert (line["error"] is None) == bool(line["metrics"])
    ok = [line["metrics"] for line in lines if not line["error"]]
    assert len(ok) == summary["request_count"]["avg"] == COUNT
    assert len(lines) - len(ok) == summary["error_request_count"]["avg"] == FAILED
    (error,) = summary["error_summary"]
    details = {"code": 503, "type": "status", "message": "busy"}
    assert error == {"error_details": details, "count": FAILED}
    firsts = [metrics["time_to_first_token"]["value"] for metrics in ok]
    assert np.mean(firsts) == pytest.approx(summary["time_to_first_token"]["avg"])


def test_gaps_of_a_line_are_those_between_its_tokens(files: Any) -> None:
    path, _, lines = files
    records = {
        line["index"]: line for line in map(orjson.loads, path.read_bytes().splitlines()[1:-1])
    }
    for line in lines:
        if line["metrics"]:
            times = records[line["metadata"]["session_num"]]["token_times"]
            gaps_ms = [(later - earlier) / 1e6 for earlier, later in pairwise(times)]
            assert line["metrics"]["inter_chunk_latency"]["value"] == pytest.approx(gaps_ms)


def test_files_are_a_baseline_that_loadgen_reads_again(files: Any) -> None:
    path, summary, _ = files
    folder = path.parent / "new" / "artifacts"
    (result,) = tool_files.read(str(folder / aiperf_files.SUMMARY))
    assert result.number("median_ttft_ms") == summary["time_to_first_token"]["p50"]
    requests = result.requests
    assert requests is not None
    assert requests.ok.sum() == summary["request_count"]["avg"]


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (["--to", "x"], "--to: has no effect without --as; add --as aiperf"),
        (["--as", "guidellm", "--to", "x"], "--to: the file of guidellm requires times of its own"),
        (
            ["--as", "agentx", "--to", "x"],
            "--to: a submission of AgentX requires AIPerf's own idle",
        ),
        (["--as", "sglang", "--to", "x"], "--to: the files of sglang are not written; give --as"),
    ],
)
def test_other_tools_have_no_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str], problem: str
) -> None:
    assert dispatch(["report", str(counted_run(tmp_path / "run.jsonl")), *flags]) == 2
    assert problem in capsys.readouterr().err


def test_a_request_that_the_client_ended_is_cancelled(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    records = [steady(0, n=3), failed(1, Outcome.DISCONNECTED, due=100, detail="left")]
    kept(path, records, due_at(0, 100), RunSettings(num_prompts=2).checked())
    write_files(str(path), "aiperf", str(tmp_path))
    lines = (tmp_path / aiperf_files.REQUESTS).read_text().splitlines()
    _, line = map(json.loads, lines)
    assert line["metadata"]["was_cancelled"]
    assert line["error"] == {"code": None, "type": "RequestCancellationError", "message": "left"}


@pytest.mark.parametrize(("partial", "is_whole"), [("interrupted", False), (None, True)])
def test_a_run_that_was_cut_short_is_cancelled(
    tmp_path: Path, files: Any, partial: str | None, is_whole: bool
) -> None:
    path, *_ = files
    *lines, last = path.read_bytes().splitlines()
    end = orjson.loads(last)
    end["end"]["partial"] = partial
    path.write_bytes(b"\n".join((*lines, orjson.dumps(end), b"")))
    write_files(str(path), "aiperf", str(tmp_path))
    summary = json.loads((tmp_path / aiperf_files.SUMMARY).read_text())
    assert (summary["is_complete"], summary["was_cancelled"]) == (is_whole, not is_whole)
