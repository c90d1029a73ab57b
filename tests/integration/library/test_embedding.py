"""The library inside another program: its event loop, its thread and its data."""

import asyncio
import logging
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import loadgen
from tests.helpers.repeated import Repeated

SMALL = loadgen.RunSettings(
    engine="sim", request_rate=200, num_prompts=40, random_input_len=8, random_output_len=3
)


MINE = Repeated(loadgen.Prompt("badu kemo badu", 3, 2, "mine"))


async def test_run_in_a_running_loop_leaves_it_unchanged() -> None:
    handlers = logging.getLogger().handlers[:]
    interrupt = signal.getsignal(signal.SIGINT)
    policy = asyncio.get_event_loop_policy()
    result = await loadgen.run(SMALL)
    assert result.data["completed"] == 40
    assert result.snapshot.ok == 40
    assert result.verdict in (loadgen.Verdict.VALID, loadgen.Verdict.SUSPECT)
    assert "Serving Benchmark Result" in str(result)
    assert logging.getLogger().handlers == handlers
    assert signal.getsignal(signal.SIGINT) is interrupt
    assert asyncio.get_event_loop_policy() is policy
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_data_set_of_the_callers_own_is_asked() -> None:
    result = await loadgen.run(SMALL, dataset=MINE)
    assert result.data["total_input_tokens"] == 120
    assert result.data["total_output_tokens"] == 80
    assert result.data["loadgen"]["provenance"]["prompts"]["name"] == "repeated"


def test_run_sync_works_in_a_thread_without_a_loop() -> None:
    with ThreadPoolExecutor(1) as thread:
        result = thread.submit(loadgen.run_sync, SMALL).result(60)
    assert result.data["completed"] == 40


async def test_where_a_loop_runs_already_it_is_said_how_to_use_that() -> None:
    with pytest.raises(loadgen.BadInput, match=r"await loadgen\.run"):
        loadgen.run_sync(SMALL)


async def test_a_bad_setting_is_an_exception_with_its_field() -> None:
    with pytest.raises(loadgen.BadInput) as caught:
        await loadgen.run(loadgen.RunSettings(request_rate=0))
    assert caught.value.field == "request_rate"


async def test_cancelled_run_leaves_no_task() -> None:
    running = asyncio.Event()

    def watch(progress: loadgen.Progress) -> None:
        if progress.phase == "running":
            running.set()

    task = asyncio.create_task(loadgen.run(SMALL.replace(num_prompts=10_000), on_progress=watch))
    await running.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.all_tasks() == {asyncio.current_task()}


def test_import_loads_no_heavy_module() -> None:
    heavy = [
        "aiohttp",
        "hdrh",
        "numpy",
        "prometheus_client",
        "transformers",
        "tokenizers",
        "rich",
        "msgspec",
        "uvloop",
        "yaml",
    ]
    code = (
        f"import sys, loadgen; sys.exit(' '.join(name for name in {heavy} if name in "
        "sys.modules) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
