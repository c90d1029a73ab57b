"""A Ray cluster of two nodes on this machine, each with an address of loopback."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil

HEAD, OTHER = "127.0.0.2", "127.0.0.3"
START_S = 60.0


class Cluster:
    """Two nodes, once it has been started.

    Attributes:
        address: Of the head.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.address = f"{HEAD}:{_free_port()}"

    def start(self) -> None:
        """Start both."""
        port = self.address.rpartition(":")[2]
        self._start(
            "--head",
            f"--node-ip-address={HEAD}",
            f"--port={port}",
            f"--temp-dir={self._folder}",
            "--include-dashboard=false",
            f"--dashboard-port={_free_port()}",
        )
        self.add()

    def add(self) -> None:
        """Start the second node."""
        self._start(f"--address={self.address}", f"--node-ip-address={OTHER}")

    def lose(self) -> None:
        """Kill the second node."""
        for process in self._processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                if "raylet" in process.name() and any(OTHER in word for word in process.cmdline()):
                    for one in (process, *process.children(recursive=True)):
                        one.kill()
                    process.wait()

    def end(self) -> None:
        """Kill what is left; nothing of it but what was started here."""
        for process in self._processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    def _start(self, *flags: str) -> None:
        command = [
            Path(sys.executable).with_name("ray"),
            "start",
            "--num-cpus=1",
            "--disable-usage-stats",
            *flags,
        ]
        environment = os.environ | {"RAY_USAGE_STATS_ENABLED": "0"}
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=START_S, env=environment
        )
        if done.returncode:
            raise RuntimeError(
                f"ray start ended with {done.returncode}: {done.stderr or done.stdout}"
            )

    def _processes(self) -> list[psutil.Process]:
        """All that Ray has started with the cluster's folder in its command line, and what these
        have started.

        Some of those have another title since.
        """
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                if any(str(self._folder) in word for word in process.cmdline()):
                    found += [process, *process.children(recursive=True)]
        return list(dict.fromkeys(found))


@contextlib.contextmanager
def running() -> Iterator[Cluster]:
    """A cluster, of which nothing is left at the end."""
    # Its sockets' paths may have 107 characters.
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))
    cluster = Cluster(folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.end()
        shutil.rmtree(folder, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as unused:
        unused.bind((HEAD, 0))
        return int(unused.getsockname()[1])
