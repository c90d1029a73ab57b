"""What all tests share.

Tests of a room (`tests/<room>`) are unit tests: they start no process and open no socket, unless
they are marked `integration`. What lies in tests/slow and tests/qa is marked `slow`.
"""

import contextlib
import ctypes
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

from loadgen.core import (
    accumulator,
    answer,
    histogram,
    http1,
    record,
    record_json,
    record_row,
    request_table,
    sse,
)
from loadgen.engines.sim import emit, outlet, planned
from loadgen.errors import FLAGS, Spelling, spelled
from tests.helpers.thinning import UNIT_EXAMPLES, few_cases, is_thinned

pytest_plugins = ["loadgen.testing.fixtures"]

# A busy machine makes an example slow, not wrong.
settings.register_profile("loadgen", deadline=None)
settings.register_profile("unit", deadline=None, max_examples=UNIT_EXAMPLES)  # for the inner loop
settings.load_profile("loadgen")
# Modules that count live objects and bytes.
COUNTING = (
    *(accumulator, answer, emit, histogram, http1, outlet, planned, record, record_json),
    *(record_row, request_table, sse),
)
DEBUG = record.live() is not None

# The C library keeps what tests free: to map it again took a sixth of the CPU time of make unit.
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3
with contextlib.suppress(AttributeError):  # of glibc
    mallopt = ctypes.CDLL(None).mallopt
    mallopt(M_TRIM_THRESHOLD, 1 << 30)
    mallopt(M_TOP_PAD, 64 << 20)
    mallopt(M_MMAP_THRESHOLD, 32 << 20)

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


def pytest_sessionstart() -> None:
    """Refuse a build with other switches than those that were asked for."""
    for module in COUNTING:
        sanitized = b"__asan_init" in Path(module.__file__).read_bytes()
        build = (module.live() is not None, sanitized)
        switches = (_is_set("LOADGEN_DEBUG"), _is_set("LOADGEN_SANITIZE"))
        if build != switches:
            raise pytest.UsageError(
                f"{module.__file__}: LOADGEN_DEBUG and LOADGEN_SANITIZE are {switches}, "
                f"and it was built with {build}: build again"
            )


def _is_set(switch: str) -> bool:
    return os.environ.get(switch) == "1"


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Iterator[None]:
    """Mark what lies in tests/slow and tests/qa; in `make unit`, run some cases of each test."""
    for item in items:
        if item.path.is_relative_to(TESTS / "slow") or item.path.is_relative_to(TESTS / "qa"):
            item.add_marker("slow")
    yield
    if is_thinned():
        kept = few_cases(items)
        config.hook.pytest_deselected(items=[*{*items}.difference(kept)])
        items[:] = kept


def pytest_collection_finish() -> None:
    """Keep what was collected out of every garbage collection: a run makes one of its own."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Decide which tests each of several workers gets."""
    from tests.helpers.scheduling import FileScheduling

    return FileScheduling(config, log) if config.getoption("dist") == "loadfile" else None


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


@pytest.fixture
def no_collection() -> Iterator[None]:
    """Has no cycle of references collected during a test."""
    gc.disable()
    yield
    gc.enable()


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


def _no_handle_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """In a debug build, a test leaves no object of the compiled modules and none of their bytes."""
    before = _live()
    yield
    request.node.funcargs.clear()  # what other fixtures gave the test
    if _live() != before:
        gc.collect()
    assert _live() == before


if DEBUG:
    pytest.fixture(_no_handle_is_left, autouse=True)


def _live() -> list[object]:
    return [module.live() for module in COUNTING]


@pytest.fixture(scope="session", autouse=True)
def flags_in_errors() -> Iterator[None]:
    """Errors name settings by their flags, as those of a command do."""
    with spelled(FLAGS):
        yield


@pytest.fixture
def arguments_in_errors() -> Iterator[None]:
    """Errors name settings as arguments, as those of a program do."""
    with spelled(Spelling()):
        yield
