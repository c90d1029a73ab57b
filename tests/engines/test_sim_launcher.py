"""Starting and stopping: quickly, with a reason when it fails, and nothing left behind."""

import os
import select
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from loadgen.engines import commands
from loadgen.engines.launcher import launch
from loadgen.engines.sim import engine
from loadgen.errors import BadInput, EngineError


def gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def wait_for_end(pid_fd: int, timeout_s: float = 10.0) -> bool:
    """Whether the process behind the descriptor has ended in time."""
    poll = select.poll()
    poll.register(pid_fd, select.POLLIN)
    return bool(poll.poll(timeout_s * 1000))


def python(source: str) -> list[str]:
    return [sys.executable, "-P", "-c", source]


def test_a_started_server_answers_and_a_stopped_one_is_gone() -> None:
    server = engine.start()
    assert server.alive()
    with urllib.request.urlopen(server.base_url + "/health") as reply:
        assert reply.status == 200
    assert Path(server.tokenizer).is_file()
    server.stop()
    server.stop()
    assert not server.alive()
    assert gone(server.pid)
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(server.base_url)


def test_beginning_does_not_wait_for_readiness() -> None:
    server = engine.begin(served_model_name="other")
    try:
        assert "starting" in repr(server)
        assert server.ready() == server.base_url
        assert server.model == "other"
        assert server.base_url in repr(server)
    finally:
        server.stop()
    assert "stopped" in repr(server)


def test_a_server_is_a_context_manager() -> None:
    with engine.begin() as server:
        assert server.base_url.startswith("http://127.0.0.1:")
    assert gone(server.pid)


def test_a_server_stops_with_streams_open() -> None:
    with engine.begin(step_base_ms=1.0) as server:
        host, port = server.base_url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as client:
            body = b'{"messages":[{"content":"a"}],"ignore_eos":true,"stream":true}'
            client.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
            assert client.recv(1)
            server.stop()
    assert gone(server.pid)


def test_a_port_in_use_is_named_in_the_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(EngineError, match=rf"code 1.*cannot listen on 127.0.0.1:{port}.*in use"):
            engine.start(port=port)


def test_an_unknown_knob_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BadInput, match=r"max_seqs: .* no such knob.*max_num_seqs"):
        engine.begin(max_seqs=3)


@pytest.mark.parametrize(
    ("knobs", "field"),
    [
        ({"step_base_ms": 0.0}, "--step-base-ms"),
        ({"decode_us_per_seq": float("nan")}, "--decode-us-per-seq"),
        ({"port": 70000}, "--port"),
        ({"max_num_batched_tokens": 100}, "--max-num-batched-tokens"),
        ({"num_kv_tokens": 1000}, "--num-kv-tokens"),
    ],
)
def test_unusable_knobs_are_refused_before_anything_starts(knobs: dict[str, float], field: str) -> None:
    with pytest.raises(BadInput) as refused:
        engine.begin(**knobs)
    assert refused.value.field == field
    assert refused.value.remedy


def test_a_process_that_ends_at_start_shows_its_last_words() -> None:
    server = launch("odd", python("raise SystemExit('no such device')"), model="m", tokenizer="t")
    with pytest.raises(EngineError, match="odd: ended at start with code 1; its last words: no such device"):
        server.ready()
    assert gone(server.pid)


def test_a_process_that_says_something_else_is_stopped() -> None:
    server = launch("odd", python("import time; print('hello', flush=True); time.sleep(60)"), model="m", tokenizer="t")
    with pytest.raises(EngineError, match="printed b'hello'"):
        server.ready()
    assert gone(server.pid)


def test_a_process_that_never_listens_is_stopped_at_the_deadline() -> None:
    server = launch("odd", python("import time; time.sleep(60)"), model="m", tokenizer="t")
    with pytest.raises(EngineError, match="did not listen in time"):
        server.ready(timeout_s=0.1)
    assert gone(server.pid)


def test_a_process_that_ignores_sigterm_is_killed_with_its_children() -> None:
    source = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = os.fork()\n"
        "if child: print(f'listening on http://{child}', flush=True)\n"
        "time.sleep(60)\n"
    )
    server = launch("odd", python(source), model="m", tokenizer="t")
    child_fd = os.pidfd_open(int(server.base_url.removeprefix("http://")))
    server.stop(grace_s=0.1)
    assert gone(server.pid)
    assert wait_for_end(child_fd)
    os.close(child_fd)


def test_a_command_that_does_not_exist_is_named() -> None:
    with pytest.raises(EngineError, match="cannot run /nowhere/engine: No such file"):
        launch("odd", ["/nowhere/engine"], model="m", tokenizer="t")


def test_a_killed_parent_leaves_no_server_behind() -> None:
    source = (
        "import time\n"
        "from loadgen.engines.sim import engine\n"
        "server = engine.start()\n"
        "print(server.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen(python(source), stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        server_fd = os.pidfd_open(int(parent.stdout.readline()))
        parent.kill()
    assert wait_for_end(server_fd)
    os.close(server_fd)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serving_in_the_foreground_says_where_and_ends_cleanly(number: signal.Signals) -> None:
    source = "import sys; from loadgen.engines.commands import serve; sys.exit(serve(['sim', '--port', '0']))"
    with subprocess.Popen(python(source), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        process.send_signal(number)
        _, errors = process.communicate()
    assert lines[0].startswith("listening on http://127.0.0.1:")
    assert lines[1] == "model sim\n"
    assert lines[2].endswith("tokenizer.json\n")
    assert process.returncode == 0
    assert errors == ""


def test_serving_nothing_lists_the_engines(capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.serve([]) == 0
    assert "sim" in capsys.readouterr().out


def test_serving_an_unknown_engine_is_one_clear_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.serve(["sin"]) == 2
    assert capsys.readouterr().err == "error: serve: there is no engine named 'sin'; use one of: sim\n"


def test_serving_with_an_unusable_flag_is_one_clear_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.serve(["sim", "--max-num-seqs", "0"]) == 2
    assert capsys.readouterr().err == "error: --max-num-seqs: 0 is not a usable value; give 1 or more\n"
