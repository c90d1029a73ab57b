"""The reproduction script of a report, run with the simulator."""

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from loadgen.engines.launch import ports
from tests.helpers.command_line import environment
from tests.lab.study.test_reproduce import SIMULATED, script

pytestmark = pytest.mark.slow


def run(text: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    path = folder / "again.sh"
    path.write_text(text)
    beside = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "LOGS": str(folder),
    }
    command = ["bash", str(path), *words]
    env = environment() | beside
    return subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=90, check=False
    )


def free_port() -> int:
    """One that no outgoing connection gets before it is bound."""
    reserved = ports.reserve("127.0.0.1")
    reserved.release()
    return reserved.port


def test_script_starts_and_measures_both_and_stops_them(tmp_path: Path) -> None:
    port = free_port()
    text = script(tmp_path, {"more seqs": 1.25, "seqs/more seqs": 1.25}, **SIMULATED).replace(
        "8000", str(port)
    )
    done = run(text, tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.findall("^== (.*)$", done.stdout, re.MULTILINE) == ["baseline", "winner"]
    assert done.stdout.count("Successful requests:                     12") == 2
    assert {path.name for path in tmp_path.glob("*.log")} == {"baseline-0.log", "winner-0.log"}
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


def test_relative_paths_are_of_the_folder_of_the_script_and_not_of_the_server(
    tmp_path: Path,
) -> None:
    rows = [{"prompt": f"Question {number} of twelve"} for number in range(12)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    custom = {
        "dataset_name": "custom",
        "dataset_path": "rows.jsonl",
        "num_prompts": 12,
        "custom_output_len": 4,
    }
    text = script(tmp_path, {}, **SIMULATED | {"workloads": {"few": custom}}).replace(
        "8000", str(free_port())
    )
    (tmp_path / "elsewhere").mkdir()
    done = run(
        text.replace("serve baseline-0 .", f"serve baseline-0 {tmp_path / 'elsewhere'}"),
        tmp_path,
        "baseline",
    )
    assert done.returncode == 0, done.stderr
    assert "Successful requests:                     12" in done.stdout


def test_a_server_that_does_not_start_ends_the_script_with_what_to_look_at(tmp_path: Path) -> None:
    text = script(tmp_path, {"more seqs": 1.25, "seqs/more seqs": 1.25}, **SIMULATED).replace(
        "8000", str(free_port())
    )
    done = run(text.replace("--max-num-seqs", "--no-such-flag"), tmp_path, "winner")
    assert done.returncode != 0
    assert "the server has ended: see its log" in done.stderr
    assert "Successful requests" not in done.stdout


def test_another_server_at_the_port_is_never_measured(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = run(script(tmp_path, {}, **SIMULATED).replace("8000", str(port)), tmp_path)
    assert done.returncode == 1
    assert (
        f"something listens at 127.0.0.1:{port} already: end it, or change the port in this script"
        in done.stderr
    )
    assert "Successful requests" not in done.stdout
    assert not list(tmp_path.glob("*.log"))


def test_an_arm_that_is_not_there_is_refused(tmp_path: Path) -> None:
    done = run(script(tmp_path, {}, **SIMULATED), tmp_path, "winner")
    assert (done.returncode, done.stderr.strip()) == (2, "unknown arm winner: use baseline")
