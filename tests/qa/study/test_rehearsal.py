"""Studies of the simulator, run by the command: true conclusions and reproducible numbers."""

import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.helpers import recomputed_study
from tests.helpers.source import ROOT

LOADGEN = [sys.executable, "-m", "loadgen"]
CHAT = {
    "dataset_name": "random",
    "random_input_len": 16,
    "random_output_len": 8,
    "num_prompts": 80,
    "max_concurrency": 20,
}
SHORT: dict[str, Any] = {
    "name": "short",
    "models": {"a": "sim"},
    "hardware": {"name": "a simulator"},
    "engines": {"sim": {"raw": ["--step-base-ms 20"]}},
    "workloads": {"chat": CHAT, "more": CHAT | {"num_prompts": 40}},
    "objective": {"workload": "chat"},
    "baseline": {"engine": "sim", "model": "a"},
    "decision": {"min_effect": 0.05, "repeats": {"least": 2, "most": 4}},
    "stages": [
        {
            "name": "engine",
            "choice": {
                "fast": {"raw": ["--step-base-ms 5", "--orphan"]},
                "broken": {"raw": ["--fault oom_kv"]},
                "frail": {"raw": ["--fault killed", "--fault-after 60"]},
            },
        },
        {
            "name": "sequences",
            "choice": {"more than are ever asked": {"knobs": {"max_seqs": 2000}}},
        },
    ],
}


def tune(*words: str, cwd: Path, timeout_s: float = 400) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*LOADGEN, "tune", *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def exported(store: str, cwd: Path) -> dict[str, Any]:
    return json.loads(tune("export", store, cwd=cwd).stdout)


def verdicts(found: dict[str, Any], step: str) -> dict[str, str]:
    return {
        arm["name"]: arm["verdict"]
        for each in found["steps"]
        if each["name"] == step
        for arm in each["arms"]
    }


def told_in(chapters: list[str], step: str, arm: str) -> str:
    """The row of an arm in the table of its stage, in a report cut at its headings."""
    chapter = next((chapter for chapter in chapters if chapter.startswith(f"{step}\n")), "")
    return next((line for line in chapter.splitlines() if line.startswith(f"| `{arm}` |")), "")


