"""`loadgen run` beside a server with metrics: the simulator."""

import json
from pathlib import Path

import pytest

from tests.helpers.command_line import SHORT, TOKENIZER, loadgen, served
from tests.helpers.console_lines import report_of

RUN = [
    "run",
    "--tokenizer",
    TOKENIZER,
    "--backend",
    "openai-chat",
    "--rate",
    "50",
    "--duration",
    "4.5",
    *SHORT,
]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 4.5 s against a simulator that had served others before, with its result and
    records.
    """
    folder = tmp_path_factory.mktemp("saved")
    files = ["--save-result", "--result-filename", "r.json", "--records", "r.jsonl"]
    with served() as (url, _):
        before = loadgen(
            "run", "--base-url", url, "--tokenizer", TOKENIZER, "--num-prompts", "7", *SHORT
        )
        assert before.returncode == 0, before.stderr
        files += ["--num-warmups", "3", "--full"]
        done = loadgen(*RUN, "--base-url", url, *files, cwd=folder)
    assert done.returncode == 0, done.stderr
    (folder / "out.txt").write_text(done.stdout)
    return folder


def test_simulator_counts_equal_measured_values(saved: Path) -> None:
    result = json.loads((saved / "r.json").read_text())
    own = result["loadgen"]
    said = own["server"]
    assert said["covers_run"]
    assert said["counts"]["requests"] == result["completed"]
    assert said["counts"]["generation_tokens"] == result["total_output_tokens"]
    assert said["counts"]["prompt_tokens"] == result["total_input_tokens"]
    assert said["counts"]["preemptions"] == 0
    assert said["ttft_ms"]["server"]["count"] == result["completed"]
    assert said["ttft_ms"]["server"]["mean"] < said["ttft_ms"]["ours"]["mean"]
    (source,) = said["sources"]
    assert source["moments"][:3] == ["first", "tick", "tick"]
    assert source["moments"][-1] == "last"
    assert source["at_s"] == sorted(source["at_s"])
    assert (
        max(value for value in source["series"]["running"] if value is not None)
        >= said["levels"]["running"]["max"]
    )
    states = {check["name"]: check["ok"] for check in own["checks"]}
    for name in (
        "other clients",
        "token before the server's",
        "tokens differ from the server's",
        "server counters reset",
    ):
        assert states[name] is True, name
    assert states["TTFT above the server's"] is not None


def test_server_metrics_are_reprinted_from_result_and_records(saved: Path) -> None:
    printed = report_of((saved / "out.txt").read_text())
    assert printed.count("Server metrics (http://127.0.0.1:") == 1
    for file in ("r.json", "r.jsonl"):
        assert loadgen("report", "--full", str(saved / file)).stdout == printed


def test_url_without_metrics_is_refused_before_any_request() -> None:
    with served() as (url, _):
        done = loadgen(*RUN, "--base-url", url, "--server-metrics", f"{url}/nothing")
        left = loadgen(*RUN, "--base-url", url, "--server-metrics", "off", "--json")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(
        f"loadgen run: --server-metrics: {url}/nothing answers 404; "
    )
    assert json.loads(left.stdout)["loadgen"]["server"] is None
