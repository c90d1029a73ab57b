"""What loadgen does where the system is not Linux, as far as Linux can show it."""

import ctypes
import os
import resource
import runpy
import sys

import pytest

from loadgen.engines import Launcher
from loadgen.engines.launch import supervisor_main
from loadgen.errors import EngineError
from loadgen.runner.cluster_node import facts_by_value
from loadgen.util import machine
from loadgen.workload.files import cache
from tests.helpers.fake_engine import Fake


def test_on_macos_no_more_files_are_asked_for_than_it_gives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []
    # There it is this number.
    infinite = resource.RLIM_INFINITY if resource.RLIM_INFINITY > 0 else (1 << 63) - 1
    monkeypatch.setattr(resource, "getrlimit", lambda what: (256, infinite))
    monkeypatch.setattr(resource, "setrlimit", lambda what, limits: asked.append(limits))
    monkeypatch.setattr(sys, "platform", "darwin")
    machine.raise_open_files_limit()
    assert asked == [(10_240, infinite)]


def test_cache_entry_without_nameless_files(tmp_path, monkeypatch) -> None:
    monkeypatch.delattr(os, "O_TMPFILE")
    path = tmp_path / "entry"
    os.close(cache._open_nameless(str(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    assert path.exists()


def test_without_affinity_all_cores_are_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    assert machine.usable_cores() == facts_by_value()()["cores"] == os.cpu_count()


def test_the_supervisor_can_be_imported_where_there_is_no_prctl(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    assert "main" in runpy.run_path(supervisor_main.__file__)


def test_engines_start_on_linux_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(EngineError, match=r"only on Linux.*give its --base-url"):
        Launcher().begin(Fake(), "model")
