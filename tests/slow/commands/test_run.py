"""`loadgen run` and `loadgen report`, from the command to the exit code."""

import json
import subprocess
import sys
from operator import itemgetter
from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

from tests.helpers.command_line import (
    SHORT,
    TOKENIZER,
    ended,
    environment,
    hear,
    loadgen,
    served,
    start,
)
from tests.helpers.console_lines import report_of

VLLM_KEYS = [
    "date",
    "backend",
    "model_id",
    "tokenizer_id",
    "num_prompts",
    "request_rate",
    "burstiness",
    "max_concurrency",
    "duration",
    "completed",
    "failed",
    "total_input_tokens",
    "total_output_tokens",
    "request_throughput",
    "request_goodput",
    "output_throughput",
    "total_token_throughput",
    "max_output_tokens_per_s",
    "max_concurrent_requests",
    "mean_ttft_ms",
    "median_ttft_ms",
    "std_ttft_ms",
    "p99_ttft_ms",
    "mean_tpot_ms",
    "median_tpot_ms",
    "std_tpot_ms",
    "p99_tpot_ms",
    "mean_itl_ms",
    "median_itl_ms",
    "std_itl_ms",
    "p99_itl_ms",
    "mean_e2el_ms",
    "median_e2el_ms",
    "std_e2el_ms",
    "p99_e2el_ms",
]


