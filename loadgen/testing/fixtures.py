"""Fixtures: the test servers for pytest, `pytest_plugins = ["loadgen.testing.fixtures"]`.

Each is a process of its own that lives as long as the test session.
"""

from collections.abc import Iterator

import pytest

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
