"""`loadgen serve`: an engine in the foreground, from the command line."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadgen.cli.main import dispatch
from loadgen.engines import Launch, commands
from loadgen.engines.foreground import foreground, shown
from loadgen.errors import BadInput, EngineError
from tests.engines.fakes import Fake, wait_for_end
from tests.source import ROOT

PROGRAM = """
import sys
from loadgen.engines.foreground import foreground
from loadgen.errors import LoadgenError
from tests.engines.fakes import Fake
try:
    sys.exit(foreground(Fake(), sys.argv[1:]))
except LoadgenError as error:
    sys.exit(str(error))
"""


@contextlib.contextmanager
def served(folder: Path, *flags: str) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-c", PROGRAM, "m", *flags]
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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_says_where_it_listens_and_puts_the_engine_away(tmp_path: Path, number: signal.Signals) -> None:
    with served(tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("listening on http://127.0.0.1:")
        assert process.stdout.readline() == "model m\n"
        (keeper,) = children(process.pid)
        (engine,) = children(keeper)
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 0
    assert wait_for_end(engine, 0)
    assert "loadgen: stopping" in said
    assert "Traceback" not in said


def test_progress_shows_what_the_engine_says(tmp_path: Path) -> None:
    with served(tmp_path, "--timeout", "60", "--", "--never-listen", "--say", "loading 3 of 9") as process:
        assert process.stderr is not None
        assert any(line.endswith(" s: loading 3 of 9\n") for line in process.stderr)
        (keeper,) = children(process.pid)
        (engine,) = children(keeper)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 0
    assert wait_for_end(engine, 0)


def test_an_engine_that_ends_by_itself_is_an_error(tmp_path: Path) -> None:
    with served(tmp_path) as process:
        assert process.stdout is not None
        process.stdout.readline()
        (keeper,) = children(process.pid)
        os.kill(children(keeper)[0], signal.SIGKILL)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "fake: killed: killed by SIGKILL" in said


def test_a_dry_run_prints_command_environment_and_files(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["some/model", "--knob", "SOME_KNOB=a b", "--port", "8123", "--dry-run", "--", "--say", "a b"]
    assert foreground(Fake(), flags) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith(f"SOME_KNOB='a b' {sys.executable}")
    assert told[0].endswith("--port 8123 --model some/model --say 'a b'")
    assert told[1].endswith("private/config.json:")
    assert told[2] == "#   {}"


def test_a_shorthand_and_a_folder_stand_before_the_command() -> None:
    launch = Launch(("daemon",), "http://h:1", "m", folder=Path("/opt/a b"), shorthand=("mindie", "serve", "m"))
    assert shown(launch).splitlines() == ["# mindie serve m", "cd '/opt/a b'", "daemon"]


def test_knobs_are_json_or_words() -> None:
    seen: dict[str, object] = {}

    class Noting(Fake):
        def launch(self, model, knobs, raw, place):  # type: ignore[no-untyped-def]
            seen.update(knobs)
            return super().launch(model, knobs, raw, place)

    foreground(
        Noting(), ["m", "--dry-run", "--knob", "a=3", "--knob", "b=true", "--knob", "c=fp8", "--knob", 'd={"e":1}']
    )
    assert seen == {"a": 3, "b": True, "c": "fp8", "d": {"e": 1}}


def test_a_knob_without_a_value_is_refused() -> None:
    with pytest.raises(BadInput, match="--knob: 'max_seqs' names no value; write --knob NAME=VALUE"):
        foreground(Fake(), ["m", "--knob", "max_seqs"])


def test_an_engine_that_does_not_start_says_why(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(EngineError, match=r"fake: bad_flag: .*unrecognized arguments: --odd"):
        foreground(Fake(), ["m", "--", "--odd"])
    assert "loadgen: starting fake: " in capfd.readouterr().err


def test_serving_nothing_lists_the_engines(capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.serve([]) == 0
    assert "sim" in capsys.readouterr().out


def test_serving_an_unknown_engine_is_one_clear_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["serve", "sin"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("loadgen serve: ENGINE: there is no engine named 'sin'; use one of: ")
    assert "sim" in error


def test_serving_with_an_unusable_flag_is_one_clear_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.serve(["sim", "--max-num-seqs", "0"]) == 2
    assert capsys.readouterr().err == "error: --max-num-seqs: 0 is not a usable value; give 1 or more\n"
