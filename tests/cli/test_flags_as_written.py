"""Errors name the flag of another tool that the user wrote, not the setting that it became."""

import pytest

from loadgen.cli.compat.tool_flags import places
from loadgen.cli.flags import run_settings
from loadgen.cli.main import dispatch
from loadgen.errors import BadInput, setting, written_as

SHARED_PREFIX = "--dataset-name generated-shared-prefix"


@pytest.mark.parametrize(
    ("line", "flag"),
    [
        ("run --compat sglang --warmup-requests -3", "--warmup-requests"),
        (f"run --compat sglang {SHARED_PREFIX} --gsp-question-len 0", "--gsp-question-len"),
        (
            f"run --compat sglang {SHARED_PREFIX} --gsp-group-distribution zipf --gsp-zipf-alpha "
            "-1",
            "--gsp-zipf-alpha",
        ),
        ('run --compat sglang --extra-request-body {"n":2}', "--extra-request-body"),
        ("run --compat sglang --mooncake-slowdown-factor 1e9", "--mooncake-slowdown-factor"),
        ("run --compat sglang --num-prompts 0", "--num-prompts"),
        ("run --input-len 0", "--input-len"),
        ("run --random-input-len 0", "--random-input-len"),
        ("run --num-warmups -3", "--num-warmups"),
        ("search --slo ttft_p99<1s --compat sglang --warmup-requests -3", "--warmup-requests"),
        (f"dataset --compat sglang {SHARED_PREFIX} --gsp-question-len 0", "--gsp-question-len"),
        ("run --compat sglang --flush-cache --flush-cache-timeout 0", "--flush-cache-timeout"),
        ("run --compat sglang --lora-name --num-prompts 3", "--lora-name"),
        ("run --compat sglang --lora-request-distribution distinct", "--lora-request-distribution"),
        ("run --lora-assignment random", "--lora-assignment"),
        ("run --lora-modules --num-prompts 3", "--lora-modules"),
        ("run --multi-turn --num-prompts -1", "--num-prompts"),
        ("run --multi-turn --multi-turn-concurrency -1", "--multi-turn-concurrency"),
        ("run --multi-turn --multi-turn-num-turns -1", "--multi-turn-num-turns"),
        ("run --multi-turn --multi-turn-max-turns -1", "--multi-turn-min-turns"),
        ("run --multi-turn --per-turn-input-len -1", "--per-turn-input-len"),
        ("search --slo ttft_p99<1s --num-prompts -1", "--num-prompts"),
    ],
)
def test_the_flag_is_named_as_it_was_written(
    line: str, flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = line.split()
    assert dispatch(words) == 2
    assert capsys.readouterr().err.startswith(f"loadgen {words[0]}: {flag}: ")


def refusal(line: str, error: BadInput) -> BadInput:
    with pytest.raises(BadInput) as refused, written_as(places(run_settings(line.split()))):
        raise error
    return refused.value


def test_errors_of_a_run_are_named_too() -> None:
    error = BadInput(setting.result_filename, "x cannot be written", "name another")
    told = refusal("--compat sglang --output-file x", error)
    assert (told.field, told.problem, told.remedy) == ("--output-file", error.problem, error.remedy)


@pytest.mark.parametrize(
    ("line", "name", "flag"),
    [
        ("--compat sglang --flush-cache", "cache", "--flush-cache"),
        ("--multi-turn --multi-turn-delay-ms -5", "think_time", "--multi-turn-delay-ms"),
        ("--reset-prefix-cache", "cache", "--reset-prefix-cache"),
    ],
)
def test_error_found_later_names_the_flag_of_the_other_tool(
    line: str, name: str, flag: str
) -> None:
    assert refusal(line, BadInput(setting(name), "x", "y")).field == flag


def test_other_errors_are_left_alone() -> None:
    error = BadInput(setting.model, "is missing", "give it")
    assert refusal("--compat sglang --output-file x", error) is error
    assert (
        refusal("--result-filename x", BadInput(setting.result_filename, "x", "y")).field
        == "--result-filename"
    )
