"""Knobs: what may be asked of any engine, and how a request that cannot be met is refused."""

import math
from dataclasses import replace
from typing import Any

import pytest

from loadgen.engines.kinds import (
    external,
    llamacpp,
    mindie,
    sglang,
    transformers_serve,
    trtllm,
    vllm,
)
from loadgen.engines.kinds.engine import CommandEngine, Engine
from loadgen.engines.kinds.knobs import KNOBS
from loadgen.errors import BadInput
from tests.helpers.engine_launch import PLACE, launch

ENGINES: list[CommandEngine] = [
    vllm.engine,
    sglang.engine,
    trtllm.engine,
    llamacpp.engine,
    transformers_serve.engine,
]


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("max_seqs", "16", "'16' is not a whole number"),
        ("max_seqs", 16.0, "16.0 is not a whole number"),
        ("max_seqs", True, "True is not a whole number"),
        ("max_seqs", 0, "0 is out of range"),
        ("memory_fraction", 0, "0.0 is out of range"),
        ("memory_fraction", 1.01, "1.01 is out of range"),
        ("memory_fraction", math.nan, "nan is out of range"),
        ("memory_fraction", "0.9", "'0.9' is not a number"),
        ("prefix_cache", 1, "1 is not true or false"),
        ("prefix_cache", None, "None is not true or false"),
        ("kv_dtype", "", "'' cannot stand on a command line"),
        ("kv_dtype", "--port", "'--port' cannot stand on a command line"),
        ("kv_dtype", "fp8\n", "'fp8\\n' cannot stand on a command line"),
        ("performance_mode", "fast", "unknown value 'fast'"),
        ("speculative", "mtp", "'mtp' is not a mapping"),
    ],
)
def test_knob_value_of_wrong_type_or_range_is_refused(name: str, value: Any, problem: str) -> None:
    with pytest.raises(BadInput) as refused:
        KNOBS[name].check(value)
    assert (refused.value.field, refused.value.problem) == (name, problem)
    assert "\n" not in str(refused.value)


def test_a_whole_number_passes_for_a_fraction() -> None:
    assert "--gpu-memory-utilization 1.0" in " ".join(launch(vllm.engine, memory_fraction=1).argv)


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_unknown_knob_is_refused_with_list_of_knobs(engine: CommandEngine) -> None:
    with pytest.raises(BadInput) as refused:
        launch(engine, max_num_seqs=4, model="/models/m.gguf")
    assert refused.value.field == "max_num_seqs"
    assert refused.value.remedy == f"use one of {', '.join(engine.table.knobs)}"


@pytest.mark.parametrize("engine", [*ENGINES, mindie.engine], ids=lambda engine: engine.name)
def test_host_port_and_model_are_no_knobs(engine: Engine) -> None:
    for name in ("host", "port", "model"):
        with pytest.raises(BadInput, match=f"{name}: the launcher sets it"):
            engine.launch("/models/m.gguf", {name: "x"}, (), replace(PLACE, host="10.0.0.1"))


def test_unsupported_knob_is_refused_with_nearest_setting() -> None:
    with pytest.raises(
        BadInput,
        match="memory_fraction: llamacpp has no such setting; the nearest is --n-gpu-layers",
    ):
        launch(llamacpp.engine, memory_fraction=0.8, model="/models/m.gguf")
    with pytest.raises(
        BadInput, match="performance_mode: sglang has no such knob; use one of served_name, tensor"
    ):
        launch(sglang.engine, performance_mode="throughput")


