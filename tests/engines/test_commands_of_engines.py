"""Each knob of each engine, as the words, entries and variables of its launch."""

from dataclasses import replace
from typing import Any

import pytest
import yaml

from loadgen.engines.kinds import llamacpp, mindie, sglang, transformers_serve, trtllm, vllm
from loadgen.engines.kinds.engine import CommandEngine, Place
from loadgen.errors import BadInput
from tests.helpers.engine_launch import FOLDER, MODEL, PLACE, launch, said

MTP = {"method": "mtp", "num_speculative_tokens": 3}
DRAFT = {"method": "draft_model", "num_speculative_tokens": 5, "model": "/models/draft.gguf"}

VLLM = [
    ({"served_name": "mine"}, "--served-model-name mine"),
    ({"tensor_parallel": 4}, "--tensor-parallel-size 4"),
    ({"pipeline_parallel": 2}, "--pipeline-parallel-size 2"),
    ({"data_parallel": 2}, "--data-parallel-size 2"),
    (
        {"tensor_parallel": 8, "attention_data_parallel": 4},
        "--tensor-parallel-size 2 --data-parallel-size 4",
    ),
    ({"expert_parallel": True}, "--enable-expert-parallel"),
    ({"expert_parallel": False}, "--no-enable-expert-parallel"),
    ({"context_len": 32768}, "--max-model-len 32768"),
    ({"max_batched_tokens": 8192}, "--max-num-batched-tokens 8192"),
    ({"max_seqs": 512}, "--max-num-seqs 512"),
    ({"chunked_prefill": True}, "--enable-chunked-prefill"),
    ({"chunked_prefill": False}, "--no-enable-chunked-prefill"),
    ({"prefix_cache": True}, "--enable-prefix-caching"),
    ({"prefix_cache": False}, "--no-enable-prefix-caching"),
    ({"quantization": "fp8"}, "--quantization fp8"),
    ({"kv_dtype": "fp8"}, "--kv-cache-dtype fp8"),
    ({"attention_backend": "FLASHINFER"}, "--attention-backend FLASHINFER"),
    ({"speculative": MTP}, '--speculative-config {"method":"mtp","num_speculative_tokens":3}'),
    ({"memory_fraction": 0.85}, "--gpu-memory-utilization 0.85"),
    ({"reasoning_parser": "qwen3"}, "--reasoning-parser qwen3"),
    ({"performance_mode": "throughput"}, "--performance-mode throughput"),
]
SGLANG = [
    ({"served_name": "mine"}, "--served-model-name mine"),
    ({"tensor_parallel": 4}, "--tp-size 4"),
    ({"pipeline_parallel": 2}, "--pp-size 2"),
    ({"data_parallel": 2}, "--dp-size 2"),
    ({"tensor_parallel": 8, "attention_data_parallel": 4}, "--tp-size 8 --attn-dp-size 4"),
    ({"tensor_parallel": 8, "expert_parallel": True}, "--tp-size 8 --ep-size 8"),
    ({"expert_parallel": False}, ""),
    ({"context_len": 32768}, "--context-length 32768"),
    ({"max_batched_tokens": 8192}, "--chunked-prefill-size 8192 --max-prefill-tokens 8192"),
    (
        {"max_batched_tokens": 8192, "chunked_prefill": False},
        "--max-prefill-tokens 8192 --chunked-prefill-size -1",
    ),
    ({"max_seqs": 512}, "--max-running-requests 512"),
    ({"chunked_prefill": True}, ""),
    ({"chunked_prefill": False}, "--chunked-prefill-size -1"),
    ({"prefix_cache": True}, ""),
    ({"prefix_cache": False}, "--disable-radix-cache"),
    ({"quantization": "fp8"}, "--quantization fp8"),
    ({"kv_dtype": "fp8_e4m3"}, "--kv-cache-dtype fp8_e4m3"),
    ({"attention_backend": "fa3"}, "--attention-backend fa3"),
    (
        {"speculative": {**MTP, "method": "eagle3", "model": "org/draft"}},
        "--speculative-algorithm EAGLE3 --speculative-draft-model-path org/draft "
        "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
    ),
    (
        {"speculative": {**MTP, "method": "ngram"}},
        "--speculative-algorithm NGRAM --speculative-num-draft-tokens 4",
    ),
    ({"memory_fraction": 0.85}, "--mem-fraction-static 0.85"),
    ({"reasoning_parser": "qwen3"}, "--reasoning-parser qwen3"),
]
LLAMACPP = [
    ({"served_name": "mine"}, "--alias mine"),
    ({"context_len": 4096}, "--ctx-size 16384 --parallel 4"),
    ({"context_len": 4096, "max_seqs": 8}, "--ctx-size 32768 --parallel 8"),
    ({"max_batched_tokens": 512}, "--batch-size 512 --ubatch-size 512"),
    ({"max_seqs": 8}, "--parallel 8"),
    ({"prefix_cache": True}, "--cache-prompt"),
    ({"prefix_cache": False}, "--no-cache-prompt"),
    ({"kv_dtype": "q8_0"}, "--cache-type-k q8_0 --cache-type-v q8_0"),
    ({"attention_backend": "on"}, "--flash-attn on"),
    ({"speculative": DRAFT}, "--model-draft /models/draft.gguf --spec-draft-n-max 5"),
    ({"reasoning_parser": "deepseek"}, "--reasoning-format deepseek"),
]
TRANSFORMERS = [
    ({"max_batched_tokens": 512}, "--cb-max-batch-tokens 512"),
    ({"quantization": "bnb-8bit"}, "--quantization bnb-8bit"),
    ({"attention_backend": "sdpa"}, "--attn-implementation sdpa"),
    ({"memory_fraction": 0.5}, "--cb-max-memory-percent 0.5"),
]
WORDS = [
    (engine, knobs, words)
    for engine, rows in (
        (vllm.engine, VLLM),
        (sglang.engine, SGLANG),
        (transformers_serve.engine, TRANSFORMERS),
    )
    for knobs, words in rows
]
TRTLLM = [
    ({"tensor_parallel": 4}, "--tp_size 4", {}),
    ({"pipeline_parallel": 2}, "--pp_size 2", {}),
    (
        {"tensor_parallel": 4, "attention_data_parallel": 4},
        "--tp_size 4",
        {"enable_attention_dp": True},
    ),
    ({"attention_data_parallel": 1}, "", {}),
    ({"tensor_parallel": 4, "expert_parallel": True}, "--tp_size 4 --ep_size 4", {}),
    ({"context_len": 40960}, "--max_seq_len 40960", {}),
    ({"max_batched_tokens": 16384}, "--max_num_tokens 16384", {}),
    ({"max_seqs": 256}, "--max_batch_size 256", {}),
    ({"chunked_prefill": True}, "--enable_chunked_prefill", {}),
    ({"chunked_prefill": False}, "", {}),
    ({"prefix_cache": False}, "", {"kv_cache_config": {"enable_block_reuse": False}}),
    ({"kv_dtype": "fp8"}, "", {"kv_cache_config": {"dtype": "fp8"}}),
    ({"attention_backend": "FLASHINFER"}, "", {"attn_backend": "FLASHINFER"}),
    (
        {"speculative": MTP},
        "",
        {"speculative_config": {"decoding_type": "MTP", "num_nextn_predict_layers": 3}},
    ),
    (
        {"speculative": {**MTP, "method": "eagle3", "model": "/models/draft"}},
        "",
        {
            "speculative_config": {
                "decoding_type": "Eagle",
                "max_draft_len": 3,
                "speculative_model_dir": "/models/draft",
            }
        },
    ),
    (
        {"memory_fraction": 0.8, "prefix_cache": True},
        "",
        {"kv_cache_config": {"enable_block_reuse": True, "free_gpu_memory_fraction": 0.8}},
    ),
    ({"reasoning_parser": "deepseek-r1"}, "--reasoning_parser deepseek-r1", {}),
]


