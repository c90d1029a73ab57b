"""`--html` of runs and `loadgen report --html` give the same page; invalid uses are refused
first.
"""

import json
import re
from pathlib import Path

import pytest

from tests.helpers.command_line import SHORT, TOKENIZER, interrupt, loadgen, served, start

FEW = ["--num-prompts", "20", "--tokenizer", TOKENIZER, *SHORT]
SAVED = ["--save-result", "--result-filename", "r.json"]


@pytest.mark.parametrize(
    ("flags", "field"),
    [
        (["run", "--engine", "sim", "--html", "page.htm"], "run: --html: "),
        (["run", "--engine", "sim", "--html", "nowhere/page.html"], "run: --html: "),
        (["run", "--engine", "sim", "--html", "r.html", "--records", "./r.html"], "run: --html: "),
        (
            [
                "run",
                "--engine",
                "sim",
                "--dataset-name",
                "jsonl",
                "--dataset-path",
                "p.jsonl",
                "--records",
                "p.jsonl",
            ],
            "run: --records: ",
        ),
        (["search", "--engine", "sim", "--slo", "ttft_p90<1s", "--html", "x"], "search: --html: "),
        (["report", "r.json", "--html", "r.json"], "report: --html: "),
        (
            ["report", "none.json", "--html", "r.html"],
            "report: none.json: No such file or directory",
        ),
        (["report", "r.jsonl", "--html", "r.html", "--as", "vllm-0.11"], "report: --html: "),
    ],
)
def test_invalid_html_output_is_refused_in_one_line(
    flags: list[str], field: str, tmp_path: Path
) -> None:
    done = loadgen(*flags, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"loadgen {field}")
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_run_writes_the_page_that_its_result_makes_again(tmp_path: Path) -> None:
    with served() as (url, _):
        done = loadgen(
            "run",
            "--base-url",
            url,
            "--rate",
            "100",
            "--html",
            "page.html",
            *SAVED,
            *FEW,
            cwd=tmp_path,
        )
    assert done.returncode == 0, done.stderr
    assert "\nSaved: r.json\nSaved: page.html\n" in done.stdout
    page = (tmp_path / "page.html").read_text()
    again = loadgen("report", "r.json", "--html", "again.html", cwd=tmp_path)
    assert (again.returncode, again.stdout, again.stderr) == (0, "Saved: again.html\n", "")
    assert (tmp_path / "again.html").read_text() == page
    verdict = json.loads((tmp_path / "r.json").read_text())["loadgen"]["verdict"]
    assert f"<strong>{'OK' if verdict == 'VALID' else verdict}" in page
    assert "timing error of loadgen at most " in page


def test_the_page_comes_beside_json_too(tmp_path: Path) -> None:
    with served() as (url, _):
        loadgen("run", "--base-url", url, "--rate", "100", *SAVED, *FEW, cwd=tmp_path)
    done = loadgen("report", "r.json", "--html", "page.html", "--json", cwd=tmp_path)
    assert json.loads(done.stdout) == json.loads((tmp_path / "r.json").read_text())
    assert done.stderr == "Saved: page.html\n"


def test_a_page_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "page.html").mkdir()
    with served() as (url, _):
        loadgen("run", "--base-url", url, "--rate", "100", *SAVED, *FEW, cwd=tmp_path)
    done = loadgen("report", "r.json", "--html", "nowhere/page.html", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        "loadgen report: --html: nowhere/page.html cannot be written (No such file or directory)"
    )
    (tmp_path / "half.json").write_text(
        (tmp_path / "r.json").read_text().replace('"latency_ms"', '"latency"')
    )
    done = loadgen("report", "half.json", "--html", "new.html", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("loadgen report: half.json ")
    assert "`latency_ms`" in done.stderr
    assert not (tmp_path / "new.html").exists()


def test_a_run_that_was_interrupted_has_its_page(tmp_path: Path) -> None:
    flags = ["--rate", "20", "--num-prompts", "2000", "--tokenizer", TOKENIZER, *SHORT]
    with served("--step-base-ms", "30") as (url, _):
        run = start("run", "--base-url", url, "--html", "page.html", *flags, cwd=tmp_path)
        try:
            interrupt(run, 1)
        finally:
            run.kill()
            run.communicate()
    assert run.returncode == 130
    assert "PARTIAL: interrupted" in (tmp_path / "page.html").read_text()


def test_records_make_a_page_too(tmp_path: Path) -> None:
    with served() as (url, _):
        loadgen(
            "run", "--base-url", url, "--rate", "100", "--records", "r.jsonl", *FEW, cwd=tmp_path
        )
    assert (
        loadgen("report", "r.jsonl", "--html", "page.html", cwd=tmp_path).stdout
        == "Saved: page.html\n"
    )
    assert "Serving Benchmark Result" in (tmp_path / "page.html").read_text()


def test_each_run_of_a_sweep_has_a_page_to_which_that_of_all_leads(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    flags = ["--rate", "100,200", "--html", "pages/sweep.html", "--plot", "sweep.svg", *SAVED, *FEW]
    with served() as (url, _):
        done = loadgen("run", "--base-url", url, *flags, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "\nSaved: r.json\nSaved: sweep.svg\nSaved: pages/sweep.html\n" in done.stdout
    page = (tmp_path / "pages" / "sweep.html").read_text()
    links = re.findall(r'href="([^#"]+\.html)"', page)
    assert links == ["sweep-01.html", "sweep-02.html"]
    assert all((tmp_path / "pages" / link).is_file() for link in links)
    loadgen("report", "r.json", "--html", "again.html", cwd=tmp_path)
    assert (tmp_path / "again.html").read_text() == page
    assert (tmp_path / "sweep.svg").read_text().startswith("<svg xmlns=")