@pytest.mark.parametrize(
    ("engine", "knobs", "raw", "flag"),
    [
        (vllm.engine, {"tensor_parallel": 2}, "-tp 4", "--tensor-parallel-size"),
        (vllm.engine, {"tensor_parallel": 2}, "--tensor_parallel_size=4", "--tensor-parallel-size"),
        (vllm.engine, {"context_len": 2}, "--max-model-l 4", "--max-model-len"),
        (
            vllm.engine,
            {"prefix_cache": True},
            "--no-enable-prefix-caching",
            "--no-enable-prefix-caching",
        ),
        (
            vllm.engine,
            {"speculative": {"method": "mtp"}},
            "-sc.num_speculative_tokens 3",
            "--speculative-config",
        ),
        (vllm.engine, {"speculative": {"method": "mtp"}}, "--spec-tokens 3", "--spec-tokens"),
        (
            sglang.engine,
            {"tensor_parallel": 2, "attention_data_parallel": 2},
            "--enable-dp-attention",
            "--enable-dp-attention",
        ),
        (vllm.engine, {}, "--served-model-name mine", "--served-model-name"),
        (sglang.engine, {"tensor_parallel": 2}, "--tp 4", "--tp-size"),
        (
            sglang.engine,
            {"max_batched_tokens": 8192},
            "--chunked-prefill-size 4096",
            "--chunked-prefill-size",
        ),
        (
            sglang.engine,
            {"chunked_prefill": True},
            "--chunked-prefill-size 4096",
            "--chunked-prefill-size",
        ),
        (trtllm.engine, {"expert_parallel": True}, "--moe_expert_parallel_size 2", "--ep_size"),
        (
            trtllm.engine,
            {"memory_fraction": 0.8},
            "--free_gpu_memory_fraction 0.7",
            "--kv_cache_free_gpu_memory_fraction",
        ),
        (mindie.engine, {"tensor_parallel": 2}, "-tp 4", "--tensor-parallel-size"),
        (llamacpp.engine, {"context_len": 2}, "-c 4", "--ctx-size"),
        (llamacpp.engine, {"context_len": 2}, "-np 4", "--parallel"),
    ],
)
def test_raw_flag_equal_to_a_knob_is_refused_in_any_spelling(
    engine: Engine, knobs: dict[str, Any], raw: str, flag: str
) -> None:
    with pytest.raises(
        BadInput, match=r"it sets the same thing as the knob \w+; use one of them"
    ) as refused:
        engine.launch("/models/m.gguf", knobs, raw.split(), replace(PLACE, host="10.0.0.1"))
    assert refused.value.field == flag


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
@pytest.mark.parametrize("raw", ["--port 1", "--port=1", "--host 0.0.0.0"])
def test_raw_flags_do_not_move_the_server(engine: CommandEngine, raw: str) -> None:
    with pytest.raises(BadInput, match=r"the launcher sets the (host|port); leave the flag out"):
        launch(engine, *raw.split(), model="/models/m.gguf")


@pytest.mark.parametrize("engine", [vllm.engine, vllm.ascend], ids=lambda engine: engine.name)
def test_raw_flags_do_not_choose_devices_beside_the_launcher(engine: CommandEngine) -> None:
    chosen = replace(PLACE, devices=("0",))
    with pytest.raises(
        BadInput, match="--device-ids: the launcher sets the devices; leave the flag out"
    ):
        launch(engine, "--device_ids=1", place=chosen)
    assert "--device-ids" in launch(engine, "--device-ids", "1").argv


def test_raw_flags_pass_through_behind_those_of_the_knobs() -> None:
    argv = launch(vllm.engine, "--enforce-eager", "--seed", "-1", max_seqs=4).argv
    assert argv[3:8] == ("--max-num-seqs", "4", "--enforce-eager", "--seed", "-1")


@pytest.mark.parametrize("raw", [["oops"], ["--seed", 1], ["--a\0"]])
def test_raw_words_that_are_no_flags_are_refused(raw: list[Any]) -> None:
    with pytest.raises(BadInput, match="raw: "):
        vllm.engine.launch("m", {}, raw, PLACE)


@pytest.mark.parametrize("model", ["", "--port", "a\nb"])
@pytest.mark.parametrize("engine", [*ENGINES, mindie.engine], ids=lambda engine: engine.name)
def test_a_model_that_a_command_line_would_misread_is_refused(engine: Engine, model: str) -> None:
    with pytest.raises(BadInput, match="model: "):
        engine.launch(model, {}, (), replace(PLACE, host="10.0.0.1"))


def test_a_server_that_runs_already_is_not_launched() -> None:
    assert external.engine.version() is None
    with pytest.raises(BadInput, match="engine: an external server runs already"):
        launch(external.engine)
