"""docs/engines.md: its table is the engines' own, and the engine that it shows can be built, installed and asked."""

import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from tests.commands.calling import environment
from tests.engines.knob_table import BEGIN, DOCUMENT, END, written
from tests.source import ROOT

ASK = """
import json, sys
from importlib.metadata import entry_points
from pathlib import Path
from loadgen.engines.engine import Place
(entry,) = entry_points(group="loadgen.engines", name="lmdeploy")
knobs = {"tensor_parallel": 2, "prefix_cache": True}
launched = entry.load().launch("Qwen/Qwen3-8B", knobs, ["--log-level", "INFO"], Place(8001, Path("/runs/1")))
print(json.dumps(launched.argv))
"""


def test_the_table_is_what_the_engines_say() -> None:
    text = DOCUMENT.read_text()
    assert text.partition(BEGIN)[2].partition(END)[0].strip() == written(), "python -m tests.engines.knob_table"


def blocks() -> dict[str, str]:
    """The files that the document shows, by name."""
    return dict(re.findall(r"^`([\w.]+)`:\n\n```\w+\n(.*?)^```", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL))


def test_an_engine_takes_less_than_sixty_lines() -> None:
    assert sum(len(text.splitlines()) for text in blocks().values()) < 60


@pytest.mark.timeout(300)
def test_the_engine_that_is_shown_can_be_installed_and_launched(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    for name, text in blocks().items():
        (source / name).write_text(text)
    pip = ["pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(target)]
    done = subprocess.run(
        [sys.executable, "-m", *pip, str(source)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    env = environment() | {"PYTHONPATH": str(target)}
    done = subprocess.run(
        [sys.executable, "-c", ASK], env=env, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert " ".join(json.loads(done.stdout)) == (
        "lmdeploy serve api_server Qwen/Qwen3-8B --tp 2 --enable-prefix-caching --log-level INFO --enable-metrics "
        "--server-name 127.0.0.1 --server-port 8001 --model-name Qwen/Qwen3-8B"
    )


def test_every_engine_is_found_under_its_own_name() -> None:
    entries = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["loadgen.engines"]
    for name, value in entries.items():
        assert EntryPoint(name, value, "loadgen.engines").load().name == name
    text = DOCUMENT.read_text()
    for name in entries:
        assert name == "sim" or f"`{name}`" in text
