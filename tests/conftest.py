"""What all tests share."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

pytest_plugins = ["loadgen.testing.fixtures"]

# A busy machine makes an example slow, not wrong.
settings.register_profile("loadgen", deadline=None)
settings.load_profile("loadgen")


@pytest.fixture(scope="session", autouse=True)
def state_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Runs leave their journals in a folder of the tests' own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield
