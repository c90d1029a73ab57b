"""Foreign code reads the files that loadgen writes: each project's, from its wheel."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.engines.environments import made
from bench.peers import recipes
from tests.helpers.foreign_readers import READERS, TOLD, expected, written

pytestmark = [pytest.mark.release, pytest.mark.timeout(1800)]
CLONE = "LOADGEN_INFERENCEX"  # InferenceX is in no package


@pytest.mark.parametrize("name", READERS)
def test_reader_tells_what_stands_in_the_files(name: str, tmp_path: Path) -> None:
    reader = READERS[name]
    clone = os.environ.get(CLONE, "")
    if reader.recipe is None and not clone:
        pytest.skip(f"set {CLONE} to a clone of https://github.com/SemiAnalysisAI/InferenceX")
    folder = written(tmp_path)
    python = made(reader.recipe, recipes.FOLDER) / "python" if reader.recipe else sys.executable
    command = [str(python), "-c", reader.script, str(folder), clone]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told == pytest.approx(expected(reader, folder))
    assert json.loads(TOLD.read_text())[name] == pytest.approx(told)
