"""Fixtures for pytest: write `pytest_plugins = ["loadgen.testing.fixtures"]` into the topmost conftest.py."""

import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from loadgen.testing.faulty import Faulty, serving
from loadgen.testing.process import Process, started


@pytest.fixture(scope="session")
def metronome() -> Iterator[Process]:
    """A server that writes tokens on time and knows when; requests may bring their own plan."""
    with started("loadgen.testing.metronome") as process:
        yield process


@pytest.fixture(scope="session")
def roofline() -> Iterator[Process]:
    """A server that answers at once, in one piece."""
    with started("loadgen.testing.roofline") as process:
        yield process


@pytest_asyncio.fixture
async def faulty() -> AsyncIterator[Faulty]:
    """A faulty server in the test's own loop."""
    async with serving() as server:
        yield server


@pytest.fixture
def replay() -> Iterator[Callable[..., Process]]:
    """`replay(FILE, *flags)` serves a capture in a process of its own until the test ends."""
    with contextlib.ExitStack() as stack:

        def begin(file: Path, *flags: str) -> Process:
            return stack.enter_context(started("loadgen.testing.replay", str(file), *flags))

        yield begin