def test_the_embedded_simulator_is_measured_when_no_server_is_named() -> None:
    done = loadgen(
        "run", "--engine", "sim", "--rate", "200", "--num-prompts", "200", "--json", *SHORT
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert not [key for key in VLLM_KEYS if key not in result]
    own = result["loadgen"]
    assert own["simulated"]
    assert own["verdict"] in ("VALID", "SUSPECT")
    assert own["outcomes"] == {"ok": 200}
    assert (result["completed"], result["total_input_tokens"], result["total_output_tokens"]) == (
        200,
        3200,
        800,
    )
    assert own["tokens"]["output_counted_by"] == "usage"
    assert own["tokens"]["input_as_planned"] == 200
    assert "Serving Benchmark Result" in done.stderr
    assert done.stderr.splitlines()[-1].endswith(" | SIMULATED, not a real server")


def test_saved_result_is_rendered_identically(tmp_path: Path) -> None:
    flags = [
        "--save-result",
        "--save-detailed",
        "--result-filename",
        "r.json",
        "--records",
        "r.jsonl",
        "--hlog",
        "r.hlog",
    ]
    done = loadgen(
        "run",
        "--engine",
        "sim",
        "--rate",
        "100",
        "--num-prompts",
        "50",
        *flags,
        *SHORT,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    again = loadgen("report", "r.json", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert report_of(done.stdout) == again.stdout
    result = json.loads((tmp_path / "r.json").read_text())
    for column in (
        "input_lens",
        "output_lens",
        "ttfts",
        "itls",
        "start_times",
        "generated_texts",
        "errors",
    ):
        assert len(result[column]) == 50, column
    assert all(result["generated_texts"])
    _, *records, end = [
        json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()
    ]
    assert [record["answer"] for record in sorted(records, key=itemgetter("index"))] == result[
        "generated_texts"
    ]
    assert end["end"]["scheduled"] == 50
    assert sorted(record["index"] for record in records) == list(range(50))
    assert all(len(record["token_times"]) == 4 for record in records)
    assert {record["outcome"] for record in records} == {"ok"}
    assert len({record["source"] for record in records}) == 50
    reader = HistogramLogReader(str(tmp_path / "r.hlog"), HdrHistogram(1, 86_400_000_000_000, 3))
    with reader.input_file:
        found = {}
        while histogram := reader.get_next_interval_histogram():
            found[histogram.get_tag()] = histogram.get_total_count()
    assert found["ttft_due"] == 50
    assert found["icl"] == 150


def test_results_are_appended_one_a_line(tmp_path: Path) -> None:
    for _ in range(2):
        flags = [
            "--append-result",
            "--result-filename",
            "all.json",
            "--quiet",
            "--metadata",
            "arm=a",
        ]
        done = loadgen(
            "run",
            "--engine",
            "sim",
            "--num-prompts",
            "5",
            "--max-concurrency",
            "2",
            *flags,
            *SHORT,
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
    lines = (tmp_path / "all.json").read_text().splitlines()
    assert [json.loads(line)["arm"] for line in lines] == ["a", "a"]
    assert loadgen("report", "all.json", cwd=tmp_path).stdout.count("Serving Benchmark Result") == 2


def test_a_cap_closes_the_loop_and_says_so() -> None:
    done = loadgen(
        "run",
        "--engine",
        "sim",
        "--max-concurrency",
        "4",
        "--num-prompts",
        "40",
        "--json",
        "--full",
        *SHORT,
    )
    result = json.loads(done.stdout)
    assert result["max_concurrent_requests"] == 4
    assert result["loadgen"]["closed_loop"]
    assert "Closed loop" in done.stderr


def test_a_duration_bounds_a_closed_loop() -> None:
    done = loadgen(
        "run", "--engine", "sim", "--max-concurrency", "2", "--duration", "1", "--json", *SHORT
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert 1 < result["completed"] == result["num_prompts"]
    assert result["loadgen"]["partial"] is None


def test_the_same_seed_asks_the_same_at_the_same_times() -> None:
    def origin(*flags: str) -> tuple[str, str]:
        done = loadgen(
            "run",
            "--engine",
            "sim",
            "--rate",
            "500",
            "--num-prompts",
            "20",
            "--json",
            *SHORT,
            *flags,
        )
        found = json.loads(done.stdout)["loadgen"]["provenance"]
        return found["schedule"]["sha256"], found["prompts"]["sha256"]

    base = origin("--seed", "7")
    assert origin("--seed", "7") == base
    schedule, prompts = origin("--seed", "7", "--seed-arrivals", "8")
    assert schedule != base[0]
    assert prompts == base[1]
    schedule, prompts = origin("--seed", "7", "--seed-prompts", "8")
    assert schedule == base[0]
    assert prompts != base[1]


def test_dataset_and_run_have_the_same_prompt_hash() -> None:
    flags = ["--tokenizer", TOKENIZER, "--num-prompts", "20", "--json", *SHORT]
    shown = json.loads(loadgen("dataset", *flags).stdout)["hashes"]["prompts"]
    done = loadgen("run", "--engine", "sim", "--rate", "500", *flags)
    assert json.loads(done.stdout)["loadgen"]["provenance"]["prompts"]["sha256"] == shown


def test_settings_come_from_a_file_and_flags_win(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(
        "rate: 300\nnum-prompts: 30\nrandom_input_len: 8\nrandom_output_len: 2\n"
    )
    done = loadgen(
        "run",
        "--engine",
        "sim",
        "--config",
        "c.yaml",
        "--num-prompts",
        "10",
        "--json",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["request_rate"], result["num_prompts"]) == (300, 10)
    assert (result["total_input_tokens"], result["total_output_tokens"]) == (80, 20)


def test_a_server_that_runs_already_is_measured_with_either_api() -> None:
    with served("--served-model-name", "m") as (url, _):
        for backend in ("openai", "openai-chat"):
            flags = [
                "--base-url",
                url,
                "--backend",
                backend,
                "--tokenizer",
                TOKENIZER,
                "--num-prompts",
                "20",
                "--rate",
                "200",
            ]
            done = loadgen(
                "run",
                *flags,
                "--ready-check-timeout-sec",
                "5",
                "--num-warmups",
                "3",
                "--json",
                *SHORT,
            )
            assert done.returncode == 0, done.stderr
            result = json.loads(done.stdout)
            assert (result["backend"], result["model_id"], result["completed"]) == (
                backend,
                "m",
                20,
            )
            assert result["total_output_tokens"] == 80
            assert result["loadgen"]["simulated"]  # as the server itself says


def test_slo_and_goodput_are_judged() -> None:
    flags = ["--rate", "100", "--num-prompts", "20", "--json", *SHORT]
    done = loadgen(
        "run",
        "--engine",
        "sim",
        *flags,
        "--slo",
        "ttft_p99<1us,error_rate<1%",
        "--goodput",
        "ttft:10000",
        "tpot:10000",
    )
    assert done.returncode == 6
    result = json.loads(done.stdout)
    assert [row["met"] for row in result["loadgen"]["slo"]] == [False, True]
    assert result["loadgen"]["rates"]["good_share"] == 1
    assert result["request_goodput"] == pytest.approx(result["request_throughput"])


def test_a_server_that_dies_under_load_leaves_a_report(tmp_path: Path) -> None:
    with served() as (url, process):
        flags = [
            "--base-url",
            url,
            "--tokenizer",
            TOKENIZER,
            "--rate",
            "100",
            "--duration",
            "8",
            *SHORT,
        ]
        run = start(
            "run",
            *flags,
            "--records",
            "r.jsonl",
            "--save-result",
            "--result-filename",
            "r.json",
            cwd=tmp_path,
        )
        hear(run, lambda line: ended(line) > 0)
        process.kill()
        out, err = run.communicate(timeout=30)
    assert run.returncode == 5, err
    assert "refused" in out
    result = json.loads((tmp_path / "r.json").read_text())
    assert result["completed"] > 0
    assert result["failed"] > 0
    assert sum(result["loadgen"]["outcomes"].values()) == result["num_prompts"]


def test_run_without_success_exits_5() -> None:
    with served("--step-base-ms", "60000") as (url, _):
        flags = [
            "--base-url",
            url,
            "--tokenizer",
            TOKENIZER,
            "--num-prompts",
            "3",
            "--timeout",
            "0.001",
        ]
        done = loadgen("run", *flags, "--json", *SHORT)
    assert done.returncode == 5, done.stderr
    result = json.loads(done.stdout)
    assert result["completed"] == 0
    assert result["mean_ttft_ms"] is None
    assert (
        "FAILED: 3 of 3 requests failed (timeout: 3) | SIMULATED, not a real server\n"
        in done.stderr
    )
    assert "\nnext: raise --timeout, or lower the load\n" in done.stderr


def test_modules_in_the_current_folder_are_not_imported(tmp_path: Path) -> None:
    (tmp_path / "orjson.py").write_text("raise RuntimeError('imported from the current folder')\n")
    (tmp_path / "loadgen").mkdir()
    (tmp_path / "loadgen" / "__init__.py").write_text(
        "raise RuntimeError('imported from the current folder')\n"
    )
    installed = Path(sys.executable).with_name("loadgen")
    done = subprocess.run(
        [installed, "run", "--engine", "sim", "--num-prompts", "3", *SHORT],
        cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_more_requests_than_open_files_are_refused() -> None:
    command = f"ulimit -n 100; exec {sys.executable} -m loadgen run --engine sim --num-prompts 500"
    done = subprocess.run(
        ["bash", "-c", command],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "500 requests at once" in done.stderr
    assert "ulimit -n" in done.stderr


def test_without_a_tokenizer_and_the_hub_that_of_the_server_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with served("--served-model-name", "nobody/has-this-model") as (url, _):
        done = loadgen(
            "run", "--base-url", url, "--num-prompts", "5", *SHORT, "--json", cwd=tmp_path
        )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["completed"] == 5
    assert Path(result["tokenizer_id"]).samefile(Path(TOKENIZER).parent)