@pytest.mark.parametrize(("engine", "knobs", "words"), WORDS)
def test_a_knob_comes_to_these_words(
    engine: CommandEngine, knobs: dict[str, Any], words: str
) -> None:
    assert said(engine, knobs) == words.split()


@pytest.mark.parametrize(("knobs", "words"), LLAMACPP)
def test_a_knob_comes_to_these_words_of_llamacpp(knobs: dict[str, Any], words: str) -> None:
    assert (
        list(launch(llamacpp.engine, model="/models/m.gguf", **knobs).shorthand[3:])
        == words.split()
    )


@pytest.mark.parametrize(("knobs", "words", "entries"), TRTLLM)
def test_a_knob_comes_to_these_words_and_entries_of_trtllm(
    knobs: dict[str, Any], words: str, entries: dict[str, Any]
) -> None:
    path = FOLDER / "extra_llm_api_options.yaml"
    launched = launch(trtllm.engine, **knobs)
    assert [*launched.shorthand[2:]] == words.split() + (
        ["--extra_llm_api_options", str(path)] if entries else []
    )
    assert {path: yaml.safe_load(text) for path, text in launched.files.items()} == (
        {path: entries} if entries else {}
    )


@pytest.mark.parametrize(
    ("engine", "rows"),
    [
        (vllm.engine, VLLM),
        (sglang.engine, SGLANG),
        (trtllm.engine, TRTLLM),
        (llamacpp.engine, LLAMACPP),
        (transformers_serve.engine, TRANSFORMERS),
    ],
    ids=lambda item: getattr(item, "name", ""),
)
def test_every_knob_is_in_the_table(engine: CommandEngine, rows: list[Any]) -> None:
    assert {name for knobs, *_ in rows for name in knobs} == set(engine.table.knobs)


