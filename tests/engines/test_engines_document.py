"""docs/engines.md names the engines, docs/engine-knobs.md their knobs; the engine in
docs/add-engine.md can be built, installed and asked.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from loadgen.engines import Launcher
from tests.engines.knob_table import BEGIN, DOCUMENT, END, written
from tests.helpers.command_line import environment
from tests.helpers.source import ROOT

MANUAL = ROOT / "docs/engines.md"
GUIDE = ROOT / "docs/add-engine.md"
# In the place of LMDeploy: its flags, in front of the simulator.
STAND_IN = """#!{python}
import argparse, os, sys
parser = argparse.ArgumentParser(allow_abbrev=False)
for word in ("serve", "server", "model"):
    parser.add_argument(word)
for flag in ("--server-name", "--server-port", "--model-name", "--session-len"):
    parser.add_argument(flag)
parser.add_argument("--enable-metrics", action="store_true")
told = parser.parse_args()
if told.model.startswith("/nowhere"):
    sys.exit("OSError: " + told.model + " is not a local folder")
flags = ["--host", told.server_name, "--port", told.server_port, "--served-model-name", told.model_name]
os.execv(sys.executable, [sys.executable, "-m", "loadgen.engines.sim", *flags, "--max-model-len", told.session_len])
"""  # noqa: E501
ASK = """
import json, sys
from importlib.metadata import entry_points
from pathlib import Path
from loadgen.engines.kinds.engine import Place
(entry,) = entry_points(group="loadgen.engines", name="lmdeploy")
knobs = {"tensor_parallel": 2, "prefix_cache": True}
launched = entry.load().launch("Qwen/Qwen3-8B", knobs, ["--log-level", "INFO"], Place(8001, Path("/runs/1")))
print(json.dumps(launched.argv))
"""  # noqa: E501


def test_engines_that_were_never_started_are_named() -> None:
    named = MANUAL.read_text().partition("## Never started here")[2].partition("\n## ")[0]
    assert named
    for engine, where in Launcher.never_started.items():
        assert f"`{engine}`" in named
        assert where in named


def test_the_knobs_are_what_the_engines_say() -> None:
    text = DOCUMENT.read_text()
    assert text.partition(BEGIN)[2].partition(END)[0].strip() == written(), (
        "python -m tests.engines.knob_table"
    )


def blocks() -> dict[str, str]:
    """The files that the document shows, by name."""
    return dict(
        re.findall(
            r"^`([\w.]+)`:\n\n<!-- [^\n]* -->\n```\w+\n(.*?)^```",
            GUIDE.read_text(),
            re.MULTILINE | re.DOTALL,
        )
    )


def test_an_engine_takes_less_than_sixty_lines() -> None:
    assert sum(len(text.splitlines()) for text in blocks().values()) < 60


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which the engine that is shown was installed, and beside which its files
    lie.
    """
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("target")
    for name, text in blocks().items():
        (source / name).write_text(text)
    pip = [
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--target",
        str(target),
    ]
    run("-m", *pip, str(source), timeout_s=200)
    (target / "test_lmdeploy.py").write_text(blocks()["test_lmdeploy.py"])
    return target


def run(*words: str, timeout_s: float = 60, **variables: str) -> str:
    """What Python says with these words."""
    done = subprocess.run(
        [sys.executable, *words],
        env=environment() | variables,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_engine_that_is_shown_can_be_installed_and_launched(package: Path) -> None:
    told = run("-c", ASK, PYTHONPATH=str(package))
    assert " ".join(json.loads(told)) == (
        "lmdeploy serve api_server Qwen/Qwen3-8B --tp 2 --enable-prefix-caching --log-level INFO "
        "--enable-metrics --server-name 127.0.0.1 --server-port 8001 --model-name Qwen/Qwen3-8B"
    )


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_engine_that_is_shown_passes_the_kit(package: Path, tmp_path: Path) -> None:
    stand_in = tmp_path / "lmdeploy"
    stand_in.write_text(STAND_IN.format(python=sys.executable))
    stand_in.chmod(0o755)
    variables = {"PYTHONPATH": f"{package}:{ROOT}", "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    pytest_alone = [
        "-m",
        "pytest",
        "-q",
        "-c",
        os.devnull,
        "--rootdir",
        str(tmp_path),
        "-p",
        "no:cacheprovider",
    ]
    said = run(*pytest_alone, str(package / "test_lmdeploy.py"), timeout_s=200, **variables)
    assert "20 passed" in said or "19 passed, 1 skipped" in said, said


def test_every_engine_is_found_under_its_own_name() -> None:
    entries = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"][
        "loadgen.engines"
    ]
    for name, value in entries.items():
        assert EntryPoint(name, value, "loadgen.engines").load().name == name
    text = MANUAL.read_text()
    for name in entries:
        assert f"`{name}`" in text
