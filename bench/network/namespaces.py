"""Namespaces: two hosts on one machine, as network namespaces of Linux."""

import contextlib
import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

NETWORK = 0x40000000  # CLONE_NEWNET
FOLDER = Path("/run/netns")
NEAR_ADDRESS, FAR_ADDRESS = "10.77.0.1", "10.77.0.2"


class NoNamespaces(Exception):
    """This system or this user has no network namespaces."""


@contextlib.contextmanager
def two_hosts() -> Iterator[tuple[str, str]]:
    """Give the names of two new namespaces: the client's and the server's.

    Raises:
        NoNamespaces: None can be made here.
    """
    if shutil.which("ip") is None or not Path("/dev/net/tun").exists():
        raise NoNamespaces("the command `ip` or the device /dev/net/tun is missing")
    names = f"loadgen-near-{os.getpid()}", f"loadgen-far-{os.getpid()}"
    with contextlib.ExitStack() as stack:
        for name in names:
            command = ["ip", "netns", "add", name]
            addition = subprocess.run(command, capture_output=True, text=True, check=False)
            if addition.returncode:
                raise NoNamespaces(addition.stderr.strip())
            stack.callback(subprocess.run, ["ip", "netns", "delete", name], check=True)
            _run_in(name, "ip", "link", "set", "lo", "up")
        yield names


def enter(name: str) -> None:
    """Move the calling thread into a namespace, for good: threads and processes that it starts
    begin there.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = os.open(FOLDER / name, os.O_RDONLY)
    try:
        if libc.setns(descriptor, NETWORK) != 0:
            raise OSError(ctypes.get_errno(), f"cannot enter the namespace {name}")
    finally:
        os.close(descriptor)


def set_receive_buffer(name: str, size: int) -> None:
    """Let no socket of a namespace have more bytes than this unread."""
    _run_in(name, "sysctl", "-qw", f"net.ipv4.tcp_rmem=4096 {size} {size}")


def _run_in(name: str, *command: str) -> None:
    subprocess.run(["ip", "netns", "exec", name, *command], check=True)
