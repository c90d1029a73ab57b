"""`loadgen engines` lists the engines, their installed versions and the names of their knobs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from loadgen.cli.main import dispatch
from loadgen.engines.cli import commands
from loadgen.engines.kinds.knobs import KNOBS
from tests.helpers.command_line import environment

HEAVY = ("aiohttp", "numpy", "tokenizers", "torch", "transformers", "vllm", "xllamacpp")


def told(capsys: pytest.CaptureFixture[str], *flags: str) -> str:
    assert commands.engines([*flags]) == 0
    return capsys.readouterr().out


@pytest.fixture
def _old_vllm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A vLLM in PATH, in an environment of its own that holds nothing but its metadata."""
    metadata = tmp_path / "lib/python3.12/site-packages/vllm-0.11.0.dist-info/METADATA"
    program = tmp_path / "bin/vllm"
    for path in (metadata, program):
        path.parent.mkdir(parents=True)
    metadata.write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 0.11.0\n")
    program.write_text(f"#!{tmp_path}/bin/python3\nraise SystemExit('started')\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))


@pytest.mark.usefixtures("_old_vllm")
def test_versions_and_knob_names_are_the_installed_ones(capsys: pytest.CaptureFixture[str]) -> None:
    listed = json.loads(told(capsys, "--json"))
    engines = listed["engines"]
    assert (engines["vllm"]["version"], engines["sglang"]["version"]) == ("0.11.0", None)
    assert engines["vllm"]["knobs"]["max_seqs"] == "--max-num-seqs"
    assert engines["vllm"]["knobs"]["attention_backend"] == "variable VLLM_ATTENTION_BACKEND"
    assert "performance_mode" not in engines["vllm"]["knobs"]  # which came with 0.17
    assert engines["llamacpp"]["knobs"]["max_seqs"] == "--parallel"
    assert engines["external"] == {"version": None, "knobs": {}}
    assert engines["sim"]["knobs"]["max_seqs"] == "--max-num-seqs"
    assert listed["knobs"]["max_seqs"] == {"type": "int", "help": KNOBS["max_seqs"].help}


@pytest.mark.usefixtures("_old_vllm")
def test_text_has_a_line_for_each_engine_and_knob_name(capsys: pytest.CaptureFixture[str]) -> None:
    lines = told(capsys).splitlines()
    assert "vllm          0.11.0" in lines
    assert "sglang        -" in lines
    about = lines.index(f"max_seqs (int): {KNOBS['max_seqs'].help}")
    assert "    sglang: --max-running-requests" in lines[about : about + 7]
    assert "    sim, vllm, vllm-ascend, vllm-cpu: --max-num-seqs" in lines[about : about + 7]


@pytest.mark.integration
def test_engine_list_imports_no_heavy_module() -> None:
    program = f"""
import sys
from loadgen.engines.cli import commands
commands.engines(["--json"])
assert not {HEAVY!r} & sys.modules.keys(), {HEAVY!r} & sys.modules.keys()
""".replace(repr(HEAVY), repr(set(HEAVY)))
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_an_unknown_flag_is_one_clear_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["engines", "--jsn"]) == 2
    assert capsys.readouterr().err == "loadgen engines: --jsn: unknown; did you mean --json?\n"
