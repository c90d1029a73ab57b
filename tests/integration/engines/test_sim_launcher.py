"""The simulator as an engine: how it is launched, started and stopped, and how it fails."""

import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from loadgen import __version__
from loadgen.engines import Launch, Launcher, Place
from loadgen.engines.kinds import vllm
from loadgen.engines.kinds.simulator import engine
from loadgen.engines.sim.settings import SimSettings, given, parser
from loadgen.errors import BadInput
from tests.helpers.fake_engine import gone
from tests.helpers.raw_client import FAST
from tests.helpers.sim_server import simulated


def launch(*raw: str, **knobs: object) -> Launch:
    return engine.launch("some/model", knobs, raw, Place(20123, Path("/launch")))


def flag(launched: Launch, name: str) -> str:
    return launched.argv[launched.argv.index(name) + 1]


def test_its_launch_says_where_and_as_what_it_will_answer() -> None:
    launched = launch("--seed", "7", max_seqs=3)
    assert launched.base_url == "http://127.0.0.1:20123"
    assert launched.model == flag(launched, "--served-model-name") == "some/model"
    assert flag(launched, "--port") == "20123"
    assert flag(launched, "--max-num-seqs") == "3"
    assert flag(launched, "--seed") == "7"
    assert launched.tokenizer is not None
    assert Path(launched.tokenizer).is_file()


def test_an_ipv6_address_stands_in_brackets_in_its_url() -> None:
    assert (
        engine.launch("m", {}, (), Place(20123, Path("/launch"), "::1")).base_url
        == "http://[::1]:20123"
    )


@pytest.mark.parametrize(
    ("raw", "tokens"),
    [((), 0), (("--chat-template-tokens", "4"), 4), (("--chat-template-tokens=5",), 5)],
)
def test_template_tokens_of_the_launch_are_known(raw: tuple[str, ...], tokens: int) -> None:
    assert launch(*raw).template_tokens == tokens


def test_supported_knobs_use_vllm_flags() -> None:
    assert engine.knobs().keys() == vllm.engine.knobs().keys() - {
        "expert_parallel",
        "attention_data_parallel",
        "attention_backend",
        "speculative",
        "reasoning_parser",
        "performance_mode",
    }
    assert all(vllm.engine.knobs()[name] == own for name, own in engine.knobs().items())


def test_its_process_knows_every_word_that_its_launch_may_say() -> None:
    knobs = {
        "tensor_parallel": 2,
        "pipeline_parallel": 2,
        "data_parallel": 2,
        "context_len": 4096,
        "max_seqs": 3,
    }
    knobs |= {
        "max_batched_tokens": 8192,
        "chunked_prefill": False,
        "prefix_cache": False,
        "quantization": "fp8",
    }
    more: dict[str, object] = {"kv_dtype": "fp8", "memory_fraction": 0.8, "served_name": "m"}
    assert (knobs | more).keys() == engine.knobs().keys()
    words = launch("--profile", "h100-qwen3-8b", **knobs, **more).argv
    flags = parser().parse_args(words[words.index("loadgen.engines.sim") + 1 :])
    settings = SimSettings.of(**given(flags, SimSettings))
    assert (flags.model, settings.served_model_name, settings.port) == ("some/model", "m", 20123)
    assert (
        settings.tensor_parallel_size,
        settings.pipeline_parallel_size,
        settings.data_parallel_size,
    ) == (2, 2, 2)
    assert (settings.max_model_len, settings.max_num_seqs, settings.max_num_batched_tokens) == (
        4096,
        3,
        8192,
    )
    assert not settings.enable_chunked_prefill
    assert not settings.enable_prefix_caching
    assert (settings.quantization, settings.kv_cache_dtype, settings.gpu_memory_utilization) == (
        "fp8",
        "fp8",
        0.8,
    )


@pytest.mark.parametrize(
    ("knobs", "raw", "field"),
    [
        ({"max_seqs": "many"}, (), "max_seqs"),
        ({"max_seqs": 3}, ("--max-num-seqs", "3"), "--max-num-seqs"),
        ({"tensor_parallel": 2}, ("-tp", "2"), "--tensor-parallel-size"),
        ({"attention_backend": "x"}, (), "attention_backend"),
        ({}, ("--port", "1"), "--port"),
        ({"port": 1}, (), "port"),
    ],
)
def test_unusable_knobs_are_refused_before_anything_starts(
    knobs: dict[str, object], raw: tuple[str, ...], field: str
) -> None:
    with pytest.raises(BadInput) as refused:
        launch(*raw, **knobs)
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
            client.sendall(
                b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b"
                % (len(body), body)
            )
            assert client.recv(1)
            server.stop()
    assert gone(server.pid)


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        (["--max-num-seqs", "0"], "--max-num-seqs: 0 is out of range; give 1 or more"),
        (["--max-num-seqs", "many"], "--max-num-seqs: 'many' is not a whole number; write "),
        (["--odd"], "--odd: unknown; see `"),
    ],
)
def test_a_raw_flag_that_it_refuses_is_refused_before_it_starts(raw: list[str], line: str) -> None:
    with pytest.raises(BadInput) as refused:
        Launcher().begin(engine, "sim", raw=raw)
    assert str(refused.value).startswith(line)
    command = [sys.executable, "-P", "-m", "loadgen.engines.sim", *raw]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (process.returncode, process.stderr.startswith(f"error: {line}")) == (2, True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_its_process_says_where_it_listens_and_ends_cleanly(number: signal.Signals) -> None:
    command = [sys.executable, "-P", "-m", "loadgen.engines.sim", "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        process.send_signal(number)
        _, errors = process.communicate()
    assert lines[0].startswith("listening on http://127.0.0.1:")
    assert lines[1] == "model sim\n"
    assert lines[2].endswith("tokenizer.json\n")
    assert process.returncode == 0
    assert errors == ""
