"""The studies of examples/studies plan what the performance lab's pages served and sent."""

import json
from functools import cache
from pathlib import Path

import pytest

from loadgen.config import presets
from loadgen.config.settings import RunSettings
from loadgen.lab.study.plan.plan import Plan
from loadgen.lab.study.plan.planner import plan
from loadgen.lab.study.spec import study_file
from tests.helpers.published_workloads import COMMANDS, MINDIE, MISPRINTS, WORKLOADS
from tests.helpers.source import ROOT

FOLDER = ROOT / "examples" / "studies"
PAGES = {
    "qwen3-32b": "qwen3-32b-a100",
    "qwen3-235b-a22b": "qwen3-235b-a22b-a100",
    "qwen3-14b": "qwen3-14b-h100",
    "qwen3.5-9b": "qwen3.5-9b-h100",
    "qwen3-30b-a3b": "qwen3-30b-a3b-910b",
}
# What MindIE needs on the box, and the page does not print: both NPUs, and room for prompts of
# 32,000 tokens.
UNPRINTED = "--tensor-parallel-size 2 --max-seq-len 32768"
# Engines that download no model: the study names folders of the same name.
FOLDERS = {
    "Qwen/Qwen3-30B-A3B": "./Qwen3-30B-A3B",
    "vllm-ascend/Qwen3-30B-A3B-W8A8": "./Qwen3-30B-A3B-W8A8",
}
# The rule and the tool of each page's workloads; the rest is that of the preset.
VLLM_0_11 = {"temperature": 0.0, "ignore_eos": False, "dataset_rule": "vllm-0.11"}
Normal = tuple[tuple[str, ...], ...]


@cache
def planned(name: str) -> Plan:
    file = study_file.read(FOLDER / f"{name}.yaml")
    with file.named():
        return plan(file.study)


def normal(command: str, page: str) -> Normal:
    """A command as the engine that serves it would have it, a misprint mended."""
    meant = {misprint.printed: misprint.meant for misprint in MISPRINTS.get(page, ())}
    spelled = {command: engine for _, command, engine, _ in COMMANDS}
    engine = spelled.get(command, MINDIE)
    from loadgen.engines.kinds import mindie_config

    syntax = mindie_config.FLAG_SYNTAX if engine is MINDIE else engine.table.flag_syntax  # type: ignore[attr-defined]
    words = meant.get(command, command).split() + (UNPRINTED.split() if engine is MINDIE else [])
    folders = FOLDERS if page == "qwen3-30b-a3b" else {}
    found: Normal = syntax.normalize([folders.get(word, word) for word in words])
    return found


def served(made: Plan) -> set[Normal]:
    return {launch.normal for step in made.steps for arm in step.arms for launch in arm.launches}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_report_of_an_example_has_a_title(path: Path) -> None:
    study = study_file.read(path).study
    assert study.report.title not in (None, "", study.name)


@pytest.mark.parametrize("page", PAGES)
def test_every_serving_command_of_a_page_is_planned_and_no_other(page: str) -> None:
    of_page = {normal(command, page) for name, command, *_ in COMMANDS if name == page}
    assert served(planned(PAGES[page])) == of_page


@pytest.mark.parametrize("page", PAGES)
def test_every_workload_of_a_page_is_sent_to_the_baseline_and_to_the_winner(page: str) -> None:
    made = planned(PAGES[page])
    wanted = {name: RunSettings(**presets.resolve(name)) for name in WORKLOADS[page]}
    for arm in made.steps[-1].arms:
        sent = [shape(made.loads[name]) for name in arm.workloads]
        assert len(sent) == len(wanted)
        assert all(shape(settings) in sent for settings in wanted.values())


def shape(settings: RunSettings) -> tuple[object, ...]:
    """What a preset says of a load, without whose words it has."""
    names = (
        *("dataset_name", "num_prompts", "request_rate", "burstiness", "max_concurrency", "seed"),
    )
    return (
        *(getattr(settings, name) for name in names),
        settings.random_input_len,
        settings.random_output_len,
    )


@pytest.mark.parametrize("page", ["qwen3-32b", "qwen3-235b-a22b", "qwen3-14b"])
def test_pages_of_vllm_0_11_have_its_words_temperature_and_answers(page: str) -> None:
    for settings in planned(PAGES[page]).loads.values():
        assert {name: getattr(settings, name) for name in VLLM_0_11} == VLLM_0_11
        assert settings.backend == "openai-chat"


def test_page_of_vllm_0_9_has_its_words() -> None:
    loads = planned(PAGES["qwen3-30b-a3b"]).loads
    assert {load.dataset_rule for load in loads.values() if load.dataset_name == "random"} == {
        "vllm-0.9"
    }
    assert {load.dataset_rule for load in loads.values() if load.dataset_name == "sharegpt"} == {
        "vllm-0.11"
    }
    assert {(load.temperature, load.ignore_eos) for load in loads.values()} == {(0.0, False)}


