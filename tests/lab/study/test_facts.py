"""Before a study starts a server, everything that it names must be available."""

import sys
from pathlib import Path
from typing import Any

import pytest

from loadgen.errors import BadInput
from loadgen.lab.study.execute import facts
from loadgen.lab.study.plan.planner import Planner
from tests.helpers.study_files import study

SEQS = {"name": "seqs", "grid": {"max_seqs": [64, 128]}}
NOBODY = {
    "host": {"gpus": []},
    "accelerators_from": None,
    "builds": {"vllm": None, "sglang": None, "trtllm": None},
}


def refusal(known: dict[str, Any] = NOBODY, **parts: Any) -> str:
    made = study(SEQS, **parts)
    with pytest.raises(BadInput) as refused:
        facts.check_available(made, Planner(made), known)
    return str(refused.value)


def test_available_study_is_accepted() -> None:
    made = study(SEQS)
    facts.check_available(made, Planner(made), NOBODY)


@pytest.mark.parametrize("path", ["/nowhere/model", "./model.gguf", "../model", "~/no such model"])
def test_a_model_that_is_not_there(path: str) -> None:
    said = refusal(models={"bf16": path, "fp8": "Qwen/Qwen3-8B-FP8"})
    assert said == f"models.bf16: there is no {path}; name a folder, a .gguf file or a hub name"


def test_a_data_set_that_is_not_there(tmp_path: Path) -> None:
    missing = str(tmp_path / "none.json")
    loads = {
        "short": {"dataset_name": "sharegpt", "dataset_path": missing, "num_prompts": 10},
        "long": "long",
    }
    assert refusal(workloads=loads).startswith(
        f"workloads.short: there is no {missing}; name the file"
    )


def test_another_version_than_is_expected() -> None:
    said = refusal(NOBODY | {"builds": NOBODY["builds"] | {"vllm": "0.32.0"}})
    assert said.startswith("engines.vllm.version: 0.17.1 is expected, but 0.32.0 is installed")


def test_more_accelerators_than_there_are() -> None:
    said = refusal(
        NOBODY | {"host": {"gpus": ["NVIDIA H200", "NVIDIA H200"]}, "accelerators_from": "NVML"}
    )
    assert (
        said
        == "hardware.devices: the study has 4, but this machine has 2; run it on another machine, "
        "or reduce devices"
    )


def test_other_accelerators_than_the_study_names() -> None:
    here = {"host": {"gpus": ["NVIDIA A100-SXM4-80GB"]}, "accelerators_from": "NVML"}
    assert refusal(NOBODY | here, hardware={"name": "NVIDIA H100 SXM 80GB", "devices": 1}) == (
        "hardware.name: is NVIDIA H100 SXM 80GB, but NVML finds NVIDIA A100-SXM4-80GB on this "
        "machine; run it on the machine it names, or correct the name"
    )


def test_accelerators_that_no_tool_tells_are_said_to_be_unknown(
    caplog: pytest.LogCaptureFixture,
) -> None:
    made = study(SEQS, hardware={"name": "NVIDIA H100", "devices": 1})
    facts.check_available(made, Planner(made), NOBODY)
    assert "hardware NVIDIA H100 was not looked at" in caplog.text


@pytest.mark.parametrize(
    "parts",
    [
        {"hardware": {"name": "a CPU"}},
        {"engines": {"sim": {}}, "baseline": {"engine": "sim", "model": "bf16"}},
    ],
)
def test_nothing_is_said_of_accelerators_that_nobody_needs(
    parts: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    made = study(SEQS, **parts)
    facts.check_available(made, Planner(made), NOBODY | {"builds": dict.fromkeys(made.engines)})
    assert "not looked at" not in caplog.text


def test_questions_that_cannot_be_read(tmp_path: Path) -> None:
    made = study(
        SEQS, objective={"workload": "short", "accuracy": {"file": str(tmp_path / "none.jsonl")}}
    )
    with pytest.raises(BadInput, match=r"none\.jsonl: cannot be read"):
        facts.gather(made, Planner(made), "")


def test_other_questions_are_another_study(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text('{"question": "2 + 3?", "answer": 5}\n')
    made = study(SEQS, objective={"workload": "short", "accuracy": {"file": str(path)}})
    first = facts.gather(made, Planner(made), "")
    path.write_text('{"question": "2 + 4?", "answer": 6}\n')
    with pytest.raises(
        BadInput, match=r"questions, SHA-256: \w+ now, but \w+ when the store was begun"
    ):
        facts.check_unchanged(first, facts.gather(made, Planner(made), ""), tmp_path)


def test_a_data_set_is_known_by_its_contents(tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    path.write_text("[]")
    loads = {
        "short": {"dataset_name": "sharegpt", "dataset_path": str(path), "num_prompts": 10},
        "long": "long",
    }
    made = study(SEQS, workloads=loads)
    first = facts.gather(made, Planner(made), "")
    path.touch()
    again = facts.gather(made, Planner(made), "")
    facts.check_unchanged(first, again, tmp_path)
    path.write_text("[ ]")
    with pytest.raises(BadInput, match=r"data of short, bytes: 3 now, but 2"):
        facts.check_unchanged(first, facts.gather(made, Planner(made), ""), tmp_path)


@pytest.mark.parametrize(
    ("sampler", "missing", "said"),
    [
        ("tpe", {"optuna"}, "pip install optuna"),
        ("gp", {"torch"}, "pip install torch"),
        ("gp", {"optuna", "scipy", "torch"}, "pip install optuna scipy torch"),
    ],
)
def test_packages_of_the_sampler_are_checked_before_the_start(
    sampler: str, missing: set[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("optuna", "scipy", "torch"):
        monkeypatch.setitem(sys.modules, name, None if name in missing else sys)
    made = study({"name": "joint", "joint": {"max_seqs": {"log2": [16, 1024]}}, "sampler": sampler})
    with pytest.raises(BadInput) as refused:
        facts.check_available(made, Planner(made), NOBODY)
    assert (refused.value.field, refused.value.remedy) == (f"sampler {sampler}", said)


def test_a_workload_that_is_called_as_a_free_part_is_compared_as_any_other(tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    path.write_text("[]")
    load = {"dataset_name": "sharegpt", "dataset_path": str(path), "num_prompts": 10}
    made = study(SEQS, workloads={"budget": load}, objective={"workload": "budget"})
    first = facts.gather(made, Planner(made), "")
    path.write_text("[ ]")
    with pytest.raises(BadInput, match=r"data of budget, bytes: 3 now, but 2"):
        facts.check_unchanged(first, facts.gather(made, Planner(made), ""), tmp_path)
