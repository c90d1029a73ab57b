"""The kit for engines, with every real engine that runs on a CPU."""

import pytest

from bench.engines.engines import ENGINES
from loadgen.testing.engine_conformance import Case, EngineAlive, EngineOnPaper

pytestmark = [pytest.mark.engines, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module", params=ENGINES)
def case(request: pytest.FixtureRequest) -> Case:
    return ENGINES[request.param]().case


class TestOnPaper(EngineOnPaper):
    pass


class TestAlive(EngineAlive):
    pass
