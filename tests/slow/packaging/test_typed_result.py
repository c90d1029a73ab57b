"""The type checker of a user sees the fields of a result and of the settings."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.command_line import environment
from tests.helpers.source import ROOT

pytest.importorskip("mypy")

RIGHT = """
import loadgen

result = loadgen.run_sync(loadgen.RunSettings(num_prompts=5))
verdict: loadgen.Verdict = result.verdict
p99: float | None = result.ttft.p99_ms
names: list[str] = [check.name for check in result.checks if check.ok is False]
ok: int = result.outcomes.get("ok", 0)
completed: int = result.numbers.completed
busy: float | None = result.client.busy_share
lag: float | None = result.latency_ms.lag.max_ms
value: float | None = None if result.server is None else result.server.levels.running.mean
sent: object = result.data["completed"]
"""
WRONG = {
    "result.ttft.p99": "has no attribute",
    "result.latency_ms.tfft_due": "has no attribute",
    "result.outcomes + 1": "Unsupported operand",
    "result.numbers.completed.upper()": "has no attribute",
    "loadgen.RunSettings(requst_rate=3)": "Unexpected keyword argument",
    "loadgen.RunSettings().replace(requst_rate=3)": "Unexpected keyword argument",
    'loadgen.RunSettings().replace(request_rate="fast")': "incompatible type",
    "loadgen.run_sync(server=None)": "Unexpected keyword argument",
    "loadgen.load('a.json').snapshot": "has no attribute",
}


def checked(program: Path) -> "subprocess.CompletedProcess[str]":
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--cache-dir",
        str(ROOT / ".mypy_cache"),
        str(program),
    ]
    env = environment() | {"MYPYPATH": str(ROOT)}
    return subprocess.run(
        command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=380, check=False
    )


@pytest.mark.timeout(400)
def test_mypy_accepts_a_harness(tmp_path: Path) -> None:
    program = tmp_path / "harness.py"
    program.write_text((ROOT / "tests/integration/library/harness.py").read_text())
    done = checked(program)
    assert done.returncode == 0, done.stdout


@pytest.mark.timeout(400)
def test_mypy_sees_the_fields_of_a_result(tmp_path: Path) -> None:
    begin = RIGHT.strip().splitlines()
    program = tmp_path / "program.py"
    program.write_text("\n".join([*begin, *WRONG]) + "\n")
    done = checked(program)
    found = [line.split(":", 3) for line in done.stdout.splitlines() if "error:" in line]
    assert [int(each[1]) for each in found] == [
        len(begin) + number for number in range(1, len(WRONG) + 1)
    ], done.stdout
    for each, expected in zip(found, WRONG.values(), strict=True):
        assert expected in each[3]
