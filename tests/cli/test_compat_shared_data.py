"""Flags of other tools for data sets of the hub, as settings."""

import pytest

from tests.helpers.compat_lines import read, refusal

MODEL = "--model m"


@pytest.mark.parametrize(
    ("flags", "settings"),
    [
        (
            "--dataset-name spec_bench --spec-bench-category writing",
            {"hf_where": ("category=writing",)},
        ),
        ("--dataset-name spec_bench --spec-bench-output-len 9", {"hf_output_len": 9}),
        (
            "--dataset-name speed_bench --speed-bench-dataset-subset throughput_1k",
            {"hf_subset": "throughput_1k"},
        ),
        (
            "--dataset-name speed-bench --speed-bench-config throughput_1k",
            {"dataset_name": "speed_bench"},
        ),
        ("--dataset-name speed-bench --output-len 16", {"hf_output_len": 16}),
        ("--dataset-name hf --hf-text-column query", {"hf_column": ("prompt=query",)}),
        ("--dataset-name hf --blazedit-max-distance 0.3", {"hf_where": ("norm_distance<=0.3",)}),
        ("--dataset-name hf --blazedit-min-distance 0 --blazedit-max-distance 1", {"hf_where": ()}),
        (
            "--compat sglang --dataset-name speed-bench --speed-bench-category mixed",
            {"hf_where": ("category=mixed",)},
        ),
        (
            "--compat sglang --dataset-name speed-bench",
            {"dataset_name": "speed_bench", "hf_output_len": 512},
        ),
        (
            "--compat sglang --dataset-name speed-bench --speed-bench-output-len 9",
            {"hf_output_len": 9},
        ),
        (
            "--compat sglang --dataset-name longbench_v2",
            {"dataset_name": "hf", "hf_name": "THUDM/LongBench-v2"},
        ),
    ],
)
def test_flag_is_a_setting_of_hub_data(flags: str, settings: dict[str, object]) -> None:
    found = read(f"{MODEL} {flags}")
    assert {name: getattr(found, name) for name in settings} == settings


@pytest.mark.parametrize("name", ["spec_bench", "speed_bench"])
def test_vllm_shuffles_them_without_its_seed(name: str) -> None:
    found = read(f"--compat vllm-0.33 {MODEL} --dataset-name {name} --seed 7 --skip-chat-template")
    assert (found.seed_order, found.seed_prompts) == (0, 0)
    assert read(f"{MODEL} --dataset-name {name} --seed 7").seed_order is None


@pytest.mark.parametrize(
    "data",
    ["--dataset-name spec_bench", "--dataset-name hf --dataset-path copies/philschmid/mt-bench"],
)
def test_prompts_that_vllm_puts_into_the_chat_template_are_put_there(data: str) -> None:
    for line in (
        f"--compat vllm-0.33 {MODEL} {data}",
        f"--compat vllm-0.33 {MODEL} {data} --backend openai-chat",
    ):
        assert read(line).render_chat_template == "whole"
    assert (
        read(f"--compat vllm-0.33 {MODEL} {data} --skip-chat-template").render_chat_template is None
    )


def test_prompts_that_vllm_sends_as_they_are_are_not() -> None:
    line = f"--compat vllm-0.33 {MODEL} --dataset-name hf --dataset-path AI-MO/NuminaMath-CoT"
    assert read(line).render_chat_template is None


class TestTimedTrace:
    LINE = f"{MODEL} --dataset-name timed_trace --dataset-path t.jsonl"

    def test_is_a_trace_with_the_defaults_of_vllm(self) -> None:
        found = read(self.LINE)
        assert (found.dataset_name, found.trace_format, found.trace_times) == (
            "trace",
            "mooncake",
            "keep",
        )
        assert (found.trace_time_unit, found.trace_block_size) == (1.0, 16)
        assert (found.num_prompts, found.no_oversample, found.ignore_eos) == (1000, True, True)

    def test_has_times_blocks_and_columns_of_its_flags(self) -> None:
        found = read(
            f"{self.LINE} --timed-trace-chunk-hash-size 512 --timed-trace-sec-multiplier 0.001 "
            "--timed-trace-label-timestamp at --timed-trace-label-hash-ids ids"
        )
        assert (found.trace_time_unit, found.trace_block_size) == (0.001, 512)
        assert found.trace_column == ("time=at", "blocks=ids")

    def test_takes_a_rate_if_its_times_are_ignored(self) -> None:
        assert read(f"{self.LINE} --no-self-timed --request-rate 5").trace_times == "ignore"
        assert refusal(f"{self.LINE} --self-timed --request-rate 5").startswith(
            "--request-rate: given together"
        )

    @pytest.mark.parametrize("flag", ["--self-timed", "--no-self-timed"])
    def test_flag_of_its_times_is_refused_for_other_data(self, flag: str) -> None:
        assert (
            refusal(f"{MODEL} {flag}")
            == f"{flag}: applies only to --dataset-name timed_trace; leave it out"
        )


class TestMooncake:
    LINE = f"--compat sglang {MODEL} --dataset-name mooncake"

    @pytest.mark.parametrize(
        "flags", ["", "--use-trace-timestamps", "--mooncake-workload toolagent"]
    )
    def test_trace_needs_its_file(self, flags: str) -> None:
        file = "toolagent_trace.jsonl" if "toolagent" in flags else "conversation_trace.jsonl"
        assert (
            "loadgen downloads no trace; give --dataset-path a copy of "
            f"FAST25-release/traces/{file}" in refusal(f"{self.LINE} {flags}")
        )

    @pytest.mark.parametrize("flags", ["--mooncake-workload toolagent", "--use-trace-timestamps"])
    def test_file_of_the_trace_decides(self, flags: str) -> None:
        assert read(f"{self.LINE} --dataset-path t.jsonl {flags}") == read(
            f"{self.LINE} --dataset-path t.jsonl"
        )


def test_all_prompts_and_no_oversampling_are_settings() -> None:
    found = read(f"{MODEL} --dataset-name custom --dataset-path f --num-prompts -1 --no-oversample")
    assert (found.num_prompts, found.no_oversample) == (-1, True)
