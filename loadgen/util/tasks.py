"""Structured concurrency on `asyncio.TaskGroup`, with the plain error of a task instead of an
exception group.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


@contextlib.asynccontextmanager
async def background_tasks(*coroutines: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run coroutines as tasks while the block runs. At its end they are cancelled and awaited.

    Raises:
        Exception: The first error of a task. It cancels the block and the other tasks.
    """
    async with _plain_errors(), asyncio.TaskGroup() as group:
        tasks = [group.create_task(coroutine) for coroutine in coroutines]
        yield
        for task in tasks:
            task.cancel()


async def repeat(period_s: float, call: Callable[[], object]) -> None:
    """Call a function again and again, with a pause of `period_s` before each call."""
    while True:
        await asyncio.sleep(period_s)
        call()


async def gather_or_cancel(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run coroutines at the same time and return their results in order.

    Raises:
        Exception: The first error of any of them. The others are cancelled.
    """
    async with _plain_errors(), asyncio.TaskGroup() as group:
        tasks = [group.create_task(coroutine) for coroutine in coroutines]
    return [task.result() for task in tasks]


@contextlib.asynccontextmanager
async def _plain_errors() -> AsyncIterator[None]:
    try:
        yield
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
