"""Results of other tools, as their files have them: what they are, their requests, and their
report.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loadgen.cli.main import dispatch
from loadgen.errors import BadInput
from loadgen.lab.tools import result_reader, tool_files
from loadgen.lab.tools.tool_files import SGLANG, VLLM, VLLM_RS
from loadgen.lab.tools.tool_result import ToolResult
from tests.helpers.compared_runs import saved
from tests.helpers.source import ROOT

TOOLS = ROOT / "tests" / "data" / "tools"
RUST, SGLANG_FILE = TOOLS / "vllm-rs-result.json", TOOLS / "sglang-result.jsonl"


def data(path: Path = RUST, **changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text()) | changes
    return found


def read(path: Path) -> ToolResult:
    (found,) = tool_files.read(str(path))
    return found


def of_python(tmp_path: Path) -> Path:
    """What vLLM's client in Python would have kept of the same run."""
    only_rust = ("steady_state", "max_model_len", "input_throughput")
    path = tmp_path / "vllm.json"
    path.write_text(
        json.dumps({name: value for name, value in data().items() if name not in only_rust})
    )
    return path


def test_the_tool_is_known_by_its_keys(tmp_path: Path) -> None:
    assert [read(each).tool for each in (RUST, of_python(tmp_path), SGLANG_FILE)] == [
        VLLM_RS,
        VLLM,
        SGLANG,
    ]


@pytest.mark.parametrize("path", [RUST, SGLANG_FILE])
def test_requests_give_the_numbers_that_the_tool_printed(path: Path) -> None:
    found = read(path)
    requests = found.requests
    assert requests is not None
    assert requests.ok.sum() == found.number("completed")
    kept = ("ttft", "tpot", "e2el") if "latencies" in found.flat else ("ttft",)
    for latency, name in (*zip(kept, kept, strict=True), (requests.gap, "itl")):
        values = np.concatenate(requests.values(latency))
        assert values.mean() == pytest.approx(found.number(f"mean_{name}_ms"), rel=1e-3)
        assert np.percentile(values, 99) == pytest.approx(found.number(f"p99_{name}_ms"), rel=1e-3)


def test_gaps_are_between_events_but_those_of_generate_between_tokens() -> None:
    assert (read(RUST).gap, read(SGLANG_FILE).gap) == ("icl", "itl")


def test_several_runs_in_a_file_are_several_results(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text(SGLANG_FILE.read_text() + json.dumps(data(SGLANG_FILE, duration=2.0)) + "\n")
    assert [each.where for each in tool_files.read(str(path))] == [
        f"{path}: line 1",
        f"{path}: line 2",
    ]


def test_other_files_are_no_results_of_tools(tmp_path: Path) -> None:
    own = saved(tmp_path / "own.json")
    page, other = tmp_path / "page.md", tmp_path / "other.json"
    page.write_text("no result")
    other.write_text('{"completed": 3}')
    assert [tool_files.read(str(path)) for path in (own, page, other)] == [[], [], []]


def test_lists_that_do_not_fit_together_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "cut.json"
    path.write_text(json.dumps(data(ttfts=data()["ttfts"][:3])))
    with pytest.raises(BadInput, match="lists of requests that do not fit together"):
        _ = read(path).requests


def test_report_is_vllms_block_and_the_audit() -> None:
    block, _, below = result_reader.render(read(RUST)).partition("\n\n")
    rows = dict(line.rsplit(":", 1) for line in block.splitlines() if ":" in line)
    assert rows["Successful requests"].strip() == "240"
    assert rows["Mean E2EL (ms)"].strip() == f"{data()['mean_e2el_ms']:.2f}"
    assert "is a result of vllm-rs bench serve" in " ".join(below.split())
    assert "audit: itl-diluted" in below


def test_counts_that_sglang_does_not_keep_are_left_out() -> None:
    text = result_reader.render(read(SGLANG_FILE))
    assert "Failed requests" not in text
    assert "Request rate configured" not in text  # it was unlimited
    assert (
        f"Mean E2EL (ms):                          {data(SGLANG_FILE)['mean_e2e_latency_ms']:.2f}"
        in text
    )


def test_report_prints_it_and_makes_nothing_else_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["report", str(RUST)]) == 0
    assert "Serving Benchmark Result" in capsys.readouterr().out
    for form in (
        ["--json"],
        ["--csv", "-"],
        ["--html", "x.html"],
        ["--markdown", "-"],
        ["--junit", "-"],
    ):
        assert dispatch(["report", str(RUST), *form]) == 2
        told = capsys.readouterr().err
        assert told.startswith(
            f"loadgen report: {form[0]}: {RUST} is a result of vllm-rs bench serve"
        )
