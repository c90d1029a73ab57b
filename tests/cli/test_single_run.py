"""One run of a command: how often its progress is reported."""

from typing import Any

import pytest

from loadgen.cli.runs.single_run import progress_period_s
from loadgen.config.settings import RunSettings
from loadgen.runner.job import PROGRESS_S, UNWATCHED_S

URL = "http://127.0.0.1:8000"


def test_progress_that_nobody_reads_comes_seldom() -> None:
    assert progress_period_s(RunSettings(base_url=URL, quiet=True)) == UNWATCHED_S > PROGRESS_S


@pytest.mark.parametrize(
    "reader",
    [
        {"quiet": False},
        {"prometheus": "127.0.0.1:9100"},
        {"stop_when": "error_rate>10%"},
        {"duration": 10.0, "max_concurrency": 4, "request_rate": float("inf"), "num_prompts": None},
    ],
    ids=lambda reader: next(iter(reader)),
)
def test_whoever_reads_progress_has_it_several_times_a_second(reader: dict[str, Any]) -> None:
    settings = RunSettings(**{"base_url": URL, "quiet": True} | reader)
    assert progress_period_s(settings) == PROGRESS_S
