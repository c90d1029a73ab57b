"""The workloads of a study: presets, flags of all of them, and the defaults of a tool."""

from typing import Any

import pytest

from loadgen.cli.flags import parse
from loadgen.cli.run_settings import settings as command_line
from loadgen.config import presets
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.lab.study.spec.workloads import loads
from loadgen.workload import vllm_load
from tests.helpers.study_files import study


def load(said: Any, **every: Any) -> RunSettings:
    return loads(study(workloads={"short": said}, every_workload=every))["short"]


def refusal(said: Any, **every: Any) -> str:
    with pytest.raises(BadInput) as refused:
        load(said, **every)
    return str(refused.value)


class TestEveryWorkload:
    def test_is_above_a_preset_and_below_the_workload(self) -> None:
        assert load("short", num_prompts=5).num_prompts == 5
        assert load({"workload": "short", "num_prompts": 7}, num_prompts=5).num_prompts == 7
        assert load({"workload": "short"}, num_prompts=5).seed == 42

    def test_overrides_what_it_excludes_of_a_preset(self) -> None:
        found = load({"workload": "Throughput", "rate_profile": "5@10s,1@10s"})
        assert (found.rate_profile, found.num_prompts) == ("5@10s,1@10s", None)
        assert load("short", users=4, duration=5.0).users == 4

    def test_applies_to_the_keys_of_a_profile(self) -> None:
        profile = {"dataset_name": "Random", "dataset_input_tokens": 8, "total_requests": 3}
        assert load(profile, temperature=0.5).temperature == 0.5

    def test_chooses_percentiles(self) -> None:
        found = load("short", metric_percentiles="95,99", percentile_metrics="ttft,e2el")
        assert (found.metric_percentiles, found.percentile_metrics) == ("95,99", "ttft,e2el")

    @pytest.mark.parametrize(
        ("every", "words"),
        [
            (
                {"base_url": "http://h"},
                "every_workload.base_url: is decided by the study; leave it out",
            ),
            (
                {"prompts": 3},
                "every_workload.prompts: unknown setting; did you mean 'num_prompts'?",
            ),
            (
                {"random_input_len": "64k"},
                "every_workload.random_input_len: invalid length '64k' (workload short); write ",
            ),
            (
                {"workload": "long"},
                "every_workload.workload: is another workload for each; name it in workloads",
            ),
            (
                {"compat": "vllm-0.1"},
                "every_workload.compat: unknown tool 'vllm-0.1'; did you mean vllm-0.11?",
            ),
            (
                {"dataset_rule": "benchmark-runner"},
                "every_workload.dataset_rule: unknown rule 'benchmark-runner' for random "
                "(workload short); choose one",
            ),
        ],
    )
    def test_wrong_flag_is_refused_at_its_place(self, every: dict[str, Any], words: str) -> None:
        assert refusal("short", **every).startswith(words)


class TestCompat:
    @pytest.mark.parametrize("tool", vllm_load.RELEASES)
    @pytest.mark.parametrize("preset", ["short", "sharegpt", "Throughput"])
    def test_is_that_of_the_command_line(self, tool: str, preset: str) -> None:
        """The address alone is the study's own."""
        words = ["--workload", preset, "--compat", tool, "--backend", "openai-chat"]
        asked = command_line(parse(words)).replace(host=None)
        assert load({"workload": preset, "compat": tool}) == asked

    def test_gives_the_words_temperature_and_answers_of_the_tool(self) -> None:
        found = load("short", compat="vllm-0.11")
        assert (found.dataset_rule, found.temperature, found.ignore_eos) == (
            "vllm-0.11",
            0.0,
            False,
        )

    def test_leaves_what_a_preset_or_a_flag_sets(self) -> None:
        assert load("Throughput", compat="vllm-0.11").dataset_rule == "guidellm-0.5"
        assert (
            load({"workload": "short", "dataset_rule": "vllm-0.9"}, compat="vllm-0.11").dataset_rule
            == "vllm-0.9"
        )

    def test_of_a_workload_wins(self) -> None:
        assert load({"workload": "short", "compat": None}, compat="vllm-0.11") == RunSettings(
            **presets.resolve("short"), workload="short"
        )

    def test_unknown_tool_is_refused_at_its_workload(self) -> None:
        assert refusal({"workload": "short", "compat": "wrk"}) == (
            "workloads.short.compat: unknown tool 'wrk'; use one of vllm-0.11, vllm-0.32, vllm-0.33"
        )
