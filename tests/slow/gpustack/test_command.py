"""A job as GPUStack starts it, from the command line to its JSON, against the simulator."""

import contextlib
import json
import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.command_line import TOKENIZER, ended, hear, loadgen, served, start
from tests.helpers.gpustack_contract import COMMAND_LINES, SCHEMA, argv, at, refusals

pytest.importorskip("faker", reason="random prompts by guidellm's rule need faker")
COMMAND = ("benchmark-runner", "benchmark", "run")


@pytest.fixture(scope="module")
def simulator() -> Iterator[str]:
    with served() as (url, _):
        yield url


@contextlib.contextmanager
def receiver() -> Iterator[tuple[str, list[tuple[str | None, float]]]]:
    """A server that takes progress; yields its URL, and the tokens and numbers that it was told."""
    told: list[tuple[str | None, float]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_PATCH(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            told.append((self.headers["Authorization"], json.loads(body)["progress"]))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v2/benchmarks/7/state", told
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def filled(
    name: str, target: str, folder: Path, progress_url: str = "http://127.0.0.1:1/state"
) -> list[str]:
    job = {"rate": 100, "input": 16, "output": 4, "requests": 12}
    places = {
        "target": target,
        "processor": TOKENIZER,
        "output_dir": folder,
        "progress_url": progress_url,
    }
    return argv(name, token="t0ken", **job, **places)


def flags(target: str, folder: Path, *more: str) -> list[str]:
    data = ("--data", "prompt_tokens=16,output_tokens=4", "--processor", TOKENIZER)
    return [*COMMAND, "--target", target, *data, "--output-path", str(folder / "7.json"), *more]


@pytest.mark.parametrize("name", [name for name in COMMAND_LINES if name != "stages"])
def test_a_job_leaves_what_gpustack_reads(name: str, simulator: str, tmp_path: Path) -> None:
    with receiver() as (url, told):
        done = loadgen(*COMMAND, *filled(name, simulator, tmp_path / "made", url))
    assert done.returncode == 0, done.stderr
    summary = json.loads((tmp_path / "made" / "7.json").read_text())
    assert refusals(summary) == []
    columns = {column: at(summary, path) for column, path in SCHEMA["extracted"].items()}
    assert (columns["request_total"], columns["request_successful"]) == (12, 12)
    assert all(
        columns[column] > 0
        for column in columns
        if column not in ("request_errored", "request_incomplete")
    )
    assert told[-1] == ("Bearer t0ken", 100.0)
    assert "Serving Benchmark Result" in done.stdout
    assert "t0ken" not in done.stdout + done.stderr


def test_sharegpt_is_sent_in_the_order_of_the_file(simulator: str, tmp_path: Path) -> None:
    asked = [
        ("gpt", "human"),
        ("human", "gpt"),
        ("user", "assistant"),
        ("human", "gpt"),
        ("human", "gpt"),
    ]
    rows = [
        {
            "id": str(i),
            "conversations": [{"from": who, "value": f"words of number {i}"} for who in pair],
        }
        for i, pair in enumerate(asked)
    ]
    file = tmp_path / "ShareGPT_V3.json"
    file.write_text(json.dumps(rows))
    given = (
        "--data",
        str(file),
        "--processor",
        TOKENIZER,
        "--output-path",
        str(tmp_path / "7.json"),
    )
    rate = ("--profile", "constant", "--rate", "1000", "--max-requests", "3")
    done = loadgen(*COMMAND, "--target", simulator, *given, *rate)
    assert done.returncode == 0, done.stderr
    sources = [
        json.loads(line).get("source")
        for line in (tmp_path / "7.records.jsonl").read_text().splitlines()
    ]
    assert sorted(filter(None, sources)) == ["sharegpt/1", "sharegpt/2", "sharegpt/3"]
    assert refusals(json.loads((tmp_path / "7.json").read_text())) == []


def test_the_numbers_are_those_of_the_report(simulator: str, tmp_path: Path) -> None:
    done = loadgen(
        *flags(
            simulator, tmp_path, "--profile", "constant", "--rate", "100", "--max-requests", "20"
        )
    )
    assert done.returncode == 0, done.stderr
    again = json.loads(loadgen("report", "--json", str(tmp_path / "7.records.jsonl")).stdout)
    metrics = json.loads((tmp_path / "7.json").read_text())["benchmarks"][0]["metrics"]
    pairs = {
        "time_to_first_token_ms": again["mean_ttft_ms"],
        "request_latency": again["mean_e2el_ms"] / 1000,
        "inter_token_latency_ms": again["mean_tpot_ms"],
        "inter_token_latency_per_chunk_ms": again["mean_itl_ms"],
        "output_tokens_per_second": again["output_throughput"],
        "tokens_per_second": again["total_token_throughput"],
        "requests_per_second": again["request_throughput"],
    }
    for name, said in pairs.items():
        # E2EL ends with the last token, guidellm's latency with the stream: a loaded machine tells
        # them apart.
        near = 0.05 if name == "request_latency" else 1e-3
        assert metrics[name]["successful"]["mean"] == pytest.approx(said, rel=near), name
    assert metrics["request_concurrency"]["successful"]["max"] == again["max_concurrent_requests"]


def test_log_says_that_the_summary_leaves_out_the_warmup(simulator: str, tmp_path: Path) -> None:
    load = ("--profile", "constant", "--rate", "100", "--max-requests", "20", "--warmup", "5")
    done = loadgen(*flags(simulator, tmp_path, *load))
    assert done.returncode == 0, done.stderr
    path = tmp_path / "7.json"
    assert (
        f"{path} counts 15 of 20 requests, without those of --warmup and --cooldown" in done.stderr
    )
    assert at(json.loads(path.read_text()), "benchmarks.0.metrics.request_totals.successful") == 15


def test_stages_leave_a_summary_each_and_one_progress(simulator: str, tmp_path: Path) -> None:
    with receiver() as (url, told):
        done = loadgen(*COMMAND, *filled("stages", simulator, tmp_path, url))
    assert done.returncode == 0, done.stderr
    for number, requests in enumerate((6, 8)):
        summary = json.loads((tmp_path / f"7__stage{number}.json").read_text())
        assert refusals(summary) == []
        assert at(summary, "benchmarks.0.metrics.request_totals.successful") == requests
    percents = [percent for _, percent in told]
    assert percents == sorted(percents)
    assert percents[-1] == 100


def test_unreachable_progress_url_does_not_fail_the_job(simulator: str, tmp_path: Path) -> None:
    done = loadgen(*COMMAND, *filled("the first, random", simulator, tmp_path))
    assert done.returncode == 0, done.stderr
    assert "progress could not be reported" in done.stderr
    assert (tmp_path / "7.json").exists()


def test_an_interrupted_job_keeps_what_was_measured(simulator: str, tmp_path: Path) -> None:
    process = start(
        *flags(
            simulator, tmp_path, "--profile", "constant", "--rate", "5", "--max-requests", "1000"
        )
    )
    hear(process, lambda line: ended(line) > 0)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    summary = json.loads((tmp_path / "7.json").read_text())
    assert refusals(summary) == []
    assert 0 < at(summary, "benchmarks.0.metrics.request_totals.successful") < 1000
    assert summary["loadgen"]["partial"] == "interrupted"


def test_errors_end_a_job_that_is_told_how_many_it_may_have(tmp_path: Path) -> None:
    with served("--fault", "unavailable") as (url, _):
        limits = ("--max-requests", "2000", "--max-errors", "5")
        done = loadgen(*flags(url, tmp_path, "--profile", "constant", "--rate", "50", *limits))
    assert done.returncode == 5, done.stderr  # no request succeeded
    summary = json.loads((tmp_path / "7.json").read_text())
    totals = at(summary, "benchmarks.0.metrics.request_totals")
    assert totals["successful"] == 0
    assert 5 <= totals["errored"] < 2000
    assert summary["benchmarks"][0]["requests_truncated"]["errored"]
    assert refusals(summary) == []


def test_a_stage_that_ends_with_another_code_than_0_is_the_last(tmp_path: Path) -> None:
    stages = '[{"rate": 50, "max_requests": 5}, {"rate": 50, "max_requests": 5}]'
    with served("--fault", "unavailable") as (url, _):
        done = loadgen(*flags(url, tmp_path, "--stages", stages))
    assert done.returncode == 5, done.stderr
    assert [path.name for path in tmp_path.glob("*.json")] == ["7__stage0.json"]


class TestRefused:
    def test_by_the_flag_as_it_is_called_here(self, simulator: str, tmp_path: Path) -> None:
        done = loadgen(
            *flags(
                simulator, tmp_path, "--profile", "constant", "--rate", "0", "--max-requests", "5"
            )
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("loadgen benchmark-runner: --rate: ")
        assert len(done.stderr.splitlines()) == 1

    def test_also_what_is_found_once_the_server_is_there(
        self, simulator: str, tmp_path: Path
    ) -> None:
        run = ("--profile", "constant", "--rate", "9", "--max-requests", "5")
        done = loadgen(*flags(simulator, tmp_path, *run, "--processor", "/nowhere/tokenizer.json"))
        assert done.returncode == 2
        assert done.stderr.splitlines()[-1].startswith("loadgen benchmark-runner: --processor: ")

    def test_another_command_of_its(self) -> None:
        done = loadgen("benchmark-runner", "config")
        assert done.returncode == 2
        assert done.stderr.startswith("loadgen benchmark-runner: config: ")
        assert done.stderr.count("\n") == 1
