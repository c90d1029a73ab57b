"""Limits of the machine: descriptors and ports are checked first; a full disk loses no number."""

import asyncio
import contextlib
import errno
import os
import resource
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loadgen.config.settings import RunSettings
from loadgen.core import keep_alive
from loadgen.errors import BadInput
from loadgen.runner.loop_runner import LoopRunner
from loadgen.runner.preparer import PrepareOrder, prepare
from loadgen.testing.faulty import Faulty
from loadgen.util import machine
from loadgen.util.clock import NS_PER_S
from loadgen.util.source_address import SourceAddresses
from loadgen.workload import request_store
from loadgen.workload.prompt import Prompt
from tests.helpers.fault_requests import target
from tests.helpers.fault_runs import carried_out, job, run
from tests.helpers.repeated import Repeated

SYSTEMS_CHOICE = "0.0.0.0"  # the address of a socket that is not bound
FULL = "/dev/full"  # every write to it finds no space left


PROMPTS = Repeated(Prompt("word " * 200, 200, 2, "test"))


async def refused(faulty: Faulty, folder: Path, **settings: Any) -> BadInput:
    never = asyncio.get_running_loop().create_future()  # refused before the requests are waited for
    with pytest.raises(BadInput) as caught:
        await carried_out(LoopRunner(), job(faulty.url, folder, 500, **settings), never)
    assert faulty.connections == 0
    return caught.value


@contextlib.contextmanager
def files(count: int) -> Iterator[None]:
    """Let this process open so many files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def few_files() -> Iterator[None]:
    """This process may open 200 files."""
    with files(200):
        yield


@pytest.fixture
def few_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    """There are 400 local ports."""
    monkeypatch.setattr(machine, "local_ports", lambda root=None: (40000, 40399))


@pytest.mark.usefixtures("few_files")
@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({}, "--max-concurrency"),
        ({"max_concurrency": 400}, "--max-concurrency"),
        ({"request_rate": 10.0, "warm_connections": "400"}, "--warm-connections"),
    ],
    ids=["a burst", "a cap", "connections ahead"],
)
async def test_too_few_files_are_refused_with_the_numbers_needed(
    faulty: Faulty, tmp_path: Path, settings: dict[str, Any], field: str
) -> None:
    error = await refused(faulty, tmp_path, **settings)
    needed = 500 if not settings else 400
    assert error.field == field
    assert str(needed) in error.problem
    assert str(200 - machine.SPARE_FILES) in error.problem
    assert f"ulimit -n {needed + 1000}" in error.remedy


@pytest.mark.usefixtures("few_ports")
async def test_too_few_ports_are_refused_with_the_numbers_needed(
    faulty: Faulty, tmp_path: Path
) -> None:
    error = await refused(faulty, tmp_path, source_address="127.0.0.5")
    assert error.field == "--max-concurrency"
    assert "500 requests at once" in error.problem
    assert "local ports allow 360" in error.problem
    assert "--source-address" in error.remedy
    assert "ip_local_port_range" in error.remedy


@pytest.mark.usefixtures("few_ports")
@pytest.mark.parametrize(
    ("settings", "sources"),
    [
        ({}, {SYSTEMS_CHOICE, "127.0.0.2"}),
        ({"source_address": "127.0.0.5,127.0.0.6"}, {"127.0.0.5", "127.0.0.6"}),
    ],
    ids=["loopback", "as given"],
)
async def test_more_connections_than_one_address_has_ports_come_from_several(
    faulty: Faulty,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, Any],
    sources: set[str],
) -> None:
    seen, make = list[str](), SourceAddresses.socket

    def watched(self: SourceAddresses, asked: Any) -> socket.socket:
        made = make(self, asked)
        seen.append(made.getsockname()[0])
        return made

    monkeypatch.setattr(SourceAddresses, "socket", watched)
    # On a slow machine connections would grow too old during the run, and others would be opened in
    # their place.
    monkeypatch.setattr(keep_alive, "SAFE_AGE_NS", 3600 * NS_PER_S)
    measured = await run(job(faulty.url, tmp_path, 500, warm_connections="500", **settings))
    assert measured.snapshot.outcomes == {"ok": 500}
    assert measured.snapshot.counters["warm_connections"] == len(seen) == 500
    assert set(seen) == sources


@pytest.mark.parametrize(
    "settings", [{"max_concurrency": 20}, {"request_rate": 2000.0}], ids=["a cap", "a rate"]
)
async def test_run_within_the_limits_is_accepted(
    faulty: Faulty, tmp_path: Path, settings: dict[str, Any]
) -> None:
    with files(
        400
    ):  # for both ends of 60 connections, and of as many spare ones: the server is in this process
        measured = await run(job(faulty.url, tmp_path, 60, **settings))
    assert measured.snapshot.outcomes == {"ok": 60}


async def test_a_full_disk_ends_the_records_and_not_the_run(faulty: Faulty, tmp_path: Path) -> None:
    measured = await run(job(faulty.url, tmp_path, 300, max_concurrency=20, records=FULL))
    assert measured.snapshot.outcomes == {"ok": 300}
    assert measured.trailer.records_error == os.strerror(errno.ENOSPC)


async def test_a_disk_without_room_for_the_requests_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bodies").symlink_to(FULL)
    order = PrepareOrder(RunSettings(), target("http://127.0.0.1:9"), 50, tmp_path)
    with pytest.raises(BadInput, match="no room for 50 requests") as caught:
        prepare(order, PROMPTS)
    assert caught.value.field == "TMPDIR"
    assert os.strerror(errno.ENOSPC) in caught.value.problem


def test_another_fault_of_the_disk_is_not_called_a_full_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(request_store, "write", broken)
    with pytest.raises(OSError, match="broken"):
        prepare(PrepareOrder(RunSettings(), target("http://127.0.0.1:9"), 50, tmp_path), PROMPTS)
