"""The event loops a run works in: asyncio or uvloop, in the main thread or another."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import uvloop

import loadgen
from loadgen.testing.faulty import serving
from loadgen.testing.process import started
from tests.helpers.command_line import environment
from tests.helpers.repeated import Repeated

COUNT, TOKENS = 30, 3
WITHOUT_UVLOOP = """
import asyncio, sys
sys.modules["uvloop"] = None  # importing it fails
import loadgen

class Mine:
    def prompts(self, count):
        return (loadgen.Prompt(f"one two {number}", 3, 3, f"mine/{number}") for number in range(count))
    def provenance(self):
        return {"name": "mine"}

settings = loadgen.RunSettings(base_url=sys.argv[1], backend="openai-chat", request_rate=300, num_prompts=30, preflight=False,)
result = asyncio.run(loadgen.run(settings, dataset=Mine()))
print(result.data["completed"], result.data["total_output_tokens"])
"""  # noqa: E501


MINE = Repeated(loadgen.Prompt("one two three", 3, TOKENS, "mine"))


async def run_here() -> loadgen.Result:
    """A run, and the server it measures, in the running loop."""
    async with serving() as faulty:
        settings = loadgen.RunSettings(
            base_url=faulty.url,
            backend="openai-chat",
            request_rate=300,
            num_prompts=COUNT,
            preflight=False,
        )
        result = await loadgen.run(settings, dataset=MINE)
        assert faulty.requests == COUNT
    assert asyncio.all_tasks() == {asyncio.current_task()}
    return result


def run_in(loop: Callable[[], asyncio.AbstractEventLoop]) -> loadgen.Result:
    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(run_here())


LOOPS = pytest.mark.parametrize(
    "loop", [asyncio.SelectorEventLoop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)


@LOOPS
def test_run_works_in_asyncio_and_uvloop(loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    result = run_in(loop)
    assert (result.data["completed"], result.data["total_output_tokens"]) == (COUNT, COUNT * TOKENS)


@LOOPS
def test_run_works_in_a_loop_of_another_thread(
    loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    with ThreadPoolExecutor(1) as thread:
        result = thread.submit(run_in, loop).result(60)
    assert result.data["completed"] == COUNT


def test_run_works_without_uvloop() -> None:
    with started("loadgen.testing.faulty") as server:
        done = subprocess.run(
            [sys.executable, "-c", WITHOUT_UVLOOP, server.url],
            capture_output=True,
            text=True,
            env=environment(),
            timeout=60,
            check=False,
        )
    assert done.stdout.split() == [str(COUNT), str(COUNT * TOKENS)], done.stderr


def test_steps_of_the_wall_clock_change_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clocks are set while runs go on; every reading here is three years from the one before."""
    readings = iter(range(10**9))
    monkeypatch.setattr(time, "time", lambda: 1e9 + (next(readings) % 2) * 1e8)
    monkeypatch.setattr(time, "time_ns", lambda: 10**18 + (next(readings) % 2) * 10**17)
    before = time.monotonic()
    data = run_in(asyncio.SelectorEventLoop).data
    elapsed_s = time.monotonic() - before
    assert data["completed"] == COUNT
    assert 0 < data["duration"] <= elapsed_s
    for name in ("ttft", "tpot", "itl"):
        assert 0 <= data[f"mean_{name}_ms"] <= data[f"p99_{name}_ms"] <= elapsed_s * 1e3
