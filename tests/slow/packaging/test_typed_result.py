"""The type checker of a user sees the fields of a result and of the settings."""

import subprocess
import sys

import pytest

from tests.helpers.command_line import environment
from tests.helpers.source import ROOT

pytest.importorskip("mypy")

RIGHT = """
import loadgen

result = loadgen.run_sync(loadgen.RunSettings(engine="sim", num_prompts=5))
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
BEGIN = RIGHT.strip().splitlines()
WRONG = {
    "result.ttft.p99": "has no attribute",
    "result.latency_ms.tfft_due": "has no attribute",
    "result.outcomes + 1": "Unsupported operand",
    "result.numbers.completed.upper()": "has no attribute",
    "loadgen.RunSettings(requst_rate=3)": "Unexpected keyword argument",
    "loadgen.RunSettings().replace(requst_rate=3)": "Unexpected keyword argument",
    'loadgen.RunSettings().replace(request_rate="fast")': "incompatible type",
    "loadgen.run_sync(loadgen.RunSettings(), server=None)": "Unexpected keyword argument",
    "loadgen.load('a.json').snapshot": "has no attribute",
}


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[list[str]]]:
    """What mypy says of the programs, by their names: path, line, kind and text of each error."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "harness.py").write_text((ROOT / "tests/integration/library/harness.py").read_text())
    (folder / "program.py").write_text("\n".join([*BEGIN, *WRONG]) + "\n")
    programs = [str(folder / name) for name in ("harness.py", "program.py")]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--cache-dir",
            str(ROOT / ".mypy_cache"),
            *programs,
        ],
        cwd=ROOT,
        env=environment() | {"MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=380,
        check=False,
    )
    assert "checked 2 source files" in done.stdout, done.stdout + done.stderr
    lines = [line.split(":", 3) for line in done.stdout.splitlines() if "error:" in line]
    return {
        name: [parts for parts in lines if parts[0].endswith(name)]
        for name in ("harness.py", "program.py")
    }


@pytest.mark.timeout(400)
def test_mypy_accepts_a_harness(errors: dict[str, list[list[str]]]) -> None:
    assert errors["harness.py"] == []


@pytest.mark.timeout(400)
def test_mypy_sees_the_fields_of_a_result(errors: dict[str, list[list[str]]]) -> None:
    lines = [int(parts[1]) for parts in errors["program.py"]]
    assert lines == [len(BEGIN) + number for number in range(1, len(WRONG) + 1)]
    for parts, expected in zip(errors["program.py"], WRONG.values(), strict=True):
        assert expected in parts[3]
