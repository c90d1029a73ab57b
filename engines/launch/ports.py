"""Ports: reserving a port for a server, outside the range of outgoing connections, and finding
who holds a port.
"""

import contextlib
import errno
import os
import random
import socket
import struct
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from loadgen.engines.launch import processes
from loadgen.errors import BadInput, EngineError

MIN_PORT = 20_000
MAX_PORT = 65_535
TRIES = 1000
LISTEN_STATE = "0A"
DEFAULT_PORTS = {"http": 80, "https": 443}
# linux/netlink.h, linux/sock_diag.h and linux/inet_diag.h.
NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
DUMP_REQUEST = 0x301
NLMSG_ERROR = 2
NETLINK_HEADER = struct.Struct("=IHHII")  # size, kind, flags, number, sender
DIAG_REQUEST = struct.Struct("=BBBxI48x")  # family, protocol, extensions, states
DIAG_ANSWER = struct.Struct("!4xH62xI")  # the port; the inode, in the byte order of the host
MAX_NETLINK_BYTES = 1 << 16


class Reservation(Struct, frozen=True):
    """A port that no other loadgen process can reserve until it is released or this process ends.

    Attributes:
        host: The address.
        port: The port.
        lock: An abstract socket named after the port; the kernel frees the name when the process
            ends.
    """

    host: str
    port: int
    lock: socket.socket

    def release(self) -> None:
        """Release the port."""
        self.lock.close()


def reserve(host: str, port: int | None = None) -> Reservation:
    """Reserve `port`, or a free one.

    A free one lies outside the range from which the kernel takes the ports of outgoing connections.
    Otherwise a load of thousands of connections could take it between two servers.

    Raises:
        BadInput: The requested port is taken; the message names the process that holds it, if it is
            visible.
        EngineError: No port is free.
    """
    for candidate in _candidates() if port is None else [port]:
        lock = _lock(candidate)
        if lock is None:
            continue
        try:
            if is_free(host, candidate):
                reserved = Reservation(host, candidate, lock)
                lock = None
                return reserved
        finally:
            if lock is not None:
                lock.close()
    if port is not None:
        raise BadInput(
            "port",
            f"{port} is taken by {holder(port)}",
            "give another, or none to have loadgen choose one",
        )
    raise EngineError(
        f"none of {TRIES} ports between {MIN_PORT} and {MAX_PORT} is free on {host}; end some "
        "servers"
    )


def is_free(host: str, port: int) -> bool:
    """Return whether a server can listen on a port now.

    Raises:
        BadInput: The host is not an address of this machine, or the port needs root.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((host, port))
            tried.listen(1)  # with SO_REUSEADDR two sockets may bind, but only one may listen
        except PermissionError:
            raise BadInput(
                "port", f"only root may listen on {port}", "give one above 1023"
            ) from None
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            raise BadInput(
                "host", f"cannot listen on {host} ({error.strerror})", "give 127.0.0.1"
            ) from None
    return True


def holder(port: int) -> str:
    """Return the process that listens on a port, as text."""
    inodes = _listening(port)
    for pid in _owners(inodes):
        return f"process {pid} ({processes.command(pid)})"
    return "a process of another user" if inodes else "a server that is about to start"


def servers(urls: Iterable[str], unix_socket: str | None = None) -> tuple[int, ...]:
    """Return the ids of the processes on this machine that listen where these URLs point to.

    Args:
        urls: Of servers; those on other machines, and those that this user may not see, add none.
        unix_socket: The path of the socket on which the server listens; None: on TCP ports.
    """
    if unix_socket is not None:
        return tuple(_owners(_listening_on(unix_socket)))
    inodes = set()
    for url in map(urlsplit, urls):
        if url.hostname and _is_here(url.hostname):
            inodes |= _listening(url.port or DEFAULT_PORTS.get(url.scheme, 0))
    return tuple(_owners(inodes)) if inodes else ()


def _is_here(host: str) -> bool:
    """Whether a socket of this machine may have this address or name."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as tried:
        try:
            tried.bind((host, 0))
        except OSError:
            return False
    return True


