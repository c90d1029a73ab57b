"""GPUStack's code, or a skipped test where it cannot be installed."""

from collections.abc import Iterator

import pytest

from bench.engines.environments import CannotBeMade
from tests.qa.gpustack.gpustack_code import GPUStack


@pytest.fixture(scope="session")
def gpustack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GPUStack]:
    pytest.importorskip("faker", reason="random prompts by guidellm's rule need faker")
    try:
        with GPUStack.started(tmp_path_factory.mktemp("gpustack")) as started:
            yield started
    except CannotBeMade as error:
        pytest.skip(f"gpustack cannot be installed: {error}")
