"""Workloads, which must be the same in compared runs, and environments, which need not."""

import math
from typing import Any

import pytest

from loadgen.analysis.compare.workload import differences as differences_between
from loadgen.analysis.compare.workload import environment, workload, workload_differences
from loadgen.config.settings import RunSettings
from tests.helpers import saved_json
from tests.helpers.compared_runs import FEW, result

OTHER_PROMPTS = {"sha256": "1" * 64}


def asked(settings: RunSettings = FEW, **options: Any) -> dict[str, Any]:
    return workload(saved_json.result(result("20250101", settings=settings, **options)))


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    return [str(each) for each in workload_differences(one, other)]


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"num_prompts": 30}, "requests 20 and 30"),
        ({"request_rate": 40.0}, "--request-rate 20 and 40"),
        ({"request_rate": math.inf}, "--request-rate 20 and inf"),
        ({"request_rate": 20.0000001}, "--request-rate 20 and 20.0000001"),
        ({"burstiness": 0.5}, "--burstiness 1 and 0.5"),
        ({"max_concurrency": 8}, "--max-concurrency none and 8"),
        ({"temperature": 0.7}, "--temperature none and 0.7"),
        ({"ignore_eos": True}, "--ignore-eos none and True"),
        ({"extra_body": {"n": 2}}, "--extra-body none and {'n': 2}"),
        ({"latency_from": "sent"}, "--latency-from due and sent"),
        ({"goodput": ("ttft:200",)}, "--goodput none and ttft:200"),
        ({"num_warmups": 5}, "--num-warmups 0 and 5"),
        ({"backend": "openai-chat"}, "--endpoint /v1/completions and /v1/chat/completions"),
    ],
)
def test_different_setting_is_named_by_its_flag(changes: dict[str, Any], difference: str) -> None:
    assert difference in differences(asked(), asked(FEW.replace(**changes)))


def timed(by: str) -> dict[str, Any]:
    """The workload of a run of which this said times."""
    saved = result("20250101", settings=FEW)
    saved["loadgen"]["server_times"] = {by: 20}
    return workload(saved_json.result(saved))


@pytest.mark.parametrize("by", ["vllm", "sglang", "nim"])
def test_server_that_was_asked_for_times_is_compared_with_none_that_was_not(by: str) -> None:
    assert differences(asked(), timed(by)) == ["server times off and on"]
    assert differences(timed(by), timed("vllm")) == []


@pytest.mark.parametrize("by", ["llamacpp", "groq", "envoy"])
def test_times_that_are_said_unasked_are_compared(by: str) -> None:
    assert differences(asked(), timed(by)) == []


def test_model_is_part_of_the_workload() -> None:
    assert differences(asked(), asked(model="org/large")) == ["--model org/tiny and org/large"]


def test_prompts_are_compared_by_hash() -> None:
    by_name = FEW.replace(dataset_name="sharegpt", dataset_path="a.json", seed_prompts=7)
    assert differences(asked(), asked(by_name)) == []


@pytest.mark.parametrize("field", ["seed", "seed_arrivals", "seed_prompts", "seed_order"])
def test_runs_of_other_seeds_are_draws_of_one_workload(field: str) -> None:
    other = asked(FEW.replace(**{field: 1}), prompts=OTHER_PROMPTS)
    assert differences(asked(), other) == []


def test_different_prompts_list_their_settings() -> None:
    long = asked(FEW.replace(random_input_len=2048), prompts=OTHER_PROMPTS)
    assert differences(asked(), long) == ["--random-input-len 1024 and 2048"]


def test_fewer_requests_are_listed_once() -> None:
    assert differences(asked(), asked(FEW.replace(num_prompts=30), prompts=OTHER_PROMPTS)) == [
        "requests 20 and 30"
    ]


def test_closed_loop_by_duration_ignores_the_count() -> None:
    """How many requests there were is what the server made of the time."""
    settings = FEW.replace(
        request_rate=math.inf, max_concurrency=4, num_prompts=None, duration=0.01
    )
    data = [result("20250101", settings=settings) for _ in range(2)]
    data[1]["num_prompts"] -= 10
    assert differences(*(workload(saved_json.result(each)) for each in data)) == []
    assert differences(asked(settings), asked(settings.replace(duration=0.02))) == [
        "--duration 0.01 and 0.02"
    ]


def test_unexplained_difference_lists_the_hashes() -> None:
    assert differences(asked(), asked(prompts=OTHER_PROMPTS)) == [
        "prompts SHA-256 000000000000 and SHA-256 111111111111"
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"base_url": "http://10.0.0.1:8000"},
        {"workers": 2},
        {"slo": "ttft_p99<1s"},
        {"records": "r.jsonl"},
        {"label": "new"},
        {"timeout": 60.0},
    ],
)
def test_measurement_settings_may_differ(changes: dict[str, Any]) -> None:
    assert differences(asked(), asked(FEW.replace(**changes))) == []


class TestEnvironment:
    @staticmethod
    def between(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
        found = [
            environment(saved_json.result(result("20250101", engine=each))) for each in (one, other)
        ]
        return [str(each) for each in differences_between(*found)]

    def test_engine_facts_are_compared(self) -> None:
        one, other = ({"name": "vllm", "version": version} for version in ("0.11.0", "0.12.0"))
        assert self.between(one, other) == ["engine.version 0.11.0 and 0.12.0"]

    def test_port_of_a_started_server_is_ignored(self) -> None:
        one, other = (
            {
                "base_url": f"http://127.0.0.1:{port}",
                "commands": [f"vllm serve m --port {port} {more}"],
            }
            for port, more in ((4001, "-tp 1"), (4002, "-tp 2"))
        )
        assert self.between(one, other) == [
            "engine.commands vllm serve m --port PORT -tp 1 and vllm serve m --port PORT -tp 2"
        ]

    def test_long_commands_are_shortened(self) -> None:
        one, other = (
            {"commands": [f"vllm serve org/large-model --max-num-seqs {seqs} --dtype half{more}"]}
            for seqs, more in ((8, ""), (16, " --enforce-eager"))
        )
        assert self.between(one, other) == [
            "engine.commands --max-num-seqs 8 ... half and --max-num-seqs 16 ... half "
            "--enforce-eager"
        ]

    def test_address_of_an_external_server_is_compared(self) -> None:
        one, other = (
            environment(saved_json.result(result("20250101", settings=FEW.replace(base_url=url))))
            for url in ("http://a:1", "http://b:1")
        )
        assert [str(each) for each in differences_between(one, other)] == [
            "--base-url http://a:1 and http://b:1"
        ]

    def test_output_settings_are_ignored(self) -> None:
        one, other = (
            environment(saved_json.result(result("20250101", settings=FEW.replace(label=label))))
            for label in "ab"
        )
        assert differences_between(one, other) == []
