"""llama.cpp: the binary or the Python package, with the same flags."""

import importlib
import importlib.util
import os
import signal
import sys
from pathlib import Path

import pytest

from loadgen.engines import Launcher
from loadgen.engines.kinds.engine import Launch
from loadgen.engines.kinds.llamacpp import RUNNER, engine
from loadgen.engines.llamacpp_server import main, params, parser
from loadgen.errors import BadInput
from loadgen.util.http_client import request
from tests.helpers.engine_launch import launch
from tests.helpers.real_llamacpp import RAW, gguf, real

MODEL = "/models/tiny.gguf"


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
    assert (launched.model, launched.tokenizer) == ("tiny", "/models/tiny.gguf")
    assert launch(engine, model="ggml-org/tiny-GGUF").argv[:3] == (
        "llama-server",
        "-hf",
        "ggml-org/tiny-GGUF",
    )


@pytest.mark.usefixtures("without_binary")
def test_package_serves_if_binary_is_missing() -> None:
    launched = launch(engine, model=MODEL, max_seqs=2)
    assert launched.argv[: len(RUNNER)] == RUNNER
    assert (
        " ".join(flags(launched))
        == f"-m {MODEL} --parallel 2 --metrics --host 127.0.0.1 --port 8001 --alias tiny"
    )
    assert launched.shorthand == ("llama-server", "-m", MODEL, "--parallel", "2")


@pytest.mark.usefixtures("without_binary")
def test_package_opens_files_and_does_not_download() -> None:
    with pytest.raises(
        BadInput,
        match="model: 'ggml-org/tiny-GGUF' is not a file, and llama-server is not installed",
    ):
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


@pytest.mark.skipif(not importlib.util.find_spec("xllamacpp"), reason="xllamacpp is not installed")
@pytest.mark.parametrize(
    ("raw", "embeds", "pooling"),
    [
        ("", False, "UNSPECIFIED"),
        ("--embedding", True, "UNSPECIFIED"),
        ("--embeddings --pooling mean", True, "MEAN"),
        ("--reranking", True, "RANK"),
    ],
)
def test_the_package_embeds_and_scores_as_asked(raw: str, embeds: bool, pooling: str) -> None:
    given = parser().parse_args(["--model", MODEL, "--port", "1", *raw.split()])
    found = params(given, importlib.import_module("xllamacpp"))
    assert (found.embedding, found.pooling_type.name) == (embeds, f"LLAMA_POOLING_TYPE_{pooling}")


def test_a_draft_without_a_model_is_refused() -> None:
    with pytest.raises(BadInput, match=r"speculative\.model: is missing"):
        launch(
            engine, model=MODEL, speculative={"method": "draft_model", "num_speculative_tokens": 2}
        )


@pytest.mark.skipif(not importlib.util.find_spec("xllamacpp"), reason="xllamacpp is not installed")
def test_a_model_that_is_no_file_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--model", "/none.gguf", "--port", "1"]) == 2
    assert (
        capsys.readouterr().err
        == "error: --model: /none.gguf is not a file; give the path of a .gguf file\n"
    )


def test_a_missing_package_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    assert main(["--model", "/none.gguf", "--port", "1"]) == 2
    assert "pip install xllamacpp" in capsys.readouterr().err


@pytest.mark.usefixtures("without_binary")
class TestReal:
    """The package's server, as the launcher starts it."""

    pytestmark = real()

    @pytest.mark.integration
    def test_llamacpp_applies_its_knobs(self) -> None:
        knobs = {
            "served_name": "small",
            "context_len": 512,
            "max_seqs": 2,
            "attention_backend": "on",
        }
        with Launcher().start(
            engine, gguf(), knobs | {"kv_dtype": "q8_0"}, [*RAW, "--no-warmup"]
        ) as server:
            resolved = server.resolved()
            assert resolved["total_slots"] == 2
            assert resolved["default_generation_settings"]["n_ctx"] == 512
            models = request(f"{server.base_url}/v1/models").json()
            assert [item["id"] for item in models["data"]] == ["small"]
            for path in (engine.probes.health, engine.probes.metrics):
                assert request(f"{server.base_url}{path}").status == 200
            os.kill(server.pid, signal.SIGTERM)
            assert server.wait_ended(60)
            assert "exit code 0" in str(server.trouble())
