"""The studies of examples/studies plan what the performance lab's pages served and sent."""

from functools import cache
from pathlib import Path

import pytest

from loadgen.config import presets
from loadgen.config.settings import RunSettings
from loadgen.tuning.plan.plan import Plan
from loadgen.tuning.plan.planner import plan
from loadgen.tuning.spec import study_file
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
# Commands that the pages do not have: what they recommend or run in the end, measured like everything else.
ADDED = {
    # Prompts of 32,000 tokens do not go into the 8,192 that a server has without being told.
    "qwen3-30b-a3b": {"mindie serve Qwen/Qwen3-30B-A3B --max-seq-len 32768"},
}
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
    from loadgen.engines.kinds import mindie_flags

    syntax = mindie_flags.FLAG_SYNTAX if engine is MINDIE else engine.table.flag_syntax  # type: ignore[attr-defined]
    found: Normal = syntax.normalize(meant.get(command, command).split())
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
    added = {normal(command, page) for command in ADDED.get(page, ())}
    assert served(planned(PAGES[page])) == of_page | added


@pytest.mark.parametrize("page", PAGES)
def test_every_workload_of_a_page_is_sent_to_the_baseline_and_to_the_winner(page: str) -> None:
    made = planned(PAGES[page])
    wanted = {name: RunSettings(**presets.resolve(name)) for name in WORKLOADS[page]}
    for arm in made.steps[-1].arms:
        sent = [made.loads[name].replace(workload=None, dataset_path=None) for name in arm.workloads]
        assert len(sent) == len(wanted)
        assert all(settings in sent for settings in wanted.values())


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
            "vllm serve Qwen/Qwen3.5-9B --max-model-len 32768 --max-num-seqs 512 --reasoning-parser qwen3 "
            "--performance-mode throughput",
        ),
        ("qwen3-30b-a3b", "mindie serve Qwen/Qwen3-30B-A3B --max-seq-len 32768"),
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
    assert [settings.max_concurrency for settings in made.loads.values()] == [1, 2, 4, 8, 16]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_example_is_named_as_its_file_and_can_be_planned(path: Path) -> None:
    assert planned(path.stem).study.name == path.stem
