"""A simulated server for each module, and a connection to it for each test."""

from collections.abc import Iterator

import pytest

from loadgen.engines import Server
from tests.helpers.raw_client import FAST, Client
from tests.helpers.sim_server import simulated


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with simulated(**FAST) as server:
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    client = Client(server.base_url)
    yield client
    client.close()