def look_at_every_number(found: dict[str, Any], store: Path) -> None:
    """Compute again what follows from the records, and look whether the report says it."""
    done = tune("report", store.name, "-o", "page", cwd=store.parent)
    assert done.returncode == 0, done.stderr
    (page,) = (store.parent / "page").glob("*.md")
    chapters = re.split(r"(?m)^### (?:\d+\. )?", page.read_text())
    runs = 0
    for step in found["steps"]:
        values = {}
        for arm in step["arms"]:
            achieved = []
            for trial in arm["trials"]:
                for name, ran in trial["runs"].items():
                    again = recomputed_study.run(store / Path(ran["path"]).parent / "records.jsonl")
                    told = {key: ran["summary"][key] for key in again}
                    # Histograms' digits.
                    assert told == pytest.approx(again, rel=1e-3), (step["name"], arm["name"], name)
                    assert told["total_token_throughput"] == pytest.approx(
                        again["total_token_throughput"], rel=1e-9
                    )
                    runs += 1
                    if trial["failure"] is None and name == "chat":
                        achieved.append(again["total_token_throughput"])
            assert arm["values"] == pytest.approx(achieved, rel=1e-9), (step["name"], arm["name"])
            if achieved and step["kind"] not in ("noise", "confirmation"):
                row = told_in(chapters, step["name"], arm["name"])
                assert f"| {statistics.geometric_mean(achieved):.2f} |" in row, (
                    step["name"],
                    arm["name"],
                    row,
                )
            values[arm["name"]] = achieved
        for arm in step["arms"]:
            if arm["comparison"] is not None:
                effect = recomputed_study.effect(values[arm["name"]], values[step["reference"]])
                if step["kind"] != "confirmation":
                    row = told_in(chapters, step["name"], arm["name"])
                    assert f"{effect:+.2%}" in row, (step["name"], arm["name"], row)
                assert arm["comparison"]["effect"] == pytest.approx(effect, abs=1e-9)
                assert arm["comparison"]["low"] <= effect <= arm["comparison"]["high"]
    last = found["steps"][-1]["arms"]
    effect = recomputed_study.effect(last[1]["values"], last[0]["values"])
    cases = next(line for line in page.read_text().splitlines() if line.startswith("| **chat** |"))
    for arm in last:
        assert f"{statistics.geometric_mean(arm['values']):.2f}" in cases
    assert f"{effect:+.2%}" in cases
    assert runs > 10


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the short study was run."""
    folder = tmp_path_factory.mktemp("short")
    (folder / "study.yaml").write_text(yaml.safe_dump(SHORT))
    done = tune("run", "study.yaml", cwd=folder)
    assert done.returncode == 0, done.stderr
    (folder / "stderr").write_text(done.stderr)
    (folder / "stdout").write_text(done.stdout)
    return folder


def test_study_reaches_the_true_verdicts(short: Path) -> None:
    found = exported("short.store", short)
    assert verdicts(found, "engine") == {
        "baseline": "reference",
        "fast": "adopted",
        "broken": "failed",
        "frail": "failed",
    }
    assert verdicts(found, "sequences") == {
        "engine/fast": "reference",
        "more than are ever asked": "same as",
    }
    assert verdicts(found, "confirmation") == {"baseline": "reference", "engine/fast": "adopted"}
    why = {arm["name"]: arm["why"] for arm in found["steps"][1]["arms"]}
    assert why["broken"].startswith("oom_kv: ValueError: No available memory for the cache blocks")
    assert why["frail"].startswith("killed: ")


def test_every_number_follows_from_the_records(short: Path) -> None:
    look_at_every_number(exported("short.store", short), short / "short.store")


def test_printed_text_equals_that_of_status(short: Path) -> None:
    printed = (short / "stdout").read_text()
    assert "Winner engine/fast: +" in printed
    assert "in fresh starts of both: gain confirmed" in printed
    again = tune("status", "short.store", cwd=short).stdout
    assert again.splitlines()[:-1] == printed.splitlines()[:-1]
    assert tune("status", "study.yaml", cwd=short).stdout == again


def test_finished_study_starts_no_server(short: Path) -> None:
    before = sorted((short / "short.store" / "starts").iterdir())
    done = tune("run", "study.yaml", cwd=short)
    assert done.returncode == 0
    assert sorted((short / "short.store" / "starts").iterdir()) == before
    assert done.stdout == (short / "stdout").read_text()


def test_ctrl_c_leaves_no_engine_and_a_store_that_goes_on(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(SHORT | {"stages": SHORT["stages"][1:]}))
    command = [*LOADGEN, "tune", "run", "study.yaml"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "block 2" in line:
                break
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        assert process.wait(60) == 130
    assert "interrupted; the same command resumes from short.store" in rest
    assert "Traceback" not in rest
    starts = sorted((tmp_path / "short.store" / "starts").iterdir())
    kept = [start for start in starts if (start / "chat" / "result.json").exists()]
    done = tune("run", "study.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert all((start / "chat" / "result.json").exists() for start in kept)
    found = exported("short.store", tmp_path)
    ended = [
        trial["folder"]
        for step in found["steps"]
        for arm in step["arms"]
        for trial in arm["trials"]
    ]
    assert {str(start.relative_to(tmp_path / "short.store")) for start in kept} <= set(ended)
    assert not _tagged(tmp_path)


def test_a_second_runner_is_refused(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(SHORT))
    with subprocess.Popen(
        [*LOADGEN, "tune", "run", "study.yaml"], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        process.stderr.readline()
        second = tune("run", "study.yaml", cwd=tmp_path)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert (second.returncode, second.stdout) == (2, "")
    assert f"process {process.pid} is running this study" in second.stderr


@pytest.mark.rehearsal
@pytest.mark.timeout(600)
def test_the_rehearsal_finds_the_right_configuration_in_less_than_five_minutes(
    tmp_path: Path,
) -> None:
    began_s = time.monotonic()
    done = tune("run", str(ROOT / "examples/studies/rehearsal.yaml"), cwd=tmp_path, timeout_s=550)
    took_s = time.monotonic() - began_s
    assert done.returncode == 0, done.stderr
    found = exported("rehearsal.store", tmp_path)
    assert verdicts(found, "engine") == {
        "baseline": "reference",
        "eager": "worse",
        "batched": "adopted",
        "broken": "failed",
        "frail": "failed",
    }
    assert verdicts(found, "quantization")["fp8"] == "adopted"
    sequences = verdicts(found, "sequences")
    assert sequences.pop("quantization/fp8") == "reference"
    assert sorted(sequences.values()) == ["adopted", "same as", "same as"]
    assert verdicts(found, "chunking")["broken again"] == "failed"
    assert verdicts(found, "chunking")["smaller steps"] in ("not significant", "worse")
    assert found["steps"][-1]["arms"][1]["verdict"] == "adopted"
    look_at_every_number(found, tmp_path / "rehearsal.store")
    assert took_s < 300


def _tagged(folder: Path) -> list[str]:
    """Processes that were started below a folder and still run."""
    left = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdecimal() and int(process.name) != os.getpid():
                command = (process / "cmdline").read_bytes()
                if os.readlink(process / "cwd") == str(folder) and b"loadgen" in command:
                    left.append(command.decode(errors="replace"))
        except OSError:  # it has ended, or is somebody else's
            continue
    return left
