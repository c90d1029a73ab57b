"""`loadgen replicate` runs with the settings of a result, and answers by compare's rule."""

import json
from pathlib import Path

import pytest

from loadgen.errors import BadInput
from loadgen.lab.commands import replicate
from tests.helpers.command_line import loadgen

pytestmark = pytest.mark.integration
RUN = ["--engine", "sim", "--rate", "100", "--num-prompts", "100", "--random-input-len", "16"]
FILES = ["--save-result", "--result-filename", "run.json", "--records", "run.jsonl", "--quiet"]
WORDS = {"agree": 0, "undecided": 10, "differ": 8}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("replicate")
    done = loadgen("run", *RUN, "--random-output-len", "4", *FILES, cwd=path)
    assert (path / "run.json").exists(), done.stderr
    return path


def test_the_second_run_has_the_seeds_and_prompts_of_the_first(folder: Path) -> None:
    done = loadgen("replicate", "run.json", cwd=folder)
    word = done.stdout.splitlines()[-1].removeprefix("replicate: ")
    assert done.returncode == WORDS[word], done.stdout + done.stderr
    first = json.loads((folder / "run.json").read_text())["loadgen"]["provenance"]
    again = json.loads((folder / "replicate" / "again.json").read_text())["loadgen"]["provenance"]
    for part in ("prompts", "schedule"):
        assert first[part]["sha256"] == again[part]["sha256"]
    assert (folder / "replicate" / "again.jsonl").exists()


def test_files_of_the_first_run_are_not_written_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    settings, records = replicate.asked(folder / "run.json")
    assert (settings.save_result, settings.records, settings.num_prompts) == (False, None, 100)
    assert records == "run.jsonl"


def test_a_secret_that_a_result_lacks_is_named(folder: Path, tmp_path: Path) -> None:
    result = json.loads((folder / "run.json").read_text())
    result["loadgen"]["provenance"]["asked"]["header"] = ["Authorization=(given)"]
    (tmp_path / "secret.json").write_text(json.dumps(result))
    with pytest.raises(BadInput, match="does not have the value of header, a secret"):
        replicate.asked(tmp_path / "secret.json")


def test_a_file_is_no_folder(folder: Path) -> None:
    done = loadgen("replicate", "run.json", "--folder", "run.jsonl", cwd=folder)
    assert done.returncode == 2
    assert "--folder: run.jsonl is a file; name a folder, or a new one" in done.stderr
