"""A study that is killed at each of its writes and run again ends with the findings of one that
was not.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.helpers.source import ROOT


@pytest.mark.timeout(300)
def test_a_study_that_is_killed_at_any_write_ends_as_one_that_was_not(tmp_path: Path) -> None:
    # No disk to wait for, and what was written stays where only a program dies.
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as folder:
        done = subprocess.run(
            [sys.executable, "-m", "tests.helpers.killed_study", folder],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        )
    rows = json.loads(done.stdout)
    *killed, whole = rows
    assert len(killed) > 100  # statements and files of eight starts
    assert not whole["killed"]
    assert all(row["killed"] and not row["again"] for row in killed)
    assert {row["findings"] for row in rows} == {whole["findings"]}
    assert {row["starts"] for row in rows} == {whole["starts"]}
