"""Fixtures for pytest: write `pytest_plugins = ["loadgen.testing.fixtures"]` into the topmost
conftest.py.
"""

import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from loadgen.testing.faulty import Faulty, serving
from loadgen.testing.process import Process, started


@pytest.fixture(scope="session")
def metronome() -> Iterator[Process]:
    """A metronome, which writes tokens on time and records when; a request may set its own pace."""
    with started("loadgen.testing.metronome") as process:
        yield process


@pytest.fixture(scope="session")
def roofline() -> Iterator[Process]:
    """A roofline server, which answers at once with a single write."""
    with started("loadgen.testing.roofline") as process:
        yield process


@pytest_asyncio.fixture
async def faulty() -> AsyncIterator[Faulty]:
    """A faulty server in the test's own event loop."""
    async with serving() as server:
        yield server


@pytest.fixture
def replay() -> Iterator[Callable[..., Process]]:
    """A function: `replay(FILE, *flags)` serves a capture in its own process until the test
    ends.
    """
    with contextlib.ExitStack() as stack:

        def begin(file: Path, *flags: str) -> Process:
            return stack.enter_context(started("loadgen.testing.replay", str(file), *flags))

        yield begin
