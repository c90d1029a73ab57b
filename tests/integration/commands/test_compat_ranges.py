"""SGLang and InferenceX: lengths up to the one named, and bodies as their own tools send them."""

from typing import Any

import orjson
import pytest

from loadgen.workload.prompt import Prompt
from loadgen.workload.target import Target
from tests.helpers.compat_lines import read, refusal

ARGUMENTS = {
    "tag": None,
    "backend": "sglang",
    "dataset_name": "sharegpt",
    "sharegpt_output_len": None,
    "random_input_len": 1024,
    "random_output_len": 1024,
    "random_range_ratio": 0.0,
}
SHARED_PREFIXES = "--dataset-name generated-shared-prefix"
NATIVE = {
    "lora_path": None,
    "return_logprob": False,
    "return_routed_experts": False,
    "logprob_start_len": -1,
}


def test_sglang_draws_lengths_up_to_the_one_named() -> None:
    drawn = read(
        "--compat sglang --model m --dataset-name random --random-input-len 100 "
        "--random-range-ratio 0.5"
    )
    assert (drawn.random_input_len, drawn.random_output_len) == ("50:100", "512:1024")
    all_of_it = read("--compat sglang --model m --dataset-name random-ids --random-input-len 100")
    assert all_of_it.random_input_len == "1:100"
    fixed = read(
        "--compat sglang --model m --dataset-name random --random-output-len 8 "
        "--random-range-ratio 1"
    )
    assert (fixed.random_input_len, fixed.random_output_len) == (1024, 8)
    assert refusal("--compat sglang --random-range-ratio 2 --dataset-name random").startswith(
        "--random-range-ratio: 2"
    )


@pytest.mark.parametrize(
    ("flags", "made"),
    [
        (
            "",
            {
                "backend": "sglang-native",
                "port": 30000,
                "seed": 42,
                "temperature": 0.0,
                "num_warmups": 1,
                "ignore_eos": True,
            },
        ),
        ("", {"warmup_prompt": "first"}),
        ("--backend vllm-chat --seed 7", {"backend": "openai-chat", "seed": 7}),
        ("--backend lmdeploy", {"backend": "openai", "port": 23333}),
        ("--backend vllm --port 9", {"port": 9}),
        ("--base-url http://a:1", {"host": None, "port": None}),
        ("--disable-ignore-eos --warmup-requests 3", {"ignore_eos": False, "num_warmups": 3}),
        ('--backend vllm --extra-request-body {"a":1}', {"extra_body": {"best_of": 1, "a": 1}}),
        ('--extra-request-body {"a":1}', {"extra_body": {**NATIVE, "a": 1}}),
        (
            "--return-logprob --top-logprobs-num 3",
            {"extra_body": NATIVE | {"return_logprob": True, "top_logprobs_num": 3}},
        ),
        ("--backend vllm --return-logprob", {"extra_body": {"best_of": 1}}),
        (
            "--backend vllm --return-logprob --top-logprobs-num 3",
            {"extra_body": {"best_of": 1, "logprobs": 3}},
        ),
        ("--backend vllm-chat --return-logprob", {"extra_body": None}),
        (
            "--dataset-name custom --dataset-path x --apply-chat-template",
            {"render_chat_template": "without-bos"},
        ),
        ("--dataset-name random --apply-chat-template", {"render_chat_template": None}),
        ("--dataset-name random --tokenize-prompt", {"prompt_token_ids": True}),
        ("--dataset-name sharegpt --dataset-path x", {"dataset_rule": "sglang"}),
        ("--disable-stream", {"disable_stream": True, "percentile_metrics": "e2el"}),
        (
            "--output-file r.jsonl --output-details",
            {"result_filename": "r.jsonl", "append_result": True},
        ),
        ("", {"sglang_result": ARGUMENTS, "metric_percentiles": "90,95,99"}),
        (
            "--tag x --backend vllm --dataset-name random-ids --random-input-len 64 "
            "--random-range-ratio 0.5",
            {
                "sglang_result": ARGUMENTS
                | {"tag": "x", "backend": "vllm", "dataset_name": "random-ids"}
                | {"random_input_len": 64, "random_range_ratio": 0.5}
            },
        ),
        ("--metric-percentiles 50,99", {"metric_percentiles": "50,99,90,95"}),
        (
            "--dataset-name generated-shared-prefix --gsp-num-groups 4 --gsp-prompts-per-group 5 "
            "--gsp-question-len 9",
            {
                "dataset_name": "prefix_repetition",
                "prefix_repetition_num_prefixes": 4,
                "num_prompts": 20,
                "prefix_repetition_suffix_len": 9,
                "prefix_repetition_prefix_len": 2048,
                "prefix_repetition_output_len": 256,
            },
        ),
        (
            f"{SHARED_PREFIXES} --gsp-group-distribution zipf --gsp-zipf-alpha 1.1 --gsp-ordered",
            {"prefix_zipf": 1.1, "disable_shuffle": False, "num_prompts": 1024},
        ),
        (f"{SHARED_PREFIXES} --gsp-ordered", {"disable_shuffle": True, "prefix_zipf": None}),
        (
            f"{SHARED_PREFIXES} --gsp-num-turns 3 --backend sglang-oai-chat "
            "--gsp-prompts-per-group 2",
            {"turns": "3", "num_prompts": 64 * 2 * 3, "dataset_name": "prefix_repetition"},
        ),
        (
            f"{SHARED_PREFIXES} --gsp-range-ratio 0.5 --gsp-question-len 9",
            {
                "prefix_buckets": "64x1024-2048",
                "prefix_repetition_suffix_len": "4:9",
                "prefix_repetition_output_len": "128:256",
            },
        ),
        (
            f"{SHARED_PREFIXES} --gsp-prewarm-prefixes --gsp-prewarm-concurrency 4",
            {"cache": "warm"},
        ),
        (
            "--dataset-name random --gsp-num-turns 3 --gsp-ordered",
            {"turns": None, "disable_shuffle": False},
        ),
        (
            "--dataset-name mooncake --dataset-path t --mooncake-slowdown-factor 4 "
            "--use-trace-timestamps",
            {
                "dataset_name": "trace",
                "dataset_path": "t",
                "trace_format": "mooncake",
                "time_scale": 0.25,
            },
        ),
    ],
)
def test_sglang_flags_set_the_same_settings(flags: str, made: dict[str, Any]) -> None:
    settings = read(f"--compat sglang --model m {flags}")
    assert {name: getattr(settings, name) for name in made} == made


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ("--gsp-group-distribution zipf", "--gsp-group-distribution: zipf needs its exponent"),
        ("--gsp-group-distribution pareto", "--gsp-group-distribution: 'pareto' is unknown"),
        (
            "--gsp-zipf-alpha 1",
            "--gsp-zipf-alpha: has no effect without --gsp-group-distribution zipf",
        ),
        ("--gsp-range-ratio 2", "--gsp-range-ratio: 2 is out of range"),
        (
            "--gsp-prewarm-prefixes --flush-cache",
            "--gsp-prewarm-prefixes: --flush-cache would empty the cache",
        ),
        ("--gsp-send-routing-key", "--gsp-send-routing-key: no header names the group of a prompt"),
    ],
)
def test_groups_that_cannot_be_made_are_refused(flags: str, says: str) -> None:
    assert refusal(f"--compat sglang --model m {SHARED_PREFIXES} {flags}").startswith(says)


