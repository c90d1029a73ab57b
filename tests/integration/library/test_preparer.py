"""The preparer: a process that starts before the requests of a run are known, and writes them
once they are.
"""

import os
import signal
from pathlib import Path

import pytest

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput, LoadgenError
from loadgen.metrics.progress import Progress
from loadgen.runner import connection_budget
from loadgen.runner.preparer import PrepareOrder, Preparer
from loadgen.runner.run import run
from loadgen.runner.server import Server
from loadgen.workload import request_store
from loadgen.workload.target import Target
from tests.helpers.command_line import TOKENIZER


def order(folder: Path, **changes: object) -> PrepareOrder:
    settings = RunSettings(tokenizer=TOKENIZER, num_prompts=3).replace(**changes)
    return PrepareOrder(settings, Target.from_settings(settings, "m"), 3, folder)


async def test_preparer_writes_the_ordered_requests_and_reports_progress(tmp_path: Path) -> None:
    told: list[Progress] = []
    async with Preparer() as preparer:
        await preparer.prepare(order(tmp_path), told.append)
    assert request_store.read_about(tmp_path)["requests"] == 3
    assert {progress.phase for progress in told} == {"preparing"}
    assert [(progress.scheduled, progress.ended) for progress in told] == [(3, 0), (3, 3)]


@pytest.mark.parametrize(("keep", "ends"), [(False, True), (True, False)])
async def test_preparer_ends_before_the_clock_starts_unless_it_is_kept(
    tmp_path: Path, keep: bool, ends: bool
) -> None:
    async with Preparer(keep=keep) as preparer:
        await preparer.prepare(order(tmp_path), lambda progress: None)
        if ends:
            await preparer.wait_ended()
        assert (preparer._process.poll() is not None) is ends


async def test_preparer_sends_back_why_requests_cannot_be_made(tmp_path: Path) -> None:
    async with Preparer() as preparer:
        with pytest.raises(BadInput, match=r"tokenizer: file or folder \./none does not exist"):
            await preparer.prepare(order(tmp_path, tokenizer="./none"), lambda progress: None)


async def test_dead_preparer_is_reported_with_its_signal(tmp_path: Path) -> None:
    async with Preparer() as preparer:
        os.kill(preparer._process.pid, signal.SIGKILL)
        with pytest.raises(
            LoadgenError, match="the process that makes the prompts was killed by signal 9"
        ):
            await preparer.prepare(order(tmp_path), lambda progress: None)


async def test_preparer_of_a_refused_run_has_ended_before_its_folder_is_removed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection_budget, "max_connections", lambda settings: 136)
    settings = RunSettings(
        tokenizer=TOKENIZER, num_prompts=900, max_concurrency=500, base_url="http://127.0.0.1:9"
    )
    async with Preparer() as preparer:
        with pytest.raises(BadInput, match="500 requests at once"):
            await run(settings, server=Server(settings, "m"), preparer=preparer)
        assert preparer._process.returncode == -signal.SIGKILL
