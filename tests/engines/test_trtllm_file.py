"""TensorRT-LLM's options file silently overrides the flags, so no setting may be in both."""

from pathlib import Path

import pytest
import yaml

from loadgen.engines.kinds.trtllm import engine
from loadgen.errors import BadInput
from tests.helpers.engine_launch import FOLDER, launch

FILE = "--extra_llm_api_options"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text("cuda_graph_config: {max_batch_size: 64}\nkv_cache_config: {dtype: fp8}\n")
    return path


@pytest.mark.parametrize("flag", [FILE, "--config"])
def test_the_users_file_is_merged_with_the_entries_of_knobs(own: Path, flag: str) -> None:
    launched = launch(
        engine, flag, str(own), "--max_beam_width", "2", prefix_cache=False, max_seqs=8
    )
    target = FOLDER / "extra_llm_api_options.yaml"
    assert yaml.safe_load(launched.files[target]) == {
        "cuda_graph_config": {"max_batch_size": 64},
        "kv_cache_config": {"dtype": "fp8", "enable_block_reuse": False},
    }
    assert launched.shorthand[2:] == (
        "--max_batch_size",
        "8",
        "--max_beam_width",
        "2",
        FILE,
        str(target),
    )


def test_users_file_is_passed_on_if_no_knob_needs_a_file(own: Path) -> None:
    launched = launch(engine, f"{FILE}={own}", max_seqs=8)
    assert launched.files == {}
    assert launched.shorthand[2:] == ("--max_batch_size", "8", f"{FILE}={own}")


@pytest.mark.parametrize(
    ("text", "knobs", "problem"),
    [
        (
            "kv_cache_config: {dtype: fp8}",
            {"kv_dtype": "fp8"},
            "the knob kv_dtype both set kv_cache_config.dtype",
        ),
        ("max_batch_size: 4", {"max_seqs": 8}, "the knob max_seqs both set max_batch_size"),
        (
            "tensor_parallel_size: 4",
            {"tensor_parallel": 4},
            "the knob tensor_parallel both set tensor_parallel_size",
        ),
        ("kv_cache_config: 3", {"prefix_cache": True}, "kv_cache_config is not a mapping"),
        ("- 1", {}, "is not a mapping"),
        ("a: [", {}, "cannot be read as YAML"),
    ],
)
def test_file_that_repeats_a_knob_or_is_invalid_is_refused(
    text: str, knobs: dict[str, object], problem: str, tmp_path: Path
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(BadInput, match=problem) as refused:
        launch(engine, FILE, str(path), **knobs)
    assert refused.value.field == FILE


@pytest.mark.parametrize(
    "raw", [[FILE], [FILE, "--seed"], [FILE, "a.yaml", "--config", "b.yaml"], [FILE, "/none"]]
)
def test_a_flag_that_names_no_file_is_refused(raw: list[str]) -> None:
    with pytest.raises(BadInput):
        launch(engine, *raw)


def test_memory_share_overridden_by_file_is_refused() -> None:
    with pytest.raises(BadInput, match="the file's kv_cache_config would override it"):
        launch(engine, "--free_gpu_memory_fraction", "0.8", prefix_cache=False)


def test_attention_is_copied_to_all_accelerators_or_none() -> None:
    with pytest.raises(
        BadInput,
        match="attention_data_parallel: 2 copies in a group of 8; give 1 or tensor_parallel's 8",
    ):
        launch(engine, tensor_parallel=8, attention_data_parallel=2)


def test_an_empty_file_is_one(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("# nothing yet\n")
    assert "attn_backend: FLASHINFER" in "".join(
        launch(engine, FILE, str(path), attention_backend="FLASHINFER").files.values()
    )
