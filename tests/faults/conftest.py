"""Every test here sends through the real transport and must leave no socket and no task behind."""

import asyncio
from collections.abc import AsyncIterator

import psutil
import pytest


@pytest.fixture(autouse=True)
async def nothing_is_left() -> AsyncIterator[None]:
    process = psutil.Process()
    before = process.num_fds()
    yield
    await asyncio.sleep(0)
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert not left
    assert process.num_fds() <= before
