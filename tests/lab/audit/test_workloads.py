"""Workloads that a page announces, in lists, profiles and commands."""

from pathlib import Path

import pytest

from loadgen.lab.audit.page import Page
from tests.helpers.audited_pages import block, fence

PROFILE = (
    "dataset_name: Random\ndataset_input_tokens: 1024\ndataset_output_tokens: "
    "128\nrequest_rate: 2\ntotal_requests: 9\n"
)


def announced(text: str) -> list[tuple]:
    page = Page("page.md", text)
    return [
        (w.name, w.input_tokens, w.output_tokens, w.requests, w.rate, w.cap) for w in page.workloads
    ]


@pytest.mark.parametrize(
    ("text", "workload"),
    [
        ("- Long: 4000 input tokens, 200 output tokens\n", ("Long", 4000, 200, None, None, None)),
        (
            "    - **Mixed**: 1K input tokens, 2K output tokens\n\n",
            ("Mixed", 1000, 2000, None, None, None),
        ),
        (f"##### Busy\n\n{fence(PROFILE, 'yaml')}", ("Busy", 1024, 128, 9, 2, None)),
        (
            fence(
                "vllm bench serve --model M --dataset-name random --random-input-len 9 "
                "--random-output-len 3",
                "bash",
            ),
            ("", 9, 3, None, None, None),
        ),
        (
            fence(
                "vllm bench serve --model M --num-prompts 100 --max-concurrency 4 --request-rate "
                "2.5",
                "bash",
            ),
            ("", None, None, 100, 2.5, 4),
        ),
    ],
)
def test_a_workload_is_read_wherever_it_is_announced(text: str, workload: tuple) -> None:
    assert announced(text) == [workload]


@pytest.mark.parametrize(
    ("client", "mean", "fits"),
    [
        ("python3 -m sglang.bench_serving", 500, True),  # it draws from 1 to what was asked
        ("python3 -m sglang.bench_serving --random-range-ratio 1", 500, False),
        ("python3 -m sglang.bench_serving --random-range-ratio 0.5", 750, True),
        ("vllm bench serve", 500, False),
        ("vllm bench serve", 1000, True),
        ("vllm bench serve --random-range-ratio 0.5", 750, True),
    ],
)
def test_random_lengths_are_drawn_as_the_tool_does(client: str, mean: int, fits: bool) -> None:
    lengths = "--random-input-len 1000 --random-output-len 1000"
    (workload,) = Page("p", fence(f"{client} --dataset-name random {lengths}", "bash")).workloads
    (result,) = Page("p", block(input=100 * mean, output=100 * mean)).results
    assert workload.fits(result) is fits


def test_settings_of_a_study_are_no_profile(tmp_path: Path) -> None:
    assert announced(fence("dataset_name: sharegpt\nnum_prompts: 8\n", "yaml")) == []
