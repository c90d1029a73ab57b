"""Coroutines that run beside a block of code and end with it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from typing import Any


@contextlib.asynccontextmanager
async def beside(*coroutines: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run them as tasks while the block runs; when it ends, cancel them and wait until they have ended.

    An error that one of them raised is raised at the end of the block.
    """
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for ended in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(ended, Exception):
                raise ended
