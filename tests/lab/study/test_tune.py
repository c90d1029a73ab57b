"""`loadgen tune plan` prints text or JSON and starts no program."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from loadgen.cli.main import dispatch
from loadgen.engines.launch.server_registry import StartupHistory
from loadgen.lab.study.plan.plan_text import as_json, as_text
from tests.helpers.command_line import environment
from tests.helpers.study_files import as_yaml, planned

ENV = {"HF_TOKEN": "hunter2", "OMP_NUM_THREADS": 4}
STAGES: list[dict[str, Any]] = [
    {"name": "engine", "choice": {"vllm": {}, "sglang": {"engine": "sglang"}}, "expect": "sglang"},
    {"name": "seqs", "grid": {"max_seqs": [64, 128]}},
]
PLAN = """\
Study small: Qwen/Qwen3-8B, Qwen/Qwen3-8B-FP8
  on          a box, 4 devices, according to the file; a run compares it with NVML or npu-smi
  note        never started by loadgen's own tests: vllm on a GPU, sglang, trtllm; commands follow
              the engines' sources
  objective   total_tps_per_box on short, more is better: input and output tokens/s of all servers
              that fit on the machine
  as long as  99.0% of requests succeed
  better is   1.0% or more with 95.0% confidence, in 2 to 7 starts of each arm, in blocks whose
              order seed 0 draws

0. noise: the baseline alone; 3 starts, 3.2 to 16 min
   baseline  start 60 s to 5 min, short 3.5 to 21 s (1 device)
       ENV vllm serve Qwen/Qwen3-8B --host 127.0.0.1 --port 8000 --served-model-name Qwen/Qwen3-8B

1. engine: choice, from baseline; 4 to 14 starts, 3.2 to 61 min
   vllm    start 60 s to 5 min, short 3.5 to 21 s (1 device; the arm it starts from)
       ENV vllm serve Qwen/Qwen3-8B --host 127.0.0.1 --port 8000 --served-model-name Qwen/Qwen3-8B
   sglang  start 30 s to 3 min, short 3.5 to 21 s (1 device; expected to win)
       SGLANG --enable-metrics --host 127.0.0.1 --port 8000 --served-model-name Qwen/Qwen3-8B

2. seqs: grid, from engine/sglang; 6 to 21 starts, 3.4 to 70 min
   engine/sglang  start 30 s to 3 min, short 3.5 to 21 s (1 device; the arm it starts from)
       SGLANG --enable-metrics --host 127.0.0.1 --port 8000 --served-model-name Qwen/Qwen3-8B
   max_seqs=64    start 30 s to 3 min, short 3.5 to 21 s (1 device)
       SGLANG --max-running-requests 64 --enable-metrics --host 127.0.0.1 --port 8000 --served-model-name Qwen/Qwen3-8B
   max_seqs=128   start 30 s to 3 min, short 3.5 to 21 s (1 device)
       SGLANG --max-running-requests 128 --enable-metrics --host 127.0.0.1 --port 8000 --served-model-name Qwen/Qwen3-8B

3. confirmation: baseline and winner, on every workload; 4 to 14 starts, 7 min to 2.3 h
   baseline       start 60 s to 5 min, short 3.5 to 21 s, long 56 s to 5.6 min (1 device; the arm it starts from)
       ENV vllm serve Qwen/Qwen3-8B --host 127.0.0.1 --port 8000 --served-model-name Qwen/Qwen3-8B
   engine/sglang  start 30 s to 3 min, short 3.5 to 21 s, long 56 s to 5.6 min (1 device)
       SGLANG --enable-metrics --host 127.0.0.1 --port 8000 --served-model-name Qwen/Qwen3-8B

