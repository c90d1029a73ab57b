"""Starting, stopping and failing with a real engine, llama.cpp's server."""

import json
import os
import signal
import socket
from pathlib import Path

import pytest

from loadgen.engines import EngineFailed, Server
from tests.helpers.command_line import loadgen
from tests.helpers.fake_engine import a_stranger_who_is_faster, gone
from tests.helpers.real_llamacpp import MODEL, real, started
from tests.helpers.real_tokenizers import kept_folder, smollm2

pytestmark = real("gguf")


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def stream_of(server: Server) -> socket.socket:
    """A long answer of which the first bytes have come."""
    host, port = server.base_url.removeprefix("http://").split(":")
    client = socket.create_connection((host, int(port)))
    asked = {
        "model": MODEL,
        "prompt": "Once",
        "max_tokens": 2000,
        "stream": True,
        "ignore_eos": True,
    }
    body = json.dumps(asked).encode()
    client.sendall(
        b"POST /v1/completions HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%b"
        % (len(body), body)
    )
    client.settimeout(100)
    said = b""
    while b"data: " not in said:
        said += client.recv(65536)
        assert b" 200 OK" in said, said
    return client


def test_llamacpp_serves_a_load_and_reports_its_settings(request: pytest.FixtureRequest) -> None:
    tokenizer = str(smollm2(kept_folder(request.config)))
    with started() as server:
        assert server.resolved()["total_slots"] == 4
        assert server.differences() == []
        flags = [
            "--base-url",
            server.base_url,
            "--backend",
            "openai",
            "--tokenizer",
            tokenizer,
            "--num-prompts",
            "4",
        ]
        flags += [
            "--random-input-len",
            "8",
            "--random-output-len",
            "4",
            "--ignore-eos",
            "--max-concurrency",
            "2",
        ]
        done = loadgen("run", *flags, timeout_s=300)
        assert done.returncode == 0, done.stderr
        assert server.trouble() is None
    assert gone(server.pid)


@pytest.mark.parametrize("state", ["idle", "streaming", "stopped"])
def test_llamacpp_stops_in_every_state_without_survivors(state: str) -> None:
    for _ in range(3):
        server = started()
        client = stream_of(server) if state == "streaming" else None
        if state == "stopped":
            os.kill(server.pid, signal.SIGSTOP)
        server.stop(grace_s=2.0)  # raises where anything is left
        assert gone(server.pid)
        if client is not None:
            client.close()


@pytest.mark.parametrize(
    ("model", "kind"), [("/nowhere/m.gguf", "model_missing"), (__file__, "bad_checkpoint")]
)
def test_a_model_that_cannot_be_loaded_is_named(model: str, kind: str) -> None:
    with pytest.raises(EngineFailed) as failed:
        started(model)
    assert failed.value.crash.kind == kind
    assert not failed.value.crash.transient


def test_a_port_that_a_stranger_has_is_port_in_use() -> None:
    failed = pytest.raises(EngineFailed, match=r"port_in_use: .*couldn't bind HTTP server socket")
    with a_stranger_who_is_faster(), failed:
        started()


def test_killed_server_is_reported_as_killed() -> None:
    with started() as server:
        os.kill(server.pid, signal.SIGKILL)
        assert server.wait_ended(20)
        trouble = server.trouble()
    assert trouble is not None
    assert trouble.crash.kind == "killed"