@pytest.mark.parametrize(
    ("release", "words"),
    [
        ("0.5.9", "--tp-size 8 --dp-size 8 --enable-dp-attention"),
        ("0.5.22", "--tp-size 8 --attn-dp-size 8"),
    ],
)
def test_sglang_before_0_5_22_copies_the_attention_with_flags_that_are_deprecated(
    release: str, words: str
) -> None:
    engine = replace(sglang.engine, release=release)
    assert said(engine, {"tensor_parallel": 8, "attention_data_parallel": 8}) == words.split()


@pytest.mark.parametrize("engine", [vllm.engine, sglang.engine], ids=lambda engine: engine.name)
@pytest.mark.parametrize(
    ("knobs", "problem"),
    [
        ({"tensor_parallel": 4}, "3 copies cannot share 4 accelerators equally; give a divisor"),
        ({}, "3 copies cannot share 1 accelerators equally"),
        ({"tensor_parallel": 3, "data_parallel": 2}, "it cannot be used beside data_parallel"),
    ],
)
def test_copies_of_the_attention_share_the_accelerators_equally(
    engine: CommandEngine, knobs: dict[str, Any], problem: str
) -> None:
    with pytest.raises(BadInput, match=f"attention_data_parallel: {problem}"):
        launch(engine, attention_data_parallel=3, **knobs)


HOST = "--host 127.0.0.1 --port 8001"


@pytest.mark.parametrize(
    ("engine", "model", "command", "name"),
    [
        (vllm.engine, MODEL, f"vllm serve {MODEL} {HOST} --served-model-name {MODEL}", MODEL),
        (
            vllm.engine,
            "/models/tiny/",
            f"vllm serve /models/tiny/ {HOST} --served-model-name tiny",
            "tiny",
        ),
        (
            sglang.engine,
            MODEL,
            f"python3 -m sglang.launch_server --model-path {MODEL} --enable-metrics {HOST} "
            f"--served-model-name {MODEL}",
            MODEL,
        ),
        (trtllm.engine, MODEL, f"trtllm-serve {MODEL} {HOST}", MODEL),
        (trtllm.engine, "./tiny", f"trtllm-serve ./tiny {HOST}", "tiny"),
        (
            transformers_serve.engine,
            "/m/t",
            f"transformers serve /m/t --continuous-batching {HOST}",
            "/m/t",
        ),
    ],
)
def test_command_has_host_port_and_served_name(
    engine: CommandEngine, model: str, command: str, name: str
) -> None:
    launched = launch(engine, model=model)
    assert " ".join(launched.argv) == command
    assert (launched.model, launched.tokenizer, launched.base_url) == (
        name,
        model,
        "http://127.0.0.1:8001",
    )


