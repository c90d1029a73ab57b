"""Background tasks end with their block, and errors reach the caller as they are."""

import asyncio

import pytest

from loadgen.util.tasks import background_tasks, gather_or_cancel


async def fail() -> None:
    raise ValueError("task")


async def sleep_for_ever(ended: list[str]) -> None:
    try:
        await asyncio.sleep(3600)
    finally:
        ended.append("cancelled")


async def test_background_tasks_are_cancelled_at_the_end_of_the_block() -> None:
    ended: list[str] = []
    async with background_tasks(sleep_for_ever(ended), sleep_for_ever(ended)):
        await asyncio.sleep(0)
    assert ended == ["cancelled"] * 2


async def test_error_of_a_background_task_ends_the_block() -> None:
    ended: list[str] = []
    with pytest.raises(ValueError, match="task"):
        async with background_tasks(fail(), sleep_for_ever(ended)):
            await asyncio.sleep(3600)
    assert ended == ["cancelled"]


async def test_error_of_the_block_is_raised_as_it_is() -> None:
    ended: list[str] = []

    async def block() -> None:
        async with background_tasks(sleep_for_ever(ended)):
            await asyncio.sleep(0)
            raise KeyError

    with pytest.raises(KeyError):
        await block()
    assert ended == ["cancelled"]


async def test_cancelling_the_caller_cancels_block_and_tasks() -> None:
    ended: list[str] = []

    async def block() -> None:
        async with background_tasks(sleep_for_ever(ended)):
            await asyncio.sleep(3600)

    task = asyncio.ensure_future(block())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["cancelled"]


async def test_gather_or_cancel_returns_results_in_order() -> None:
    async def late(value: int, turns: int) -> int:
        for _ in range(turns):
            await asyncio.sleep(0)
        return value

    assert await gather_or_cancel(late(value, 3 - value) for value in range(3)) == [0, 1, 2]


async def test_gather_or_cancel_raises_the_first_error() -> None:
    ended: list[str] = []
    with pytest.raises(ValueError, match="task"):
        await gather_or_cancel([sleep_for_ever(ended), fail()])
    assert ended == ["cancelled"]
