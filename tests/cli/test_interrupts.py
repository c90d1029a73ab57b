"""Ctrl-C ends a run with a report while it is measured, and otherwise gives it up."""

import asyncio
import contextlib
import os
import signal

import pytest

from loadgen.cli.live.view import View
from loadgen.cli.runs.interrupts import Interrupts
from loadgen.errors import GivenUp
from loadgen.metrics.progress import PHASES, Progress


class Worker:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    async def measure(self, *arguments: object) -> None: ...

    def stop(self, reason: str) -> None:
        self.told.append("stop")

    def abort(self, reason: str) -> None:
        self.told.append("abort")


async def send(*numbers: signal.Signals) -> None:
    for number in numbers:
        os.kill(os.getpid(), number)
        await asyncio.sleep(0)  # a handler is a callback of the loop
        await asyncio.sleep(0.01)


def measuring(interrupts: Interrupts) -> Worker:
    worker, view = Worker(), View()
    view.show(Progress("running"))
    interrupts.attach(worker, view)
    return worker


@pytest.mark.parametrize(
    ("numbers", "told"),
    [
        ([signal.SIGINT], ["stop"]),
        ([signal.SIGINT, signal.SIGINT], ["stop", "abort"]),
        ([signal.SIGTERM], ["abort"]),
        ([signal.SIGHUP], ["abort"]),
    ],
)
async def test_a_run_that_is_measured_is_stopped_or_ended(
    numbers: list[signal.Signals], told: list[str]
) -> None:
    interrupts = Interrupts()
    worker = measuring(interrupts)
    await interrupts.run_interruptible(send(*numbers))
    assert worker.told == told
    assert interrupts.count == len(numbers)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_before_anything_is_measured_it_is_given_up(number: signal.Signals) -> None:
    with pytest.raises(GivenUp):
        await Interrupts().run_interruptible(send(number))


@pytest.mark.parametrize(
    ("phase", "told"),
    [
        ("starting", []),
        ("waiting", []),
        ("preparing", []),
        *((phase, ["stop"]) for phase in PHASES),
    ],
)
async def test_interrupt_acts_by_the_phase_shown_last(phase: str, told: list[str]) -> None:
    interrupts, worker, view = Interrupts(), Worker(), View()
    interrupts.attach(worker, view)
    view.show(Progress("connecting"))
    view.show(Progress(phase))
    with contextlib.nullcontext() if told else pytest.raises(GivenUp):
        await interrupts.run_interruptible(send(signal.SIGINT))
    assert worker.told == told


@pytest.mark.parametrize(
    ("phase", "in_flight", "lines"), [("warming up", 0, 0), ("running", 3, 1), ("done", 0, 0)]
)
async def test_interrupt_says_that_the_run_waits_only_while_requests_are_in_flight(
    phase: str, in_flight: int, lines: int, capsys: pytest.CaptureFixture[str]
) -> None:
    interrupts, view = Interrupts(), View()
    interrupts.attach(Worker(), view)
    view.show(Progress(phase, in_flight=in_flight))
    await interrupts.run_interruptible(send(signal.SIGINT))
    assert capsys.readouterr().err.count("interrupted: waiting for requests in flight") == lines


async def test_between_runs_it_is_given_up_too() -> None:
    interrupts = Interrupts()
    worker = measuring(interrupts)
    interrupts.detach()
    with pytest.raises(GivenUp):
        await interrupts.run_interruptible(send(signal.SIGINT))
    assert worker.told == []


async def test_a_second_signal_leaves_what_stops_the_engine_alone() -> None:
    stopped = False

    async def start() -> None:
        nonlocal stopped
        try:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(60)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.sleep(0.05)  # the engine takes its time to end
            stopped = True

    with pytest.raises(GivenUp):
        await Interrupts().run_interruptible(start())
    assert stopped
