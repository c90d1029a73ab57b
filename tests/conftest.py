"""What all tests share."""

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from loadgen.core import histogram, http1, record, record_json, sse
from loadgen.engines.sim import emit, outlet, planned

pytest_plugins = ["loadgen.testing.fixtures"]

# A busy machine makes an example slow, not wrong.
settings.register_profile("loadgen", deadline=None)
settings.load_profile("loadgen")
COUNTING = (
    emit,
    histogram,
    http1,
    outlet,
    planned,
    record,
    record_json,
    sse,
)  # modules that count live objects and bytes
DEBUG = record.live() is not None

# Under nohup, or in the background of a script, these are ignored, which every program that tests start would inherit.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def state_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Runs leave their journals, and data sets what they keep, in folders of the tests' own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True, scope="session")
def _the_build_that_was_asked_for() -> None:
    for module in COUNTING:
        assert (module.live() is not None) == (os.environ.get("LOADGEN_DEBUG") == "1"), module.__file__
        sanitized = b"__asan_init" in Path(module.__file__).read_bytes()
        assert sanitized == (os.environ.get("LOADGEN_SANITIZE") == "1"), module.__file__


@pytest.fixture(autouse=True)
def _no_handle_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """In a debug build, a test leaves no object of the compiled modules and none of their bytes."""
    if not DEBUG:
        yield
        return
    before = _live()
    yield
    request.node.funcargs.clear()  # what other fixtures gave the test
    if _live() != before:
        gc.collect()
    assert _live() == before


def _live() -> list[object]:
    return [module.live() for module in COUNTING]
