"""Commands are read as engines read them; equal commands compare equal."""

import pytest

from loadgen.lab.audit.command import ServingCommand, commands


def only(text: str) -> ServingCommand:
    (found,) = commands(text, 0)
    return found


@pytest.mark.parametrize(
    ("text", "engine", "model", "flags"),
    [
        ("vllm serve Qwen/Qwen3-8B -tp 2", "vLLM", "Qwen3-8B", {"tp": "2"}),
        (
            "python3 -m sglang.launch_server --model-path a/M-7B --tp-size 8",
            "SGLang",
            "M-7B",
            {"tp-size": "8"},
        ),
        ("trtllm-serve M --max_num_tokens=16384", "TensorRT-LLM", "M", {"max-num-tokens": "16384"}),
        ("trtllm-serve serve M", "TensorRT-LLM", "M", {}),
        ("HF_HOME=/x A=1 mindie serve M --enable-x", "MindIE", "M", {"enable-x": ""}),
        ("llama-server -m a.gguf -np 4", "llama.cpp", "a.gguf", {"np": "4"}),
        ("--a=1 --b", "", "", {"a": "1", "b": ""}),
        ("vllm serve M \\\n  --a 1 \\\n  --b=2", "vLLM", "M", {"a": "1", "b": "2"}),
        ("vllm serve M \\ --a 1", "vLLM", "M", {"a": "1"}),
        ("--a=1\n--b=2\n", "", "", {"a": "1", "b": "2"}),
        ("vllm serve M --c '{\"k\": 4}'", "vLLM", "M", {"c": '{"k": 4}'}),
        ("vllm serve M --c '", "vLLM", "M", {"c": "'"}),
    ],
)
def test_a_command_is_an_engine_a_model_and_flags(
    text: str, engine: str, model: str, flags: dict
) -> None:
    found = only(text)
    assert (found.engine, found.name, dict(found.flags)) == (engine, model, flags)


def test_text_that_starts_no_engine_is_not_a_command() -> None:
    assert list(commands("# vllm serve M\nvllm bench serve --model M\nwget x\n", 0)) == []


def test_its_place_is_that_of_its_first_word() -> None:
    text = "# first\n    vllm serve M\n"
    assert only(text).at == text.index("vllm")


def test_devices_are_all_kinds_of_parallelism_together() -> None:
    assert only("vllm serve M -tp 4 --pipeline-parallel-size=2 -dp 2").width == 16
    assert only("vllm serve M -tp auto").width == 1


def test_two_that_say_the_same_in_another_order_are_the_same() -> None:
    one = only("vllm serve Qwen/M --a 1 --b_c=2")
    assert one.same_as(only("vllm serve M --b-c 2 --a=1"))
    assert one.same_as(only("--b-c 2 --a=1"))
    assert not one.same_as(only("vllm serve M --a 1"))
    assert not one.same_as(only("mindie serve M --a 1 --b-c=2"))
    assert not one.same_as(only("vllm serve N --a 1 --b-c=2"))


def test_a_limit_that_is_never_reached_is_no_difference() -> None:
    assert only("--max-num-seqs=512 --a").binding(512).flags == {"a": ""}
    assert only("--max-num-seqs=256 --a").binding(512).flags == {"max-num-seqs": "256", "a": ""}


def test_a_comment_that_names_flags_changes_them_and_no_other_does() -> None:
    one = only("trtllm-serve M --max_num_tokens=1")
    assert one.changed_by("--max_num_tokens=2").flags == {"max-num-tokens": "2"}
    assert one.changed_by("fa3") is one


# -- settings: what a flag sets, by whatever name


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        (
            "vllm serve M -tp 2 --gpu_memory_utilization=0.9",
            {"tensor_parallel": "2", "memory_fraction": "0.9"},
        ),
        ("python3 -m sglang.launch_server --model M --tp 2 --port 1", {"tensor_parallel": "2"}),
        (
            "trtllm-serve M --tp_size 2 --max_batch_size 8",
            {"tensor_parallel": "2", "max_seqs": "8"},
        ),
        ("vllm serve M --no-enable-prefix-caching", {"prefix_cache": "off"}),
        ("VLLM_ATTENTION_BACKEND=X vllm serve M", {"attention_backend": "X"}),
        ("CUDA_VISIBLE_DEVICES=0 OTHER=1 vllm serve M --host h", {"OTHER": "1"}),
        ("vllm serve M --unheard-of 3", {"unheard-of": "3"}),
        ("docker run --gpus all vllm/vllm-openai:v1 --model M -tp 2", {"tensor_parallel": "2"}),
    ],
)
def test_settings_have_engine_neutral_names(text: str, settings: dict) -> None:
    assert only(text).settings == settings


def test_two_names_of_one_flag_start_the_same_server() -> None:
    one = only(
        "python3 -m sglang.launch_server --model-path a/M --tp-size 8 --host 0.0.0.0 --port 8000"
    )
    assert one.same_as(only("python3 -m sglang.launch_server --model a/M --tp 8"))
    assert not one.same_as(only("EAGER=1 python3 -m sglang.launch_server --model a/M --tp 8"))


def test_flags_alone_are_of_the_engines_that_have_them() -> None:
    assert only("--tp-size=8").engines == {"SGLang", "TensorRT-LLM"}
    assert not only("--tp-size=8").same_as(only("vllm serve M --tensor-parallel-size 8"))
    assert only("--max-model-len=8").engines == {"vLLM"}


def test_copies_of_the_attention_share_the_devices_of_the_tensor_parallel_group() -> None:
    server = "python3 -m sglang.launch_server --model M --tp 8 --dp 8"
    assert only(server).width == 64
    assert only(f"{server} --enable-dp-attention").width == 8


def test_a_comment_that_repeats_a_group_of_flags_has_all_of_it() -> None:
    one = only(
        "python3 -m sglang.launch_server --model M --speculative-algorithm E "
        "--speculative-num-steps 4 --a 1"
    )
    assert (
        one.changed_by("--speculative-algorithm E --speculative-num-steps 2").flags[
            "speculative-num-steps"
        ]
        == "2"
    )
    full = only(f"{one.text} --speculative-eagle-topk 1")
    bare = full.changed_by("--speculative-algorithm E --speculative-eagle-topk 1")
    assert "speculative-num-steps" not in bare.flags
    assert bare.flags["a"] == "1"