@pytest.mark.parametrize("study", ["qwen3.5-9b-h100", "gpustack-sharegpt", "gpustack-throughput"])
def test_profiles_of_gpustack_have_the_words_of_its_tool_and_whole_answers(study: str) -> None:
    rules = {"random": "guidellm-0.5", "sharegpt": "benchmark-runner"}
    for settings in planned(study).loads.values():
        assert (settings.dataset_rule, settings.ignore_eos) == (rules[settings.dataset_name], True)
        assert settings.temperature is None  # the tool sends none


def test_page_of_gpustack_has_its_percentiles() -> None:
    (percentiles,) = {load.metric_percentiles for load in planned("qwen3.5-9b-h100").loads.values()}
    assert percentiles == "95,99"


def test_groups_of_the_later_page_are_each_against_the_baseline() -> None:
    stages = planned("qwen3.5-9b-h100").steps[1:-1]
    assert {name for step in stages for name in step.starts_from} == {"baseline"}


def test_mindie_has_both_npus_and_room_for_the_longest_prompt() -> None:
    made = planned("qwen3-30b-a3b-910b")
    (mindie,) = (arm for arm in made.steps[1].arms if arm.name == "mindie")
    (text,) = mindie.launches[0].files.values()
    backend = json.loads(text)["BackendConfig"]
    (model,) = backend["ModelDeployConfig"]["ModelConfig"]
    assert (backend["npuDeviceIds"], model["worldSize"], model["tp"]) == ([[0, 1]], 2, 2)
    assert Path(model["modelWeightPath"]).is_absolute()
    asked = made.loads["very-long"]
    assert (
        backend["ModelDeployConfig"]["maxSeqLen"] > asked.random_input_len + asked.random_output_len
    )


@pytest.mark.parametrize("page", MISPRINTS)
def test_misprints_are_of_commands_that_the_page_has(page: str) -> None:
    printed = {command for name, command, *_ in COMMANDS if name == page}
    assert {misprint.printed for misprint in MISPRINTS[page]} <= printed
    assert all(misprint.meant != misprint.printed for misprint in MISPRINTS[page])


@pytest.mark.parametrize(
    ("page", "winner"),
    [
        ("qwen3-32b", "trtllm-serve Qwen/Qwen3-32B --max_seq_len 40960 --enable_chunked_prefill"),
        (
            "qwen3-235b-a22b",
            "vllm serve Qwen/Qwen3-235B-A22B-Instruct-2507-FP8 --tensor-parallel-size 4",
        ),
        ("qwen3-14b", "python3 -m sglang.launch_server --model-path Qwen/Qwen3-14B-FP8"),
        (
            "qwen3.5-9b",
            "vllm serve Qwen/Qwen3.5-9B --max-model-len 32768 --max-num-seqs 512 "
            "--reasoning-parser qwen3 --performance-mode throughput",
        ),
        (
            "qwen3-30b-a3b",
            "mindie serve ./Qwen3-30B-A3B --tensor-parallel-size 2 --max-seq-len 32768",
        ),
    ],
)
def test_winner_of_a_page_is_the_last_arm_of_its_plan(page: str, winner: str) -> None:
    *_, last = planned(PAGES[page]).steps[-1].arms
    assert " ".join(last.launches[0].shorthand) == winner


def test_two_replicas_are_two_servers_on_devices_of_their_own() -> None:
    (tp4, *_) = (arm for arm in planned("qwen3-235b-a22b-a100").steps[3].arms if arm.name == "tp4")
    assert [launch.env["CUDA_VISIBLE_DEVICES"] for launch in tp4.launches] == ["0,1,2,3", "4,5,6,7"]


@pytest.mark.parametrize("name", ["sharegpt", "throughput", "long-context", "generation-heavy"])
def test_each_profile_of_gpustack_decides_one_study(name: str) -> None:
    made = planned(f"gpustack-{name}")
    decides = made.loads[made.study.objective.workload].replace(workload=None, dataset_path=None)
    assert decides == RunSettings(**presets.resolve(f"gpustack-{name}"))


def test_latency_is_looked_at_with_one_to_sixteen_requests_in_flight() -> None:
    made = planned("gpustack-latency")
    *at, profile = made.loads.values()
    assert [settings.max_concurrency for settings in at] == [1, 2, 4, 8, 16]
    assert profile == RunSettings(**presets.resolve("Latency"))


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_example_is_named_as_its_file_and_can_be_planned(path: Path) -> None:
    assert planned(path.stem).study.name == path.stem
