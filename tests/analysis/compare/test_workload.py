"""Workloads: what must be the same in runs that are compared, and what need not be."""

import math
from typing import Any

import pytest

from loadgen.analysis.compare.workload import facts, otherwise, unlike, workload
from loadgen.config.settings import RunSettings
from tests.helpers import saved_json
from tests.helpers.compared_runs import FEW, result

OTHER_PROMPTS = {"sha256": "1" * 64}


def asked(settings: RunSettings = FEW, **options: Any) -> dict[str, Any]:
    return workload(saved_json.result(result("20250101", settings=settings, **options)))


def said(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    return [str(each) for each in unlike(one, other)]


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
        ({"seed_arrivals": 1}, "--seed-arrivals none and 1"),
    ],
)
def test_what_is_asked_otherwise_is_named_as_its_flag(changes: dict[str, Any], difference: str) -> None:
    assert difference in said(asked(), asked(FEW.replace(**changes)))


def test_a_model_is_part_of_what_is_asked() -> None:
    assert said(asked(), asked(model="org/large")) == ["--model org/tiny and org/large"]


def test_prompts_are_the_same_by_their_hash_whatever_they_were_made_of() -> None:
    by_name = FEW.replace(dataset_name="sharegpt", dataset_path="a.json", seed_prompts=7)
    assert said(asked(), asked(by_name)) == []


def test_prompts_that_differ_are_told_by_what_they_were_made_of() -> None:
    long = asked(FEW.replace(random_input_len=2048), prompts=OTHER_PROMPTS)
    assert said(asked(), long) == ["--random-input-len 1024 and 2048"]


def test_fewer_of_the_same_are_told_once() -> None:
    assert said(asked(), asked(FEW.replace(num_prompts=30), prompts=OTHER_PROMPTS)) == ["requests 20 and 30"]


def test_of_a_closed_loop_that_time_ends_nobody_asked_for_a_number() -> None:
    """How many requests there were is what the server made of the time."""
    settings = FEW.replace(request_rate=math.inf, max_concurrency=4, num_prompts=None, duration=0.01)
    data = [result("20250101", settings=settings) for _ in range(2)]
    data[1]["num_prompts"] -= 10
    assert said(*(workload(saved_json.result(each)) for each in data)) == []
    assert said(asked(settings), asked(settings.replace(duration=0.02))) == ["--duration 0.01 and 0.02"]


def test_where_nothing_says_why_they_differ_the_hashes_do() -> None:
    assert said(asked(), asked(prompts=OTHER_PROMPTS)) == ["prompts SHA-256 000000000000 and SHA-256 111111111111"]


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
def test_how_it_is_measured_and_kept_may_differ(changes: dict[str, Any]) -> None:
    assert said(asked(), asked(FEW.replace(**changes))) == []


class TestFacts:
    @staticmethod
    def between(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
        found = [facts(saved_json.result(result("20250101", engine=each))) for each in (one, other)]
        return [str(each) for each in otherwise(*found)]

    def test_engines_are_told_apart_by_all_that_is_known_of_them(self) -> None:
        one, other = ({"name": "vllm", "version": version} for version in ("0.11.0", "0.12.0"))
        assert self.between(one, other) == ["engine.version 0.11.0 and 0.12.0"]

    def test_the_port_of_a_server_that_was_started_for_the_run_is_nothing_to_tell(self) -> None:
        one, other = (
            {"base_url": f"http://127.0.0.1:{port}", "commands": [f"vllm serve m --port {port} {more}"]}
            for port, more in ((4001, "-tp 1"), (4002, "-tp 2"))
        )
        assert self.between(one, other) == [
            "engine.commands vllm serve m --port PORT -tp 1 and vllm serve m --port PORT -tp 2"
        ]

    def test_of_long_commands_the_words_that_differ_are_told_with_their_flags(self) -> None:
        one, other = (
            {"commands": [f"vllm serve org/large-model --max-num-seqs {seqs} --dtype half{more}"]}
            for seqs, more in ((8, ""), (16, " --enforce-eager"))
        )
        assert self.between(one, other) == [
            "engine.commands --max-num-seqs 8 ... half and --max-num-seqs 16 ... half --enforce-eager"
        ]

    def test_the_address_of_a_server_that_was_there_is(self) -> None:
        one, other = (
            facts(saved_json.result(result("20250101", settings=FEW.replace(base_url=url))))
            for url in ("http://a:1", "http://b:1")
        )
        assert [str(each) for each in otherwise(one, other)] == ["--base-url http://a:1 and http://b:1"]

    def test_where_results_are_kept_is_nothing_to_tell(self) -> None:
        one, other = (facts(saved_json.result(result("20250101", settings=FEW.replace(label=label)))) for label in "ab")
        assert otherwise(one, other) == []
