"""The worker reads messages of its parent while it measures."""

import asyncio

import pytest

from loadgen.runner.worker_main import GONE, handle_commands
from loadgen.util import child_process


class Runner:
    """Keeps the commands it gets."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def stop(self, reason: str) -> None:
        self.told.append(("stop", reason))

    def abort(self, reason: str) -> None:
        self.told.append(("abort", reason))


async def hearing(*said: tuple[object, ...]) -> tuple[list[tuple[str, str]], list[object]]:
    """What a runner is told and which steps it is to take, of what the command says before it
    goes.
    """
    commands, steps, runner = asyncio.StreamReader(), asyncio.Queue[object](), Runner()
    for message in said:
        commands.feed_data(child_process.encode(message))
    commands.feed_eof()
    await handle_commands(runner, commands, steps)  # type: ignore[arg-type]
    return runner.told, [steps.get_nowait() for _ in range(steps.qsize())]


async def test_steps_come_in_their_order_and_the_last_is_none() -> None:
    told, steps = await hearing(("check_ready",), ("carry_out", 7))
    assert steps == [("check_ready",), ("carry_out", 7), None]
    assert told == [("abort", GONE)]


async def test_a_reason_may_be_of_several_lines() -> None:
    told, steps = await hearing(("stop", "a\nb"), ("abort", "c"))
    assert told == [("stop", "a\nb"), ("abort", "c"), ("abort", GONE)]
    assert steps == [None]


async def test_a_step_that_there_is_not_is_no_step() -> None:
    with pytest.raises(ValueError, match="close"):
        await hearing(("close",))
