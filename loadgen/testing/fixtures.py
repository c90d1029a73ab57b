"""Fixtures for pytest: `pytest_plugins = ["loadgen.testing.fixtures"]` in a conftest.py makes them known."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from loadgen.testing.process import Process, started


@pytest.fixture
def replay() -> Iterator[Callable[..., Process]]:
    """`replay(FILE, *flags)` serves a capture in a process of its own until the test ends."""
    with contextlib.ExitStack() as stack:

        def begin(file: Path, *flags: str) -> Process:
            return stack.enter_context(started("loadgen.testing.replay", str(file), *flags))

        yield begin
