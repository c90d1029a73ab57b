"""A program that makes many runs keeps one process of each kind, none of which outlives it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

import loadgen
from loadgen.testing.faulty import Faulty
from loadgen.util import child_process
from tests.helpers.command_line import TOKENIZER, environment

MODULE = "loadgen.runner.preparer"
SETTINGS = loadgen.RunSettings(
    backend="openai-chat",
    tokenizer=TOKENIZER,
    request_rate=1000,
    num_prompts=5,
    random_input_len=8,
    random_output_len=2,
)
LEFT_S = 20.0
PROGRAM = """
import os, sys, time
import loadgen
from loadgen.util import child_process

settings = loadgen.RunSettings(
    engine="sim", request_rate=1000, num_prompts=5, random_input_len=8, random_output_len=2
)
loadgen.run_sync(settings)
print(*(process.pid for process, _ in child_process._kept.values()), flush=True)
"""


def kept_pid() -> int | None:
    kept = child_process._kept.get(MODULE)
    return None if kept is None else kept[0].pid


async def test_next_run_uses_the_process_of_the_last(faulty: Faulty) -> None:
    settings = SETTINGS.replace(base_url=faulty.url)
    sources = []
    pids = set()
    for seed in (0, 1, 1):
        result = await loadgen.run(settings.replace(seed=seed))
        assert result.numbers.completed == 5
        sources.append(result.provenance.saved_prompts["sha256"])
        pids.add(kept_pid())
    assert len(pids) == 1
    assert sources[0] != sources[1] == sources[2]


async def test_another_folder_or_environment_gets_a_new_process(
    faulty: Faulty, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = SETTINGS.replace(base_url=faulty.url)
    await loadgen.run(settings)
    first = kept_pid()
    monkeypatch.chdir(tmp_path)
    await loadgen.run(settings)
    second = kept_pid()
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    await loadgen.run(settings)
    assert len({first, second, kept_pid()}) == 3
    assert not any(psutil.pid_exists(pid) for pid in (first, second) if pid is not None)


async def test_process_that_died_meanwhile_is_replaced(faulty: Faulty) -> None:
    settings = SETTINGS.replace(base_url=faulty.url)
    await loadgen.run(settings)
    kept, _ = child_process._kept[MODULE]
    kept.kill()
    kept.wait()
    assert (await loadgen.run(settings)).numbers.completed == 5


async def test_refused_run_leaves_no_process(faulty: Faulty) -> None:
    child_process.end_kept()
    with pytest.raises(loadgen.BadInput, match=r"^tokenizer: "):
        await loadgen.run(SETTINGS.replace(base_url=faulty.url, tokenizer="./none"))
    assert kept_pid() is None


FORK = """
forked = os.fork()
if forked == 0:
    os.close(1)
    time.sleep(60)
    os._exit(0)
print(forked, flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize(
    "end", ["", "os._exit(0)", "os.kill(os.getpid(), 9)", FORK], ids=["", "exit", "kill", "fork"]
)
def test_no_process_outlives_the_program(end: str) -> None:
    command = [sys.executable, "-c", PROGRAM + end]
    done = subprocess.run(
        command, env=environment(), stdout=subprocess.PIPE, text=True, timeout=60, check=False
    )
    kept, *forked = done.stdout.splitlines()
    pids = list(map(int, kept.split()))
    assert len(pids) == 2  # that which makes prompts, and that which scrapes metrics
    limit = time.monotonic() + LEFT_S
    while any(map(_runs, pids)) and time.monotonic() < limit:
        time.sleep(0.01)
    for pid in map(int, forked):  # it holds the pipes of the program
        os.kill(pid, signal.SIGKILL)
    assert not any(map(_runs, pids))


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
