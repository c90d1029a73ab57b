"""`loadgen serve` starts an engine from the command line."""

import contextlib
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadgen.cli.main import dispatch
from loadgen.engines import Launch
from loadgen.engines.cli import commands
from loadgen.engines.cli.serve import as_shell, serve_engine
from loadgen.engines.kinds import vllm
from loadgen.engines.kinds.knobs import KNOBS
from loadgen.errors import EngineError
from tests.helpers.command_line import ignored
from tests.helpers.fake_engine import Fake, wait_for_end
from tests.helpers.source import ROOT

PROGRAM = """
import signal, sys
from loadgen.engines.cli import serve
from loadgen.errors import LoadgenError
from tests.helpers.fake_engine import Fake
signal.signal(signal.SIGHUP, {hangup})
serve.GRACE_S = {grace_s}
try:
    sys.exit(serve.serve_engine(Fake(), sys.argv[1:]))
except LoadgenError as error:
    sys.exit(str(error))
"""


@contextlib.contextmanager
def served(
    folder: Path, *flags: str, hangup: str = "signal.SIG_DFL", grace_s: float = 30.0
) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-c", PROGRAM.format(hangup=hangup, grace_s=grace_s), "m", *flags]
    env = os.environ | {"XDG_STATE_HOME": str(folder)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=env
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_serve_prints_its_address_and_stops_the_engine(
    tmp_path: Path, number: signal.Signals
) -> None:
    with served(tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("listening on http://127.0.0.1:")
        assert process.stdout.readline() == "model m\n"
        (supervisor,) = children(process.pid)
        (engine,) = children(supervisor)
        process.send_signal(number)
        more, said = process.communicate(timeout=60)
    assert process.returncode == 0
    assert more == ""  # no tokenizer is known
    assert wait_for_end(engine, 0)
    assert "loadgen: stopping" in said
    assert "Traceback" not in said


def test_a_second_one_waits_no_longer_for_what_ignores_the_first(tmp_path: Path) -> None:
    with served(tmp_path, "--", "--ignore-term", grace_s=3600.0) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith("listening on ")
        process.send_signal(signal.SIGINT)
        assert any("stopping" in line for line in iter(process.stderr.readline, ""))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 0


def test_serve_keeps_sighup_ignored_under_nohup(tmp_path: Path) -> None:
    with served(tmp_path, hangup="signal.SIG_IGN") as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("listening on ")
        assert signal.SIGHUP in ignored(process.pid)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def test_progress_shows_what_the_engine_says(tmp_path: Path) -> None:
    with served(
        tmp_path, "--timeout", "60", "--", "--never-listen", "--say", "loading 3 of 9"
    ) as process:
        assert process.stderr is not None
        assert any(line.endswith(" s: loading 3 of 9\n") for line in process.stderr)
        (supervisor,) = children(process.pid)
        (engine,) = children(supervisor)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 0
    assert wait_for_end(engine, 0)


def test_an_engine_that_ends_by_itself_is_an_error(tmp_path: Path) -> None:
    with served(tmp_path) as process:
        assert process.stdout is not None
        process.stdout.readline()
        (supervisor,) = children(process.pid)
        os.kill(children(supervisor)[0], signal.SIGKILL)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "fake: killed: killed by SIGKILL" in said


def test_a_dry_run_prints_command_environment_and_files(capsys: pytest.CaptureFixture[str]) -> None:
    flags = [
        "some/model",
        "--served-name",
        "a b",
        "--port",
        "8123",
        "--dry-run",
        "--",
        "--say",
        "a b",
    ]
    assert serve_engine(Fake(), flags) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith(f"served_name='a b' {sys.executable}")
    assert told[0].endswith("--port 8123 --model some/model --say 'a b'")
    assert told[1].endswith("private/config.json:")
    assert told[2] == "#   {}"


def test_a_shorthand_and_a_folder_stand_before_the_command() -> None:
    launch = Launch(
        ("daemon",), "http://h:1", "m", folder=Path("/opt/a b"), shorthand=("mindie", "serve", "m")
    )
    assert as_shell(launch).splitlines() == ["# mindie serve m", "cd '/opt/a b'", "daemon"]


def test_dry_run_starts_no_process_and_writes_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert serve_engine(Fake(["/nowhere/engine"]), ["m", "--dry-run"]) == 0
    assert list(tmp_path.iterdir()) == []


def planned(capsys: pytest.CaptureFixture[str], *flags: str) -> list[str]:
    """The words of the command that vLLM would be started with."""
    assert commands.serve(["vllm", "some/model", "--dry-run", *flags]) == 0
    return shlex.split(capsys.readouterr().out.splitlines()[-1])


def test_every_knob_is_a_flag_and_becomes_the_engine_s_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    values = {
        int: "2",
        float: "0.5",
        str: "balanced",
        dict: '{"method":"ngram","num_speculative_tokens":2}',
    }
    for knob in KNOBS.values():
        flag = "--" + knob.name.replace("_", "-")
        value = [values[knob.kind]] if knob.kind in values else []
        shared = ["--tensor-parallel", "2"] if knob.name == "attention_data_parallel" else []
        words = planned(capsys, flag, *value, *shared)
        own = vllm.engine.knobs()[knob.name].partition(" /")[0]
        assert own in words, knob.name


def test_boolean_knob_has_on_off_and_engine_default(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--enable-prefix-caching" in planned(capsys, "--prefix-cache")
    assert "--no-enable-prefix-caching" in planned(capsys, "--no-prefix-cache")
    assert not any("prefix-caching" in word for word in planned(capsys))


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["vllm", "m", "--max-seq", "4"], "--max-seq: unknown; did you mean --max-seqs?"),
        (
            ["vllm", "m", "--max-seqs", "four"],
            "--max-seqs: 'four' is not a whole number; write digits only, for example 10",
        ),
        (["vllm", "m", "--max-seqs", "0"], "--max-seqs: 0 is out of range; give 1 or more"),
        (
            ["vllm", "m", "--speculative", "ngram"],
            "--speculative: 'ngram' is not a JSON object; see",
        ),
        (
            ["sglang", "m", "--speculative", "{}"],
            "--speculative.method: unknown method None; use one of mtp,",
        ),
        (
            ["sglang", "m", "--performance-mode", "balanced"],
            "--performance-mode: sglang has no such knob; use one of",
        ),
        (
            ["llamacpp", "m.gguf", "--memory-fraction", "0.5"],
            "--memory-fraction: llamacpp has no such setting; the nearest is --n-gpu-layers or "
            "--fit",
        ),
        (
            ["vllm", "m", "--max-seqs", "4", "--", "--max-num-seqs=8"],
            "--max-num-seqs: it sets the same thing as the knob max_seqs; use one of them, best "
            "max_seqs",
        ),
        (
            ["vllm", "m", "--", "--port", "1"],
            "--port: the launcher sets the port; leave the flag out",
        ),
        (["vllm", "m", "--port", "70000"], "--port: 70000 is not within 1 to 65535; see"),
        (["vllm"], "the following arguments are required: MODEL; see"),
        (
            ["mindie", "m"],
            "--host: MindIE does not answer at 127.0.0.1; give an address of this machine's "
            "network",
        ),
        (
            ["external", "m"],
            "engine: an external server runs already and cannot be started; measure it",
        ),
    ],
)
def test_bad_command_line_is_one_line_before_the_start(
    argv: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dispatch(["serve", *argv]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"loadgen serve: {line}")
    assert err.count("\n") == 1


def test_help_says_what_the_engine_calls_each_knob(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        commands.serve(["llamacpp", "--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert "--max-seqs N maximum requests running at once [--parallel]" in told
    assert "[llamacpp has no such knob]" in told


def test_an_engine_that_does_not_start_says_why(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(EngineError, match=r"fake: bad_flag: .*unrecognized arguments: --odd"):
        serve_engine(Fake(), ["m", "--", "--odd"])
    assert "loadgen: starting fake: " in capfd.readouterr().err


def test_serve_without_arguments_lists_the_engines(capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.serve([]) == 0
    assert "sim" in capsys.readouterr().out


def test_serving_an_unknown_engine_is_one_clear_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["serve", "sin"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("loadgen serve: sin: unknown engine; use one of: ")
    assert "sim" in error


def test_simulator_needs_no_model_and_takes_knobs(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        commands.serve(["sim", "--max-seqs", "8", "--dry-run", "--", "--profile", "h100-qwen3-8b"])
        == 0
    )
    words = shlex.split(capsys.readouterr().out.splitlines()[-1])
    assert words[words.index("loadgen.engines.sim") + 1 :][:5] == [
        "sim",
        "--max-num-seqs",
        "8",
        "--profile",
        "h100-qwen3-8b",
    ]
