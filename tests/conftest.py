"""What all tests share.

Tests of a room (`tests/<room>`) are unit tests: they start no process and open no socket, unless
they are marked `integration`. What lies in tests/slow and tests/qa is marked `slow`.
"""

import gc
import os
import platform
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from loadgen.core import accumulator, answer, histogram, http1, record, record_json, sse
from loadgen.engines.sim import emit, outlet, planned
from tests.helpers.thinning import UNIT_EXAMPLES

pytest_plugins = ["loadgen.testing.fixtures"]

# A busy machine makes an example slow, not wrong.
settings.register_profile("loadgen", deadline=None)
settings.register_profile("unit", deadline=None, max_examples=UNIT_EXAMPLES)  # for the inner loop
settings.load_profile("loadgen")
# Modules that count live objects and bytes.
COUNTING = (
    *(accumulator, answer, emit, histogram, http1, outlet, planned, record, record_json),
    sse,
)
DEBUG = record.live() is not None

# Under nohup, or in the background of a script, these are ignored, which every program that tests
# start would inherit.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


TESTS = Path(__file__).parent
OUTSIDE_ROOMS = ("integration", "slow", "qa")
REACHES_OUT = {"socket.bind", "socket.connect", "subprocess.Popen", "os.fork", "os.posix_spawn"}
unit_test: list[str] = []  # the one that runs


def _stay_inside(event: str, arguments: object) -> None:
    if unit_test and event in REACHES_OUT:
        raise AssertionError(
            f"{unit_test[-1]} is a unit test, and {event} is for tests marked integration"
        )


platform.platform()  # starts `uname` the first time; later calls return the same text from memory
sys.addaudithook(_stay_inside)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what lies in tests/slow and tests/qa."""
    for item in items:
        if item.path.is_relative_to(TESTS / "slow") or item.path.is_relative_to(TESTS / "qa"):
            item.add_marker("slow")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Decide which tests each of several workers gets."""
    from tests.helpers.scheduling import FileScheduling

    return FileScheduling(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker whether it collects its share of the files alone."""
    node.workerinput["collects_share"] = node.config.getoption("dist") == "each"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With `--dist each`, leave files out that another worker collects: to import all files and to
    collect all tests takes longer than many of the tests.
    """
    worker = getattr(config, "workerinput", None)
    if worker is None or not worker["collects_share"]:
        return None
    from tests.helpers.scheduling import is_of_another_worker

    return is_of_another_worker(collection_path, worker) or None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Hold unit tests to what they are."""
    folder = (
        item.path.relative_to(TESTS).parts[0] if item.path.is_relative_to(TESTS) else "integration"
    )
    if (
        folder in OUTSIDE_ROOMS
        or item.get_closest_marker("integration")
        or item.get_closest_marker("slow")
    ):
        return (yield)
    unit_test.append(item.nodeid)
    try:
        return (yield)
    finally:
        unit_test.clear()


@pytest.fixture(scope="session", autouse=True)
def state_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Runs leave their journals, and data sets what they keep, in folders of the tests' own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.delenv("GITHUB_STEP_SUMMARY", raising=False)  # that of a step that runs the tests
        yield


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a test an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(autouse=True, scope="session")
def _the_build_that_was_asked_for() -> None:
    for module in COUNTING:
        assert (module.live() is not None) == (os.environ.get("LOADGEN_DEBUG") == "1"), (
            module.__file__
        )
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
