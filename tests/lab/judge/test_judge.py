"""`loadgen judge` runs a tool that it does not know, here a client of a few lines, and reads the
truth from the bytes that the client got.
"""

import base64
import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from loadgen.cli.main import dispatch
from loadgen.lab.judge import judge, truth
from loadgen.lab.judge.cell import Cell, Judgement, kept, run
from loadgen.lab.judge.tool import Tool

pytestmark = pytest.mark.integration

# It takes each event with content for a token, whatever comes after; and keeps what it read.
CLIENT = """
import http.client, json, sys, time
host, count, tokens, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
total = ok = 0
with open(folder + "/read.jsonl", "w") as kept:
    for number in range(count):
        connection = http.client.HTTPConnection(host.removeprefix("http://"), timeout=20)
        body = {"model": "m", "stream": True, "max_tokens": tokens,
                "stream_options": {"include_usage": True},
                "messages": [{"role": "user", "content": f"prompt {number}"}]}
        connection.request("POST", "/v1/chat/completions", json.dumps(body))
        response = connection.getresponse()
        lines = []
        for line in response:
            lines.append([time.monotonic_ns(), line.decode()])
            total += '"content":" word"' in line.decode()
        ok += 1
        kept.write(json.dumps(lines) + "\\n")
        connection.close()
print(json.dumps({"ok": ok, "tokens": total}))
"""
TOOL = """
name: mine
begins: [mine.py]
flags: ["{url}", "{count}", "{output_tokens}", "{folder}"]
open: [--at, "{rate}"]
figures:
  completed: {path: [ok]}
  output_tokens: {path: [tokens]}
"""
CELL = Cell(
    tool="mine",
    case="abort",
    command="mine",
    exit_code=0,
    wall_s=1.0,
    says=(),
    scores=(),
    judgement=Judgement.RIGHT,
    key="of all",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the tool and its description, judged in three cases."""
    path = tmp_path_factory.mktemp("judge")
    (path / "mine.py").write_text(textwrap.dedent(CLIENT))
    (path / "mine.yaml").write_text(TOOL)
    assert call(path) == 1
    return path


def call(path: Path) -> int:
    cases = [word for name in ("no-usage", "abort", "cap") for word in ("--case", name)]
    words = [sys.executable, str(path / "mine.py")]
    where = ["--tool", str(path / "mine.yaml"), "--folder", str(path / "cells")]
    return dispatch(["judge", *cases, *where, *words])


def test_a_strangers_tool_is_right_wrong_or_cannot_be_asked(folder: Path) -> None:
    cells = judge.read(folder / "cells")
    assert cells["no-usage"].judgement is Judgement.RIGHT
    assert cells["abort"].judgement is Judgement.WRONG_SILENT
    wrong = {score.figure: (score.printed, score.low) for score in cells["abort"].scores}
    assert wrong["completed"] == (10, 5)
    assert wrong["output_tokens"] == (125, 100)
    assert cells["cap"].judgement is Judgement.NOT_ASKED  # it has no such load


def test_a_cell_is_kept_and_not_run_again(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = folder / "cells" / "abort" / "cell.json"
    before = file.stat().st_mtime_ns
    assert call(folder) == 1
    assert file.stat().st_mtime_ns == before
    assert "abort                      wrong, silent" in capsys.readouterr().out


def test_a_cell_is_run_again_if_the_program_has_changed(tmp_path: Path) -> None:
    (tmp_path / "cell.json").write_bytes(msgspec.json.encode(CELL))
    program = tmp_path / "mine.py"
    program.write_text("")
    os.utime(program, (0, 0))
    assert kept(tmp_path, CELL.key, [sys.executable, str(program)]) == CELL
    os.utime(program)
    assert kept(tmp_path, CELL.key, [sys.executable, str(program)]) is None
    assert kept(tmp_path, "another", [sys.executable]) is None


def test_a_tool_that_fails_at_the_sound_server_is_not_run_further(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--tool", str(folder / "mine.yaml"), "--folder", str(tmp_path), "--case", "abort"]
    assert dispatch(["judge", *words, sys.executable, "-c", "raise SystemExit(7)"]) == 1
    said = capsys.readouterr().out
    assert "the other cases are not run: correct the tool, its file or the command" in said
    assert "exit code 7, no request came to the server" in said
    assert [*judge.read(tmp_path)] == ["steady"]


def test_figures_that_are_not_found_at_the_sound_server_are_named(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = tmp_path / "mine.yaml"
    wrong.write_text(TOOL.replace("[tokens]", "[token]"))
    words = ["--tool", str(wrong), "--folder", str(tmp_path / "cells"), "--case", "steady"]
    dispatch(["judge", *words, sys.executable, str(folder / "mine.py")])
    assert "not found: output_tokens" in capsys.readouterr().out


def test_the_log_has_the_bytes_that_the_client_got_and_no_later_times(folder: Path) -> None:
    place = folder / "cells" / "no-usage" / "round-1"
    log = [json.loads(line) for line in (place / "server.jsonl").read_text().splitlines()]
    read = [json.loads(line) for line in (place / "written/read.jsonl").read_text().splitlines()]
    for number, lines in enumerate(read):
        written = [line for line in log if line.get("answer") == number and "bytes" in line]
        chunks = b"".join(base64.b64decode(line["bytes"]) for line in written)
        events = [text for _, text in lines if text.startswith("data:")]
        assert events == [text + "\n" for text in unchunked(chunks).splitlines() if text]
        shown = [line["t_ns"] for line in written if line["tokens"]]
        came = [at for at, text in lines if '"content":" word"' in text]
        assert len(shown) == len(came) == 20
        assert all(sent <= got for sent, got in zip(shown, came, strict=True))


def unchunked(data: bytes) -> str:
    _, _, rest = data.partition(b"\r\n\r\n")
    body = b""
    while rest and (size := int(rest.partition(b"\r\n")[0], 16)):
        rest = rest.partition(b"\r\n")[2]
        body, rest = body + rest[:size], rest[size + 2 :]
    return body.decode()


def test_the_truth_of_a_log_is_what_its_client_counted(folder: Path) -> None:
    requests = truth.read(folder / "cells" / "no-usage" / "round-1" / "server.jsonl")
    assert [served.shown for served in requests] == [20] * 10
    figures = truth.true_figures(requests)
    assert figures["completed"] == truth.Range(10, 10)
    assert figures["input_tokens"] == truth.Range.of(sum(s.line["prompt_tokens"] for s in requests))


def test_the_list_names_each_case_with_its_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["judge", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= 60
    assert any("abort" in line and "vllm#57082" in line for line in lines)


def test_without_a_command_nothing_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["judge"]) == 2
    assert "write, for example, loadgen judge vllm bench serve" in capsys.readouterr().err


def test_a_program_that_cannot_be_executed_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dispatch(["judge", str(folder / "mine.py")]) == 2
    said = capsys.readouterr().err
    assert "mine.py' cannot be executed; make it executable, or write its interpreter" in said


def test_a_program_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["judge", "/no/such/loadgen", "run"]) == 2
    assert "there is no program '/no/such/loadgen'; install the tool" in capsys.readouterr().err


def test_flags_behind_the_command_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["judge", "loadgen", "run", "--case", "rate-20"]) == 2
    assert "--case stands behind the command of the tool; put --case before loadgen" in (
        capsys.readouterr().err
    )


def test_a_file_is_no_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(folder / "mine.py")
    words = ["--tool", str(folder / "mine.yaml"), "--folder", file, sys.executable]
    assert dispatch(["judge", *words]) == 2
    assert f"--folder: {file} is a file; name a folder, or a new one" in capsys.readouterr().err


@contextlib.contextmanager
def judging(folder: Path, name: str) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """`loadgen judge` while its tool sleeps, and its children: the server and the tool."""
    slow = folder / "slow.py"
    slow.write_text("import time; print('begun', flush=True); time.sleep(60)")
    cells = folder / name
    command = [sys.executable, "-m", "loadgen", "judge", "--tool", str(folder / "mine.yaml")]
    command += ["--folder", str(cells), "--case", "steady", sys.executable, str(slow)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        while not any(file.read_text() for file in cells.glob("*/round-1/output.txt")):
            time.sleep(0.05)
        yield process, children(process.pid)


def test_sigterm_ends_the_server_too(folder: Path) -> None:
    with judging(folder, "ended") as (process, started):
        process.terminate()
        _, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (130, "loadgen judge: interrupted\n")
    assert not [pid for pid in started if Path(f"/proc/{pid}").exists()]


def test_a_server_ends_with_a_command_that_is_killed(folder: Path) -> None:
    with judging(folder, "killed") as (process, (server, tool)):
        process.kill()
        process.wait(timeout=30)
        try:
            deadline_s = time.monotonic() + 10
            while Path(f"/proc/{server}").exists() and time.monotonic() < deadline_s:
                time.sleep(0.05)
            assert not Path(f"/proc/{server}").exists()
        finally:
            os.kill(tool, signal.SIGKILL)


def children(pid: int) -> list[int]:
    return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


@pytest.mark.parametrize(
    ("rest", "limit_s", "ended"), [("0", 20, 0), ("time.sleep(60)", 0.2, None)]
)
def test_a_limit_begins_with_the_first_request(
    tmp_path: Path, rest: str, limit_s: float, ended: int | None
) -> None:
    log = tmp_path / "server.jsonl"
    log.write_bytes(b"")
    code = f"import time; time.sleep(0.4); open({str(log)!r}, 'w').write('\"request\":'); {rest}"
    began_s = time.monotonic()
    with (tmp_path / "output.txt").open("w") as output:
        command = [sys.executable, "-c", code]
        tool = Tool("t", ["t"], [], {})
        assert run(command, tool, output.fileno(), limit_s, lambda _: None, log) == ended
    assert log.read_bytes()
    assert time.monotonic() - began_s > 0.4