def _listening_on(path: str) -> set[str]:
    """Return the link targets of the file descriptors of the Unix sockets with a path."""
    table = Path("/proc/net/unix")
    rows = table.read_text().splitlines()[1:] if table.exists() else []
    fields = (row.split(maxsplit=7) for row in rows)
    return {f"socket:[{row[6]}]" for row in fields if row[7:] == [path]}


def _listening(port: int) -> set[str]:
    """Return the link targets of the file descriptors of sockets that listen on a port."""
    if sys.platform != "linux":
        return set()
    try:
        return _listening_by_netlink(port)
    except OSError:  # a kernel without it
        pass
    inodes = set()
    for table in ("tcp", "tcp6"):
        path = Path(f"/proc/net/{table}")
        for row in path.read_text().splitlines()[1:] if path.exists() else ():
            fields = row.split()
            if fields[3] == LISTEN_STATE and int(fields[1].rpartition(":")[2], 16) == port:
                inodes.add(f"socket:[{fields[9]}]")
    return inodes


def _listening_by_netlink(port: int) -> set[str]:
    """Ask the kernel for the sockets that listen (sock_diag(7)), in 0.4 ms of CPU time: to write
    /proc/net/tcp, it goes through the table of all connections, in 10 ms or more.

    Raises:
        OSError: The kernel does not tell.
    """
    inodes = set()
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, NETLINK_SOCK_DIAG) as kernel:
        for family in (socket.AF_INET, socket.AF_INET6):
            request = DIAG_REQUEST.pack(family, socket.IPPROTO_TCP, 0, 1 << int(LISTEN_STATE, 16))
            size = NETLINK_HEADER.size + len(request)
            header = NETLINK_HEADER.pack(size, SOCK_DIAG_BY_FAMILY, DUMP_REQUEST, 0, 0)
            kernel.send(header + request)
            kind = SOCK_DIAG_BY_FAMILY
            while kind == SOCK_DIAG_BY_FAMILY:
                answer = kernel.recv(MAX_NETLINK_BYTES)
                while answer and kind == SOCK_DIAG_BY_FAMILY:
                    size, kind, *_ = NETLINK_HEADER.unpack_from(answer)
                    if kind == NLMSG_ERROR:
                        raise OSError("the kernel does not tell")
                    if kind == SOCK_DIAG_BY_FAMILY:
                        bound, inode = DIAG_ANSWER.unpack_from(answer, NETLINK_HEADER.size)
                        if bound == port:
                            inodes.add(f"socket:[{socket.ntohl(inode)}]")
                    answer = answer[size + 3 & ~3 :]
    return inodes


def _owners(inodes: set[str]) -> Iterator[int]:
    """Yield the ids of the processes of this user that have one of these sockets."""
    for pid in processes.process_ids():
        with contextlib.suppress(OSError):  # it has ended, or belongs to another user
            if any(
                os.readlink(f"/proc/{pid}/fd/{file}") in inodes
                for file in os.listdir(f"/proc/{pid}/fd")
            ):
                yield pid


def _candidates() -> Iterator[int]:
    path = Path("/proc/sys/net/ipv4/ip_local_port_range")
    low, high = map(int, path.read_text().split()) if path.exists() else (32_768, 60_999)
    outside = [*range(MIN_PORT, low), *range(max(MIN_PORT, high + 1), MAX_PORT + 1)] or range(
        MIN_PORT, MAX_PORT + 1
    )
    return (random.choice(outside) for _ in range(TRIES))


def _lock(port: int) -> socket.socket | None:
    lock = socket.socket(socket.AF_UNIX)
    try:
        lock.bind(f"\0loadgen-port-{port}")
    except OSError:
        lock.close()
        return None
    return lock