@pytest.mark.parametrize(
    ("engine", "env"),
    [
        (
            vllm.engine,
            {"VLLM_SERVER_DEV_MODE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"},
        ),
        (sglang.engine, {}),
        (trtllm.engine, {"TRTLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}),
        (transformers_serve.engine, {"HF_HUB_DISABLE_TELEMETRY": "1", "DO_NOT_TRACK": "1"}),
        (llamacpp.engine, {}),
    ],
    ids=lambda item: getattr(item, "name", ""),
)
def test_usage_statistics_and_hub_are_off_for_local_models(
    engine: CommandEngine, env: dict[str, str]
) -> None:
    assert launch(engine, model="/models/m.gguf").env == env | {"HF_HUB_OFFLINE": "1"}
    if engine is not llamacpp.engine:
        assert launch(engine).env == env


@pytest.mark.parametrize(
    ("engine", "variable"),
    [
        (vllm.engine, "CUDA_VISIBLE_DEVICES"),
        (vllm.ascend, "ASCEND_RT_VISIBLE_DEVICES"),
        (sglang.engine, "CUDA_VISIBLE_DEVICES"),
        (trtllm.engine, "CUDA_VISIBLE_DEVICES"),
        (transformers_serve.engine, "CUDA_VISIBLE_DEVICES"),
        (mindie.engine, "ASCEND_RT_VISIBLE_DEVICES"),
    ],
    ids=lambda item: getattr(item, "name", item),
)
def test_a_server_sees_the_devices_of_its_place_alone(engine: Any, variable: str) -> None:
    devices = Place(8001, FOLDER, host="10.0.0.1", devices=("2", "3"))
    assert launch(engine, place=devices, model="/models/m").env[variable] == "2,3"
    assert variable not in launch(engine, place=replace(devices, devices=()), model="/models/m").env


def test_a_server_on_a_cpu_is_told_of_no_device() -> None:
    assert "CUDA_VISIBLE_DEVICES" not in launch(vllm.cpu, place=replace(PLACE, devices=("0",))).env


def test_flag_for_every_server_is_not_repeated() -> None:
    assert launch(sglang.engine, "--enable-metrics").argv.count("--enable-metrics") == 1
    assert (
        "--continuous-batching"
        not in launch(transformers_serve.engine, "--no-continuous-batching").argv
    )


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({"method": "mtp"}, "speculative.num_speculative_tokens"),
        ({"method": "mtp", "num_speculative_tokens": 0}, "speculative.num_speculative_tokens"),
        ({"method": "mtp", "num_speculative_tokens": True}, "speculative.num_speculative_tokens"),
        ({"num_speculative_tokens": 2}, "speculative.method"),
        ({"method": ["mtp"], "num_speculative_tokens": 2}, "speculative.method"),
        ({"method": "medusa", "num_speculative_tokens": 2}, "speculative.method"),
        ({**MTP, "eagle_topk": 4}, "speculative.eagle_topk"),
        ({**MTP, "model": "--port"}, "speculative.model"),
    ],
)
@pytest.mark.parametrize("engine", [sglang.engine, trtllm.engine], ids=lambda engine: engine.name)
def test_a_draft_that_the_engine_cannot_make_is_refused(
    engine: CommandEngine, value: dict[str, Any], field: str
) -> None:
    with pytest.raises(BadInput) as refused:
        launch(engine, speculative=value)
    assert refused.value.field == field
