"""A data set of another package is found, used and named like a built-in one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.command_line import environment
from tests.helpers.source import ROOT
from tests.slow.docs.blocks import blocks

GUIDE = ROOT / "docs" / "datasets.md"
PROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "countdown-prompts"
version = "1.0"

[project.entry-points."loadgen.datasets"]
countdown = "countdown:Countdown"

[tool.setuptools]
py-modules = ["countdown"]
"""


def module_in_the_guide() -> str:
    """The data set that the documentation shows."""
    return next(block.text for block in blocks(GUIDE) if block.marks.get("file") == "countdown.py")


@pytest.mark.timeout(300)
def test_the_data_set_of_the_guide_is_installed_and_measured(tmp_path: Path) -> None:
    source, site = tmp_path / "source", tmp_path / "site"
    source.mkdir()
    (source / "countdown.py").write_text(module_in_the_guide())
    (source / "pyproject.toml").write_text(PROJECT)
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    done = subprocess.run(
        [*install, "--target", site, source],
        capture_output=True,
        text=True,
        timeout=200,
        env=environment(),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    run = [
        "run",
        "--dataset-name",
        "countdown",
        "--num-prompts",
        "5",
        "--rate",
        "100",
        "--json",
        "--records",
        "r.jsonl",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "loadgen", *run],
        cwd=tmp_path,
        env=environment() | {"PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["completed"] == 5
    prompts = result["loadgen"]["provenance"]["prompts"]
    assert (prompts["name"], prompts["distinct"]) == ("countdown", 5)
