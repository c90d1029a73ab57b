"""The examples do what they say; library.md, add-dataset.md and add-engine.md show them as they
are.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from loadgen.testing.engine_conformance import Case, EngineAlive, EngineOnPaper
from loadgen.testing.process import Process
from tests.helpers.command_line import environment
from tests.helpers.documents import found_between
from tests.slow.docs.examples import EXAMPLES, SHOWN, marks, page, shown


def ran(*arguments: str, cwd: Path) -> str:
    """What Python says when it is run so, from a folder that is not that of the examples."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("name", "file"), [(name, file) for name, files in SHOWN.items() for file in files]
)
def test_a_page_shows_the_file(name: str, file: str) -> None:
    assert found_between(page(name), *marks(file)).strip() == shown(file)


def test_every_example_is_shown() -> None:
    files = {path.name for path in EXAMPLES.iterdir() if path.is_file()}
    assert files == {file for files in SHOWN.values() for file in files}


def test_a_run_in_somebody_elses_loop(tmp_path: Path) -> None:
    said = ran(str(EXAMPLES / "embed.py"), cwd=tmp_path)
    assert "100 requests" in said
    assert "beats of the other task" in said


@pytest.mark.parametrize("server", ["the simulator", "a server"])
def test_looking_on_until_enough_was_seen(server: str, metronome: Process, tmp_path: Path) -> None:
    said = ran(
        str(EXAMPLES / "watch.py"), *([metronome.url] if server == "a server" else []), cwd=tmp_path
    )
    assert "in flight, p99 TTFT" in said
    assert "partial because enough requests were answered" in said
    answered = int(said.splitlines()[-1].split()[1])
    assert 300 <= answered < 60 * 200  # it was stopped long before the minute was over


@pytest.mark.parametrize("server", ["the simulator", "a server"])
def test_prompts_of_ones_own(server: str, metronome: Process, tmp_path: Path) -> None:
    said = ran(
        str(EXAMPLES / "custom_dataset.py"),
        *([metronome.url] if server == "a server" else []),
        cwd=tmp_path,
    )
    assert said.endswith(": 100 sums, 100 of them distinct\n")


def test_an_engine_of_ones_own(tmp_path: Path) -> None:
    assert ": 100 answers, median TPOT " in ran(str(EXAMPLES / "custom_engine.py"), cwd=tmp_path)


@pytest.fixture(scope="module")
def case() -> Case:
    path = EXAMPLES / "custom_engine.py"
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(EXAMPLES)
        spec = importlib.util.spec_from_file_location("custom_engine", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return Case(engine=module.engine, model="tiny", no_model=None)


class TestTheEngine(EngineOnPaper, EngineAlive): ...


def test_promises_held_by_pytest(tmp_path: Path) -> None:
    # Not with the settings of our own tests, which make a failure of the warning that a busy
    # machine leads to.
    flags = [
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-c",
        os.devnull,
        "--rootdir",
        str(tmp_path),
        "-W",
        "default",
    ]
    assert "3 passed" in ran(*flags, str(EXAMPLES / "test_slo.py"), cwd=tmp_path)


def test_the_first_lines_of_the_page(tmp_path: Path) -> None:
    text = page("library.md").read_text()
    first = text.split("```python\n")[1].split("```")[0]
    assert "Successful requests:                     200" in ran("-c", first, cwd=tmp_path)
