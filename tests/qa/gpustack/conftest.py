"""GPUStack's code, or a skipped test where it cannot be installed."""

import pytest

from tests.qa.engines.environments import CannotBeMade
from tests.qa.gpustack.gpustack_code import GPUStack


@pytest.fixture(scope="session")
def gpustack(tmp_path_factory: pytest.TempPathFactory) -> GPUStack:
    pytest.importorskip("faker", reason="random prompts by guidellm's rule need faker")
    try:
        return GPUStack.installed(tmp_path_factory.mktemp("gpustack"))
    except CannotBeMade as error:
        pytest.skip(f"gpustack cannot be installed: {error}")
