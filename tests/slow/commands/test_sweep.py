"""`loadgen run` with several rates or concurrencies: a run for each, and one table."""

import json
import re
import signal
from pathlib import Path

import pytest

from tests.helpers.command_line import SHORT, TOKENIZER, hear, in_flight, loadgen, served, start
from tests.helpers.console_lines import report_of

FEW = ["--num-prompts", "20", "--tokenizer", TOKENIZER, *SHORT]


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "loadgen"


@pytest.mark.parametrize(
    ("flags", "field"),
    [
        (["--request-rate", "1,x"], "--request-rate: "),
        (["--request-rate", "1,"], "--request-rate: "),
        (["--rate", "1,-2"], "--request-rate: "),
        (["--max-concurrency", "1,2.5"], "--max-concurrency: "),
        (["--rate", "1,2", "--max-concurrency", "2,3"], "--max-concurrency: "),
        (["--rate", "1,2", "--plot", "x"], "--plot: "),
        (["--rate", "1", "--plot", "x.svg"], "--plot: "),
    ],
)
def test_settings_that_cannot_be_swept_are_refused(flags: list[str], field: str) -> None:
    done = loadgen("run", "--engine", "sim", *flags)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"loadgen run: {field}")
    assert done.stderr.count("\n") == 1


def test_each_run_is_reported_in_a_line_and_all_of_them_in_a_table(tmp_path: Path) -> None:
    flags = [
        "--request-rate",
        "50,100,200",
        "--save-result",
        "--result-filename",
        "r.json",
        "--plot",
        "r.svg",
        *FEW,
    ]
    with served() as (url, _):
        done = loadgen("run", "--base-url", url, *flags, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines, _, table = done.stdout.partition("Sweep over the request rate: ")
    for level, line in zip((50, 100, 200), lines.splitlines(), strict=True):
        assert re.match(rf"{level} req/s: [A-Z ]+.* \| 20/20 ok \| ", line)
    assert "\nSaved: r.json\nSaved: r.svg\n" in table
    assert "\nSaved: r-01.json, r-02.json and 1 more: the files of 3 runs\n" in table
    rows = [
        line.split()
        for line in table.splitlines()
        if line.strip().startswith(("50 ", "100 ", "200 "))
    ]
    kept = json.loads((tmp_path / "r.json").read_text())
    assert [row[0] for row in rows] == ["50", "100", "200"]
    for number, (row, point) in enumerate(zip(rows, kept["points"], strict=True), 1):
        own = json.loads((tmp_path / f"r-{number:02}.json").read_text())
        assert own["request_rate"] == point["level"] == float(row[0])
        assert f"{own['loadgen']['rates']['answers_per_s']:.1f}" in row
        assert point["saved"] == [f"r-{number:02}.json"]
        assert own["completed"] == 20
    assert kept["found"] is None
    assert kept["knee"] in (50, 100, None)
    assert (tmp_path / "r.svg").read_text().startswith("<svg xmlns=")
    again = loadgen("report", "r.json", cwd=tmp_path).stdout
    assert again == report_of(f"Sweep over the request rate: {table}")


def test_concurrencies_are_swept_into_one_json_object(tmp_path: Path) -> None:
    with served() as (url, _):
        done = loadgen(
            "run",
            "--base-url",
            url,
            "--max-concurrency",
            "1,2",
            "--json",
            "--quiet",
            *FEW,
            cwd=tmp_path,
        )
    kept = json.loads(done.stdout)
    assert (kept["kind"], kept["over"], [point["level"] for point in kept["points"]]) == (
        "sweep",
        "concurrency",
        [1, 2],
    )
    assert [point["result"]["max_concurrent_requests"] for point in kept["points"]] == [1, 2]
    assert done.stderr.startswith("Sweep over the concurrency: ")
    assert not list(tmp_path.glob("*.json"))


def test_first_run_equals_a_single_run_and_no_prompt_repeats(tmp_path: Path) -> None:
    saved = ["--save-result", "--result-filename"]
    with served() as (url, _):
        loadgen("run", "--base-url", url, "--rate", "200", *saved, "alone.json", *FEW, cwd=tmp_path)
        loadgen("run", "--base-url", url, "--rate", "200,200", *saved, "r.json", *FEW, cwd=tmp_path)
    alone, first, second = (
        json.loads((tmp_path / name).read_text())["loadgen"]["provenance"]
        for name in ("alone.json", "r-01.json", "r-02.json")
    )
    assert (first["prompts"], first["schedule"]) == (alone["prompts"], alone["schedule"])
    assert second["prompts"]["sha256"] != first["prompts"]["sha256"]
    assert second["seeds"] == {"arrivals": 1, "prompts": 1, "order": 1}


def test_prompts_that_come_again_are_told(tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text(
        "".join(f'{{"prompt": "Say {n}.", "output_tokens": 2}}\n' for n in range(20))
    )
    flags = [
        "--dataset-name",
        "jsonl",
        "--dataset-path",
        "p.jsonl",
        "--tokenizer",
        TOKENIZER,
        "--num-prompts",
        "20",
    ]
    with served() as (url, _):
        done = loadgen("run", "--base-url", url, "--rate", "200,300", *flags, cwd=tmp_path)
    assert "Note: several runs had the same prompts, since the data set has no" in done.stdout


def test_every_run_has_files_of_its_own_and_a_line_of_one_that_is_added_to(tmp_path: Path) -> None:
    files = [
        "--records",
        "r.jsonl",
        "--hlog",
        "r.hlog",
        "--append-result",
        "--result-filename",
        "all.jsonl",
    ]
    with served() as (url, _):
        loadgen("run", "--base-url", url, "--rate", "200,300", *files, *FEW, cwd=tmp_path)
    names = {path.name for path in tmp_path.iterdir() if path.is_file()}
    assert {"r-01.jsonl", "r-02.jsonl", "r-01.hlog", "r-02.hlog", "all.jsonl"} < names
    rates = [
        json.loads(line)["request_rate"]
        for line in (tmp_path / "all.jsonl").read_text().splitlines()
    ]
    assert rates == [200, 300]


def test_a_missed_slo_of_any_run_is_the_exit_code_and_stands_in_the_table(tmp_path: Path) -> None:
    with served() as (url, _):
        done = loadgen(
            "run",
            "--base-url",
            url,
            "--rate",
            "100,200",
            "--slo",
            "ttft_p50<1us,e2el_p95<1min",
            cwd=tmp_path,
        )
        assert "--slo: unknown unit in 'e2el_p95<1min'" in done.stderr
        done = loadgen(
            "run",
            "--base-url",
            url,
            "--rate",
            "100,200",
            "--slo",
            "ttft_p50<1us,e2el_p95<60s",
            *FEW,
        )
    assert done.returncode == 6
    table = done.stdout.partition("Sweep over")[2]
    assert re.findall(r"^(\d+) +MISSED", table, re.MULTILINE) == ["100", "200"]
    assert "E2EL p95" in table
    answer = "no level met ttft_p50 < 1 us, e2el_p95 < 60 s | tried: 100, 200 req/s"
    assert f"\nSLO MISSED: {answer}" in table


def test_an_interrupt_ends_the_sweep_and_keeps_every_run(tmp_path: Path) -> None:
    flags = [
        "--rate",
        "40,41,42",
        "--num-prompts",
        "60",
        "--save-result",
        "--result-filename",
        "r.json",
    ]
    with served("--step-base-ms", "30") as (url, _):
        run = start(
            "run", "--base-url", url, "--tokenizer", TOKENIZER, *SHORT, *flags, cwd=tmp_path
        )
        try:
            hear(run, lambda line: "run 2 of 3" in line)
            hear(run, in_flight)
            run.send_signal(signal.SIGINT)
            out, err = run.communicate(timeout=60)
        finally:
            run.kill()
            run.communicate()
    assert run.returncode == 130, err
    assert " | ended early: interrupted" in out.partition("Sweep over")[2]
    kept = json.loads((tmp_path / "r.json").read_text())
    assert [(point["level"], point["why"]) for point in kept["points"]] == [
        (40, None),
        (41, "interrupted"),
    ]