@pytest.mark.parametrize("name", ["random", "random-ids"])
def test_the_file_that_sglang_takes_random_words_from_is_not_needed(name: str) -> None:
    line = f"--compat sglang --model m --dataset-name {name}"
    assert read(f"{line} --dataset-path ShareGPT.json") == read(line)
    assert (
        read("--compat sglang --model m --dataset-path ShareGPT.json").dataset_path
        == "ShareGPT.json"
    )


def test_sglangs_own_api_is_sent_what_its_own_tool_sends() -> None:
    settings = read(
        "--compat sglang --model m --backend sglang --dataset-name random --random-output-len 8"
    )
    body = orjson.loads(Target.from_settings(settings, "m").body(Prompt("Why?", 1, 8, "x/0")))
    sampling = {"temperature": 0.0, "max_new_tokens": 8, "ignore_eos": True}
    assert body == {"text": "Why?", "sampling_params": sampling, "stream": True, **NATIVE}


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("[1]", "--extra-request-body: [1] is not a JSON object"),
        ("null", "--extra-request-body: null is not a JSON object"),
        ('{"sampling_params":5}', "--extra-body: sampling_params is not a JSON object"),
        ('{"sampling_params":{"n":2}}', "--extra-body: n: 2 requests several answers to a prompt"),
        ('{"text":"x"}', "--extra-body: text would replace every prompt"),
        (
            '{"sampling_params":{"max_new_tokens":2}}',
            "--extra-body: max_new_tokens would replace the output length",
        ),
        ('{"max_new_tokens":2}', "--extra-body: max_new_tokens would replace the output length"),
    ],
)
def test_a_body_that_cannot_be_sent_to_sglang_is_refused(body: str, says: str) -> None:
    assert refusal(f"--compat sglang --model m --extra-request-body {body}").startswith(says)


def test_an_unknown_backend_of_sglang_is_refused() -> None:
    assert refusal("--compat sglang --backend trt").startswith(
        "--backend: 'trt' is not supported; choose from sglang, "
    )


def test_inferencex_draws_lengths_up_to_the_one_named() -> None:
    lengths = "--random-input-len 64 --random-output-len 16 --random-range-ratio"
    flags = f"--compat inferencex --model m --dataset-name random {lengths}"
    drawn = read(f"{flags} 0.8")
    assert (drawn.random_input_len, drawn.random_output_len) == ("51:64", "12:16")
    assert (drawn.temperature, drawn.ignore_eos, drawn.latency_from) == (0.0, False, "sent")
    assert read(f"{flags} 1").random_input_len == 64
    assert refusal(f"{flags} 2").startswith("--random-range-ratio: 2")


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ("--backend vllm --return-logprob", "--return-logprob has no effect on openai"),
        (
            "--backend vllm-chat --logprob-start-len 0",
            "--logprob-start-len has no effect on openai-chat",
        ),
        (
            "--dataset-name random --apply-chat-template",
            "--apply-chat-template has no effect on the data set random",
        ),
    ],
)
def test_a_flag_of_sglang_without_effect_is_named(
    flags: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    read(f"--compat sglang --model m {flags}")
    assert capsys.readouterr().err == f"loadgen: {told}, as in SGLang\n"


def test_inferencexs_chat_template_is_put_around_the_prompts_and_counted() -> None:
    settings = read(
        "--compat inferencex --model m --backend vllm --endpoint /v1/completions "
        "--use-chat-template"
    )
    assert (settings.backend, settings.render_chat_template, settings.input_len_counts) == (
        "vllm",
        "whole",
        "server",
    )
    assert settings.extra_body == {"best_of": 1, "logprobs": None}
    assert refusal("--use-chat-template") == (
        "--use-chat-template: unknown; this is a flag of InferenceX: add --compat inferencex"
    )
