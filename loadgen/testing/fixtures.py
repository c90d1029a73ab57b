"""Fixtures for pytest: write `pytest_plugins = ["loadgen.testing.fixtures"]` into the topmost conftest.py."""

from collections.abc import AsyncIterator

import pytest_asyncio

from loadgen.testing.faulty import Faulty, serving


@pytest_asyncio.fixture
async def faulty() -> AsyncIterator[Faulty]:
    """A faulty server in the test's own loop."""
    async with serving() as server:
        yield server
