"""Stall: a server that is stopped for 1.4 s of 30 s; what open and closed loops say of it."""

import asyncio
import math
import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from bench.accuracy.measuring import compared, ms
from loadgen.testing.process import Process
from loadgen.util.clock import now_ns
from loadgen.util.tasks import background_tasks

STALL_S, RUN_S, BASE_MS, RATE, AT_S = 1.4, 30.0, 20.0, 100, 10.0
SHARE = 0.02

pytestmark = pytest.mark.accuracy


class Stall:
    """Stops a server once, `AT_S` after the clock of a run has started.

    Attributes:
        lasted_s: For how long it was stopped.
    """

    def __init__(self, server: Process) -> None:
        self._server = server
        self.running = asyncio.Event()
        self.lasted_s = 0.0

    async def happen(self) -> None:
        await self.running.wait()
        await asyncio.sleep(AT_S)
        before = now_ns()
        os.kill(self._server.pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(STALL_S)
        finally:
            os.kill(self._server.pid, signal.SIGCONT)
            self.lasted_s = (now_ns() - before) / 1e9


async def p99_ns(server: Process, **settings: Any) -> tuple[float, float]:
    """The p99 of TTFT from due with a stall, ns, and how long the stall was, s."""
    stall = Stall(server)

    def watch(phase: str) -> None:
        if phase == "running":
            stall.running.set()

    async with background_tasks(stall.happen()):
        run = await compared(
            server, tokens=1, plan={"first_ms": BASE_MS}, on_phase=watch, **settings
        )
    p99 = run.result.snapshot.histograms["ttft_due"].percentile(99)
    assert p99 is not None
    return p99, stall.lasted_s


async def test_latency_from_due_shows_the_whole_stall(
    metronome: Process, row: Callable[..., None]
) -> None:
    p99, stall_s = await p99_ns(metronome, request_rate=RATE, burstiness=math.inf, duration=RUN_S)
    # The requests of the stall waited evenly between 0 and all of it, and those under way when it
    # began nearly all.
    expected = (stall_s + 2 * BASE_MS / 1e3 - 0.01 * RUN_S) * 1e9
    told = f"p99 from due {ms(p99)}, expected {ms(expected)}"
    row(f"open loop, {RATE} req/s, constant", told, "2 %", abs(p99 / expected - 1) <= SHARE)


async def test_a_closed_loop_leaves_the_stall_out(
    metronome: Process, row: Callable[..., None]
) -> None:
    p99, _ = await p99_ns(metronome, max_concurrency=round(RATE * BASE_MS / 1e3), duration=RUN_S)
    bound = f"<= {2 * BASE_MS:g} ms: the stall is not seen"
    row("closed loop of as many in flight", f"p99 {ms(p99)}", bound, p99 <= 2 * BASE_MS * 1e6)
