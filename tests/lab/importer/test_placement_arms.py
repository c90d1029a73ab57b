"""The arm that a printed command starts."""

from typing import Any

import pytest

from loadgen.lab.audit.command import commands
from loadgen.lab.importer.entries import Unplaced
from loadgen.lab.importer.placement import Arms
from tests.helpers.study_files import planned

STAGES: list[dict[str, Any]] = [
    {"name": "engine", "choice": {"vllm": {}, "sglang": {"engine": "sglang"}}},
    {"name": "seqs", "grid": {"max_seqs": [64, 128]}},
    {
        "name": "drafts",
        "choice": {
            "mtp": {"knobs": {"speculative": {"method": "mtp", "num_speculative_tokens": 4}}}
        },
    },
    {"name": "weights", "choice": {"fp8": {"model": "fp8", "knobs": {"tensor_parallel": 2}}}},
]
ARMS = Arms(planned(*STAGES))
DRAFTS = '{"method":"mtp","num_speculative_tokens":4}'


def started(text: str, stage: str = "") -> tuple[str, str]:
    """The arm that the first command of a text starts, and what is said of that."""
    arm, note = ARMS.started_by(next(commands(text, 0)), stage)
    return arm.path, note


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("vllm serve Qwen/Qwen3-8B --max-num-seqs 64", "seqs/max_seqs=64"),
        ("vllm serve Qwen/Qwen3-8B --max_num_seqs=128", "seqs/max_seqs=128"),
        (
            "vllm serve Qwen/Qwen3-8B --host 0.0.0.0 --port 8000 --max-num-seqs 64",
            "seqs/max_seqs=64",
        ),
        ("vllm serve --max-num-seqs 64 --model Qwen/Qwen3-8B", "seqs/max_seqs=64"),
        ("python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B", "engine/sglang"),
        ("vllm serve Qwen3-8B --max-num-seqs 64", "seqs/max_seqs=64"),  # without its owner
        ("vllm serve Qwen/Qwen3-8B-FP8 -tp 2", "weights/fp8"),
        ("vllm serve Qwen/Qwen3-8B-FP8 --tensor-parallel-size=2", "weights/fp8"),
        (f"vllm serve Qwen/Qwen3-8B --speculative-config={DRAFTS}", "drafts/mtp"),
        (f"vllm serve Qwen/Qwen3-8B --speculative-config '{DRAFTS}'", "drafts/mtp"),
        # flags alone, of whichever engine has an arm with them
        ("--max-num-seqs=64", "seqs/max_seqs=64"),
    ],
)
def test_a_command_starts_the_arm_that_says_the_same(text: str, name: str) -> None:
    assert started(text, "Results") == (name, "")


def test_a_flag_in_a_comment_takes_the_place_of_the_commands_own() -> None:
    command = next(commands("vllm serve Qwen/Qwen3-8B --max-num-seqs 64", 0)).changed_by(
        "--max-num-seqs 128"
    )
    assert ARMS.started_by(command, "Seqs")[0].path == "seqs/max_seqs=128"


@pytest.mark.parametrize(
    ("stage", "name"),
    [
        ("1. Choosing the Engine", "engine/vllm"),
        ("2. Seqs", "seqs/baseline"),
        ("", "confirmation/baseline"),
    ],
)
def test_arm_is_taken_from_the_step_named_like_the_stage(stage: str, name: str) -> None:
    assert started("vllm serve Qwen/Qwen3-8B", stage) == (name, "")


def test_unknown_model_is_taken_for_the_nearest_name() -> None:
    assert started("vllm serve Qwen/Qwen3-9B-FP8 -tp 2", "Weights") == (
        "weights/fp8",
        "its command names the unknown model Qwen/Qwen3-9B-FP8; taken for Qwen/Qwen3-8B-FP8",
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "vllm serve Qwen/Qwen3-8B --max-num-seqs 65",
            "no arm has the command `vllm serve Qwen/Qwen3-8B --max-num-seqs 65`",
        ),
        ("trtllm-serve Qwen/Qwen3-8B", "no arm has the command `trtllm-serve Qwen/Qwen3-8B`"),
        (
            "vllm serve mistralai/Large",
            "unknown model mistralai/Large; the study has Qwen/Qwen3-8B, Qwen/Qwen3-8B-FP8",
        ),
    ],
)
def test_command_without_an_arm_is_not_placed(text: str, why: str) -> None:
    with pytest.raises(Unplaced) as caught:
        started(text)
    assert str(caught.value) == why


def test_a_command_that_two_arms_say_is_not_placed() -> None:
    stage = {"name": "env", "choice": {"on": {"env": {"A": "1"}}, "off": {"env": {"A": "0"}}}}
    arms = Arms(planned(stage))
    command = "A=2 vllm serve Qwen/Qwen3-8B"
    with pytest.raises(Unplaced, match=rf"`{command}` is the command of env/on and env/off"):
        arms.started_by(next(commands(command, 0)), "Env")


def test_of_arms_with_one_command_the_variables_decide() -> None:
    stage = {"name": "env", "choice": {"on": {"env": {"A": "1"}}, "off": {"env": {"A": "0"}}}}
    arms = Arms(planned(stage))
    arm, _ = arms.started_by(next(commands("A=0 vllm serve Qwen/Qwen3-8B", 0)), "Env")
    assert arm.path == "env/off"
