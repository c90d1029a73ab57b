"""The simulator as an engine: how it is launched, and that it starts, stops and fails as any other does."""

import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import pytest

from loadgen import __version__
from loadgen.engines import EngineFailed, Launch, Launcher, Place
from loadgen.engines.sim import engine
from loadgen.errors import BadInput
from tests.engines.fakes import gone
from tests.engines.sim_client import FAST
from tests.engines.sim_server import simulated


def launch(knobs: Mapping[str, object], *raw: str) -> Launch:
    return engine.launch("some/model", knobs, raw, Place(20123, Path("/launch")))


def flag(launched: Launch, name: str) -> str:
    return launched.argv[launched.argv.index(name) + 1]


def test_its_launch_says_where_and_as_what_it_will_answer() -> None:
    launched = launch({"max_num_seqs": 3}, "--seed", "7")
    assert launched.base_url == "http://127.0.0.1:20123"
    assert launched.model == flag(launched, "--served-model-name") == "some/model"
    assert flag(launched, "--port") == "20123"
    assert flag(launched, "--max-num-seqs") == "3"
    assert launched.argv[-2:] == ("--seed", "7")
    assert launched.tokenizer is not None
    assert Path(launched.tokenizer).is_file()
    assert launched.template_tokens == int(flag(launched, "--chat-template-tokens"))


def test_common_names_of_knobs_mean_its_own() -> None:
    launched = launch({"context_len": 4096, "max_seqs": 3, "max_batched_tokens": 512})
    assert flag(launched, "--max-model-len") == "4096"
    assert flag(launched, "--max-num-seqs") == "3"
    assert flag(launched, "--max-num-batched-tokens") == "512"


@pytest.mark.parametrize(
    ("knobs", "field"),
    [
        ({"step_base_ms": 0.0}, "--step-base-ms"),
        ({"decode_us_per_seq": float("nan")}, "--decode-us-per-seq"),
        ({"max_num_batched_tokens": 100}, "--max-num-batched-tokens"),
        ({"num_kv_tokens": 1000}, "--num-kv-tokens"),
        ({"max_num_seqs": "many"}, "max_num_seqs"),
        ({"max_num_seqs": 3, "max_seqs": 3}, "max_seqs"),
        ({"tensor_parallel": 2}, "tensor_parallel"),
        ({"port": 1}, "port"),
    ],
)
def test_unusable_knobs_are_refused_before_anything_starts(knobs: dict[str, object], field: str) -> None:
    with pytest.raises(BadInput) as refused:
        launch(knobs)
    assert refused.value.field == field
    assert refused.value.remedy


def test_a_started_server_answers_and_a_stopped_one_is_gone() -> None:
    server = simulated("other", **FAST)
    with urllib.request.urlopen(server.base_url + "/health") as reply:
        assert reply.status == 200
    assert server.model == "other"
    assert server.version() == engine.version() == __version__
    server.stop()
    assert gone(server.pid)
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(server.base_url)


def test_a_server_stops_with_streams_open() -> None:
    with simulated(step_base_ms=1.0) as server:
        host, port = server.base_url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as client:
            body = b'{"messages":[{"content":"a"}],"ignore_eos":true,"stream":true}'
            client.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
            assert client.recv(1)
            server.stop()
    assert gone(server.pid)


@pytest.mark.parametrize(
    ("raw", "cause"),
    [(["--max-num-seqs", "0"], "--max-num-seqs: 0 is not a usable value"), (["--odd"], "unrecognized")],
)
def test_a_raw_flag_that_it_refuses_is_a_bad_flag(raw: list[str], cause: str) -> None:
    with pytest.raises(EngineFailed, match=cause) as failed:
        Launcher().start(engine, "sim", raw=raw)
    assert failed.value.crash.kind == "bad_flag"
    assert failed.value.crash.code == 2


def test_a_port_that_was_taken_meanwhile_is_port_in_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with pytest.raises(EngineFailed, match=rf"port_in_use: .*cannot listen on 127.0.0.1:{port}"):
            Launcher().start(engine, "sim", raw=["--port", port])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serving_in_the_foreground_says_where_and_ends_cleanly(number: signal.Signals) -> None:
    command = [sys.executable, "-P", "-m", "loadgen", "serve", "sim", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        process.send_signal(number)
        _, errors = process.communicate()
    assert lines[0].startswith("listening on http://127.0.0.1:")
    assert lines[1] == "model sim\n"
    assert lines[2].endswith("tokenizer.json\n")
    assert process.returncode == 0
    assert errors == ""
