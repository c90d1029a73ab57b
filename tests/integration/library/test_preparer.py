"""The process that makes a run's requests starts before anybody knows what to ask, and is told once that is known."""

import os
import signal
from pathlib import Path

import pytest

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput, LoadgenError
from loadgen.metrics.progress import Progress
from loadgen.runner.prepare import Preparer
from loadgen.runner.prepare_main import PrepareOrder
from loadgen.workload import request_store
from loadgen.workload.target import Target
from tests.helpers.command_line import TOKENIZER


def order(folder: Path, **changes: object) -> PrepareOrder:
    settings = RunSettings(tokenizer=TOKENIZER, num_prompts=3).replace(**changes)
    return PrepareOrder(settings, Target.from_settings(settings, "m"), 3, folder)


async def test_it_makes_what_is_ordered_and_tells_how_far_it_is(tmp_path: Path) -> None:
    told: list[Progress] = []
    async with Preparer() as preparer:
        await preparer.prepare(order(tmp_path), told.append)
    assert request_store.read_about(tmp_path)["requests"] == 3
    assert {progress.phase for progress in told} == {"preparing"}
    assert [(progress.scheduled, progress.ended) for progress in told] == [(3, 0), (3, 3)]


async def test_what_cannot_be_made_is_refused_as_if_it_were_made_here(tmp_path: Path) -> None:
    async with Preparer() as preparer:
        with pytest.raises(BadInput, match=r"--tokenizer: file or folder \./none does not exist"):
            await preparer.prepare(order(tmp_path, tokenizer="./none"), lambda progress: None)


async def test_one_that_dies_is_told_of(tmp_path: Path) -> None:
    async with Preparer() as preparer:
        os.kill(preparer._process.pid, signal.SIGKILL)
        with pytest.raises(LoadgenError, match="the process that makes the prompts was killed by signal 9"):
            await preparer.prepare(order(tmp_path), lambda progress: None)
