"""An engine whose servers behave as their raw flags say; see fake_engine_server.py."""

import contextlib
import os
import re
import select
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from loadgen.engines import Launch, Place, Probes, Server
from loadgen.engines.launch import ports

SCRIPT = Path(__file__).with_name("fake_engine_server.py")


class Fake:
    name = "fake"

    def __init__(
        self,
        probes: Probes | None = None,
        command: Sequence[str] = (sys.executable, "-S", str(SCRIPT)),
    ) -> None:
        self.probes = probes or Probes(
            health="/health", version="/told", resolved="/told", flush=("/flush",)
        )
        self.command = tuple(command)

    def version(self) -> str | None:
        return None

    def knobs(self) -> Mapping[str, str]:
        return {"max_seqs": "variable max_seqs"}

    def launch(
        self, model: str, knobs: Mapping[str, object], raw: Sequence[str], place: Place
    ) -> Launch:
        argv = (
            *self.command,
            "--host",
            place.host,
            "--port",
            str(place.port),
            "--model",
            model,
            *raw,
        )
        return Launch(
            argv,
            place.base_url,
            model,
            env={name: str(value) for name, value in knobs.items()},
            files={place.folder / "private" / "config.json": "{}"},
        )


def wait_for_end(pid: int, timeout_s: float = 20.0) -> bool:
    """Whether the process has ended in time; it need not be a child."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(timeout_s * 1000))
    finally:
        os.close(descriptor)


def gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def daemon_of(server: Server) -> int:
    """The id of the daemon that the server has left, by its log."""
    found = re.search(r"daemon (\d+)", server.log.text())
    assert found, server.log.text()
    return int(found[1])


def litter_of(server: Server) -> list[Path]:
    """The files that the server has made and not removed, by its log."""
    found = re.search(r"littered (\S+) (\S+)", server.log.text())
    assert found, server.log.text()
    return [Path(path) for path in found.groups()]


def wait_until(what: Callable[[], bool], server: Server) -> None:
    """Wait for something that a server does on disk, as long as that lives; the test's timeout
    bounds it.
    """
    while not what():
        assert not server.wait_ended(0.01), server.log.text()


def is_answered(port: int) -> bool:
    """Whether somebody listens there."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@contextlib.contextmanager
def a_stranger_who_is_faster() -> Iterator[None]:
    """Somebody listens at the port of the next reservation, once it has been made."""
    reserve = ports.reserve

    def slow(host: str, port: int | None = None) -> ports.Reservation:
        reserved = reserve(host, port)
        # Connections that ended there may linger.
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        stranger.bind((host, reserved.port))
        stranger.listen()
        return reserved

    with socket.socket() as stranger, pytest.MonkeyPatch.context() as patch:
        patch.setattr(ports, "reserve", slow)
        yield
