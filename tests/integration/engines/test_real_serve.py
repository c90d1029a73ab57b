"""`loadgen serve llamacpp FILE.gguf` as a user calls it, with valid and invalid arguments."""

import signal
import socket

import pytest

from loadgen.engines.launch import ports
from loadgen.util.http_client import request
from tests.helpers.command_line import loadgen, start
from tests.helpers.real_llamacpp import gguf, real

pytestmark = real()


def test_llamacpp_serves_until_ctrl_c_and_frees_its_port() -> None:
    server = start(
        "serve",
        "llamacpp",
        gguf(),
        "--max-seqs",
        "2",
        "--context-len",
        "512",
        "--",
        "--threads",
        "1",
    )
    try:
        assert server.stdout is not None
        url = server.stdout.readline().removeprefix("listening on ").strip()
        told = request(f"{url}/props").json()
        assert (told["total_slots"], told["default_generation_settings"]["n_ctx"]) == (2, 512)
        server.send_signal(signal.SIGINT)
        _, said = server.communicate(timeout=60)
    finally:
        server.kill()
        server.communicate()
    assert server.returncode == 0, said
    assert ports.is_free("127.0.0.1", int(url.rpartition(":")[2]))


@pytest.mark.parametrize(
    ("model", "raw", "line"),
    [
        (
            "/nowhere/m.gguf",
            [],
            "model_missing: error: --model: /nowhere/m.gguf is not a file; give the path",
        ),
        (__file__, [], "bad_checkpoint: gguf_init_from_reader: invalid magic characters"),
        (
            None,
            ["--odd"],
            "bad_flag: loadgen.engines.llamacpp_server: error: unrecognized arguments: --odd",
        ),
    ],
)
def test_invalid_engine_options_are_named_in_one_line(
    model: str | None, raw: list[str], line: str
) -> None:
    done = loadgen("serve", "llamacpp", model or gguf(), "--", *raw, timeout_s=120)
    assert done.returncode == 1
    (told,) = (said for said in done.stderr.splitlines() if said.startswith("loadgen serve: "))
    assert told.startswith(f"loadgen serve: llamacpp: {line}")
    assert "Traceback" not in done.stderr


def test_taken_port_is_refused_before_the_start() -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        port = stranger.getsockname()[1]
        done = loadgen("serve", "llamacpp", gguf(), "--port", str(port))
    assert done.returncode == 2
    assert done.stderr.startswith(f"loadgen serve: --port: {port} is taken by process ")
    assert done.stderr.count("\n") == 1
