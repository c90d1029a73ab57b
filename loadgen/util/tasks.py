"""Coroutines that run beside a block of code and end with it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from typing import Any


@contextlib.asynccontextmanager
async def beside(*coroutines: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run them as tasks while the block runs; when it ends, cancel them and wait until they have ended.

    An error that one of them raises ends the block, and is raised in its place.
    """
    block = asyncio.current_task()
    assert block is not None
    errors: list[BaseException] = []

    def ended(task: "asyncio.Task[None]") -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            errors.append(error)
            block.cancel()

    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    for task in tasks:
        task.add_done_callback(ended)
    try:
        yield
    except asyncio.CancelledError:
        if not errors:
            raise
        block.uncancel()
        raise errors[0] from None
    finally:
        for task in tasks:
            task.remove_done_callback(ended)
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