In all: 17 to 52 starts, 17 min to 4.8 h, 1.12 to 19.11 GPU-hours
Not in these times: up to 20 s before each start for a quiet machine, in all up to 17 min; and what is repeated \
because it failed or others disturbed it
Assumed: sglang wins engine
Basis of these times:
  start of vllm with Qwen/Qwen3-8B: usual for 8 billion parameters
  start of sglang with Qwen/Qwen3-8B: usual for 8 billion parameters
  short: 1000 requests of 132 tokens at 6,250 to 37,500 tok/s, usual for 8B
  long: 500 requests of 4,200 tokens at 6,250 to 37,500 tok/s, usual for 8B
Nothing was started and nothing was measured.
"""  # noqa: E501
SHORT = {
    "VLLM_SERVER_DEV_MODE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1": "ENV",
    "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B": "SGLANG",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "study.yaml"
    path.write_text(as_yaml(stages=STAGES))
    return path


def test_a_plan_as_text(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["tune", "plan", str(path)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    for long, short in SHORT.items():
        out = out.replace(long, short)
    assert out == PLAN


def test_a_start_takes_what_it_has_taken_on_this_machine(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    StartupHistory().add("vllm", "Qwen/Qwen3-8B", 45.0)
    assert dispatch(["tune", "plan", str(path)]) == 0
    out = capsys.readouterr().out
    assert "baseline  start 45 s, " in out
    assert "  start of vllm with Qwen/Qwen3-8B: measured on this machine\n" in out


def test_command_of_the_page_is_above_the_real_command() -> None:
    lines = as_text(
        planned(
            {"name": "s", "choice": {"m": {"engine": "mindie"}}},
            engines={
                "vllm": {"version": "0.17.1"},
                "mindie": {"version": "2.1RC1", "host": "10.0.0.1"},
            },
            models={"bf16": "./Qwen3-8B"},
        )
    ).splitlines()
    at = lines.index("       # mindie serve ./Qwen3-8B")
    assert lines[at + 1].endswith("/bin/mindieservice_daemon")
    assert "config.json: " in lines[at + 2]


def test_files_that_are_written_for_an_engine_are_shown() -> None:
    off = {"engine": "trtllm", "knobs": {"prefix_cache": False}}
    text = as_text(planned({"name": "s", "choice": {"off": off}}))
    assert "       #   kv_cache_config:\n       #     enable_block_reuse: false\n" in text


def test_credentials_are_not_shown_and_yet_two_of_them_make_two_arms() -> None:
    raw = {"a": {"raw": ["--api-key 'hunter2 x'"]}, "b": {"raw": ["--api-key=hunter3"]}}
    made = planned(
        {"name": "s", "choice": raw}, engines={"vllm": {"env": ENV, "version": "0.17.1"}}
    )
    for text in (as_text(made), json.dumps(as_json(made))):
        assert "hunter" not in text
        assert "OMP_NUM_THREADS" in text
    assert "HF_TOKEN='(given)'" in as_text(made)
    argv = as_json(made)["steps"][1]["arms"][1]["servers"][0]["argv"]
    assert argv[3:5] == ["--api-key", "(given)"]


def test_control_characters_of_a_file_are_escaped() -> None:
    text = as_text(planned(hardware={"name": "box \x1b[31m", "devices": 4}))
    assert "\x1b" not in text
    assert "box \\x1b[31m" in text


def test_a_budget_that_does_not_suffice_is_said() -> None:
    assert "The maximum exceeds the budget of 1 hours: the study stops when it is spent" in as_text(
        planned(budget={"hours": 1})
    )
    assert "Even the minimum exceeds the budget of 0.1 gpu_hours" in as_text(
        planned(budget={"gpu_hours": 0.1})
    )
    assert "budget" not in as_text(planned(budget={"hours": 100}))


def test_every_time_says_what_it_rests_on() -> None:
    lines = as_text(
        planned(workloads={"short": {"dataset_name": "prose", "num_prompts": 3}})
    ).splitlines()
    rest = lines[lines.index("Basis of these times:") + 1 :]
    assert rest[:2] == [
        "  start of vllm with Qwen/Qwen3-8B: usual for 8 billion parameters",
        "  short: unknown",
    ]
    assert any("and the time of short, which is unknown" in line for line in lines)


def test_a_plan_as_json(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["tune", "plan", str(path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [step["name"] for step in told["steps"]] == ["noise", "engine", "seqs", "confirmation"]
    engine = told["steps"][1]
    assert engine["expected"] == ["sglang"]
    assert [sorted(block) for block in engine["blocks"]] == [["sglang", "vllm"]] * 2
    sglang = engine["arms"][1]
    assert sglang["servers"][0]["shorthand"] == [
        "python3",
        "-m",
        "sglang.launch_server",
        "--model-path",
        "Qwen/Qwen3-8B",
    ]
    assert sglang["workloads"] == ["short"]
    assert sglang["estimate"]["start"]["seconds"] == [30, 180]
    assert told["workloads"]["short"]["num_prompts"] == 1000
    assert told["objective"]["more_is_better"] is True


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["plna"],
            "loadgen tune: plna: unknown command; use init, plan, run, status, report, export or "
            "schema\n",
        ),
        (["plan"], "loadgen tune: "),
        (
            ["plan", "/nowhere.yaml"],
            "loadgen tune: /nowhere.yaml: cannot be read (No such file or directory); name a",
        ),
        (["plan", "--jsn", "x"], "loadgen tune: --jsn: unknown; did you mean --json?"),
        (["schema", "x"], "loadgen tune: x: unknown; see"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dispatch(["tune", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(message)
    assert err.count("\n") == 1


def test_without_a_command_it_says_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["--help"]):
        assert dispatch(["tune", *arguments]) == 0
        assert capsys.readouterr().out.startswith("usage: loadgen tune init [FILE]")


def test_the_schema_knows_what_the_reader_knows(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["tune", "schema"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["$schema"].startswith("https://json-schema.org/")
    assert told["additionalProperties"] is False
    assert {"name", "models", "stages", "baseline"} <= set(told["required"])
    grid = told["$defs"]["Grid"]
    assert {"from", "grid", "where", "expect", "name", "workloads"} == grid["properties"].keys()
    assert all(field.get("description") for field in grid["properties"].values())


@pytest.mark.integration
def test_plan_starts_no_program_and_writes_no_file(path: Path, tmp_path: Path) -> None:
    """No program is started, although engines stand in PATH, no file is written, and no
    connection is made.
    """
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("vllm", "llama-server", "trtllm-serve", "python3"):
        (programs / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
        (programs / name).chmod(stat.S_IRWXU)
    engines = {name: {} for name in ("vllm", "sglang", "trtllm", "llamacpp", "transformers", "sim")}
    choice = {name: {"engine": name} for name in engines if name != "vllm"} | {"vllm": {}}
    path.write_text(as_yaml(engines=engines, stages=[{"name": "engine", "choice": choice}]))
    home = tmp_path / "home"
    home.mkdir(0o500)
    code = (
        "import sys\n"
        "def refuse(event, arguments):\n"
        "    names = ('socket.connect', 'socket.bind', 'subprocess.Popen', 'os.posix_spawn', "
        "'os.fork', 'os.mkdir')\n"
        "    assert event not in names, (event, arguments)\n"
        "    wrote = event == 'open' and arguments[2] is not None and arguments[2] & 3\n"
        "    assert not wrote, arguments\n"
        "from loadgen.cli.main import dispatch\n"
        "sys.dont_write_bytecode = True\n"
        "sys.addaudithook(refuse)\n"
        f"sys.exit(dispatch(['tune', 'plan', {str(path)!r}]))\n"
    )
    env = environment() | {"PATH": f"{programs}{os.pathsep}/usr/bin:/bin", "HOME": str(home)}
    before = sorted(tmp_path.rglob("*"))
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=home,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(tmp_path.rglob("*")) == before
