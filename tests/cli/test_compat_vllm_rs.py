"""Sessions by the flags of vllm-rs, onto the data set multi_turn."""

import math

import pytest

from loadgen.workload.datasets.session import TurnCounts
from tests.helpers.compat_lines import read, refusal

LINE = "--model m --backend openai-chat"


def test_sessions_have_three_turns_and_are_counted_by_num_prompts() -> None:
    found = read(f"{LINE} --multi-turn --num-prompts 4 --random-output-len 16")
    assert (found.dataset_name, found.turns, found.num_prompts) == ("multi_turn", "3", 12)
    assert (found.max_concurrency, found.think_time, found.request_rate) == (None, "0", math.inf)
    assert (found.ignore_eos, found.extra_body) == (False, {"min_tokens": 16})
    assert read(f"{LINE} --multi-turn").num_prompts == 3000


def test_flags_of_sessions_are_settings() -> None:
    said = "--multi-turn-num-turns 2 --multi-turn-concurrency 20 --multi-turn-delay-ms 500"
    found = read(f"{LINE} {said} --multi-turn --num-prompts 4 --max-concurrency 3")
    assert (found.turns, found.num_prompts, found.max_concurrency, found.think_time) == (
        "2",
        8,
        20,
        "0.5",
    )


def test_further_questions_may_have_another_length() -> None:
    line = f"{LINE} --multi-turn --multi-turn-num-turns 4 --random-input-len 64"
    assert read(f"{line} --per-turn-input-len 256").random_input_len == "64,256,256,256"
    assert read(f"{line} --per-turn-input-len 0").random_input_len == 64


@pytest.mark.parametrize(
    ("said", "turns"), [("--multi-turn-min-turns 2", "2:3"), ("--multi-turn-max-turns 8", "3:8")]
)
def test_the_turns_of_a_session_are_drawn(said: str, turns: str) -> None:
    found = read(f"{LINE} --multi-turn {said} --num-prompts 50 --seed 7")
    low, high = map(int, turns.split(":"))
    assert found.turns == turns
    assert found.num_prompts == sum(map(TurnCounts(low, high, 7).of, range(50)))


def test_ignore_eos_and_a_given_minimum_are_kept() -> None:
    assert read(f"{LINE} --multi-turn --ignore-eos").extra_body is None
    assert read(f'{LINE} --multi-turn --extra-body {{"min_tokens":3}}').extra_body == {
        "min_tokens": 3
    }


@pytest.mark.parametrize(
    ("said", "begins"),
    [
        ("--multi-turn-num-turns 2", "--multi-turn-num-turns: given without --multi-turn"),
        ("--per-turn-input-len 9", "--per-turn-input-len: given without --multi-turn"),
        (
            "--multi-turn --dataset-name sharegpt --dataset-path f",
            "--multi-turn: not supported for the data set",
        ),
        ("--multi-turn --request-rate 3", "--request-rate: has no effect with --multi-turn"),
        (
            "--multi-turn --random-range-ratio 0.5",
            "--random-range-ratio: has no effect with --multi-turn",
        ),
        ("--multi-turn --random-input-len 5:9", "--random-input-len: 5:9 is not one number"),
        ("--multi-turn --multi-turn-min-turns 5", "--multi-turn-min-turns: 5 to 3 turns"),
        (
            "--multi-turn --multi-turn-prefix-global-ratio 0.5",
            "--multi-turn-prefix-global-ratio: turns without",
        ),
        (
            "--random-cache-hit-fraction 0.8",
            "--random-cache-hit-fraction: prompts either all share",
        ),
    ],
)
def test_sessions_that_cannot_be_are_refused(said: str, begins: str) -> None:
    assert refusal(f"{LINE} {said}").startswith(begins)


def test_flags_that_ask_for_nothing_are_taken() -> None:
    said = "--multi-turn-prefix-global-ratio 0 --random-cache-ratio 0.0 --per-turn-input-len 0"
    assert read(f"{LINE} {said}").dataset_name == "random"


@pytest.mark.parametrize(
    ("said", "limit"),
    [
        ("--random-input-len 100 --random-output-len 20 --random-prefix-len 5", 125),
        ("--random-input-len 100 --random-output-len 20 --random-range-ratio 0.5", 180),
        ("--random-input-len 90:110 --random-output-len 20", 130),
        ("--multi-turn --random-input-len 10 --random-output-len 5 --per-turn-input-len 3", 31),
    ],
)
def test_a_context_is_long_enough_or_is_refused(said: str, limit: int) -> None:
    read(f"{LINE} {said} --max-model-len {limit}")
    assert refusal(f"{LINE} {said} --max-model-len {limit - 1}").startswith("--max-model-len: ")


def test_sessions_that_are_too_long_are_told_how_many_turns_fit() -> None:
    said = (
        "--multi-turn --multi-turn-min-turns 1 --random-input-len 10 --random-output-len 5 "
        "--max-model-len 44"
    )
    assert refusal(f"{LINE} {said}").endswith("give --multi-turn-max-turns 2")


def test_the_context_of_other_data_sets_is_refused() -> None:
    refused = refusal(f"{LINE} --max-model-len 4096 --dataset-name sharegpt --dataset-path f")
    assert refused.startswith(
        "--max-model-len: requests of sharegpt that are longer are not left out"
    )
