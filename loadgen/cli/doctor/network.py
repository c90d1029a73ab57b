"""Limits of connections, of a client process and of a server here, and who stamps what arrives
on them.
"""

import contextlib
import socket
import struct
import sys
import time
from pathlib import Path

from loadgen.cli.doctor.limit import Limit, State, enough, judged, line_of, unknown
from loadgen.util import machine

SO_TIMESTAMPING = 37  # of most processors, as in linux/socket.h; Python does not name it
# SOF_TIMESTAMPING_RX_SOFTWARE, SOF_TIMESTAMPING_SOFTWARE
RECEIVED_BY_SOFTWARE = (1 << 3) | (1 << 4)
# The kernel begins to stamp some time after it was asked for the first time.
ATTEMPTS, APART_S = (20, 0.01)

STREAMS = 10_000  # concurrent streams of a heavy run, from one process
TIME_WAIT_S = 60  # fixed in the kernel
MIN_QUEUE = 1024  # a load generator may open many connections at once


def limits(root: Path) -> list[Limit]:
    """Return the limits on connections, read below `root`, and whether the kernel stamps what
    arrives.
    """
    counts = [files(root), ports(root), time_wait(root), accept_queue(root), syn_backlog(root)]
    return [*counts, arrival_times()]


def files(root: Path) -> Limit:
    """Return the limit on open files, of which each connection takes one."""
    name, bounds = "open files", "limits the connections of a process"
    match = line_of(root / "proc/self/limits", r"Max open files +(\w+) +(\w+)")
    if not match:
        return unknown(name, bounds)
    soft, hard = match.groups()
    value = (
        _count(hard)
        if soft == hard
        else f"{_count(soft)}, raised to {_count(hard)} by a run itself"
    )
    remedy = (
        "ulimit -n 65536, as root; permanently: /etc/security/limits.conf, LimitNOFILE= of "
        "systemd, or docker run --ulimit nofile=65536:65536"
    )
    if not hard.isdecimal():
        return Limit(
            name, State.OK, value, "one process can open any number of connections", remedy
        )
    most = int(hard) - machine.SPARE_FILES
    return Limit(
        name,
        enough(most >= STREAMS),
        value,
        f"one process can open at most {most:,} connections",
        remedy,
    )


def ports(root: Path) -> Limit:
    """Return the range of local ports."""
    name, bounds = "local ports", "limits the connections to one server"
    port_range = machine.local_ports(root)
    if port_range is None:
        return unknown(name, bounds)
    first, last = port_range
    most = machine.max_connections_by_ports(root)
    bounds = f"at most {most:,} connections from one address to one server"
    remedy = (
        'sysctl -w net.ipv4.ip_local_port_range="1024 65535", or use several addresses with '
        "--source-address"
    )
    return Limit(name, enough(most >= STREAMS), f"{first} to {last}", bounds, remedy)


def time_wait(root: Path) -> Limit:
    """Return whether ports in TIME_WAIT can be reused."""
    name, remedy = "ports in TIME_WAIT", "sysctl -w net.ipv4.tcp_tw_reuse=1"
    set_to = machine.read_system_file(root / "proc/sys/net/ipv4/tcp_tw_reuse").strip()
    values = {"0": "not reused", "1": "reused", "2": "reused only on loopback"}
    if set_to not in values:
        return unknown(name, "limits new connections if the client closes them")
    if set_to == "1":
        return Limit(
            name,
            State.OK,
            values[set_to],
            "connections that the client closes do not block their ports",
            remedy,
        )
    rate = machine.max_connections_by_ports(root) // TIME_WAIT_S
    bounds = f"if the client closes connections, at most {rate:,} new ones per second to one server"
    return Limit(name, enough(set_to == "2"), values[set_to], bounds, remedy)


def accept_queue(root: Path) -> Limit:
    """Return the limit on connections that a server has not accepted yet."""
    text = machine.read_system_file(root / "proc/sys/net/core/somaxconn")
    return _waiting("somaxconn", text, "connections can wait", "net.core.somaxconn")


def syn_backlog(root: Path) -> Limit:
    """Return the limit on half-open connections."""
    text = machine.read_system_file(root / "proc/sys/net/ipv4/tcp_max_syn_backlog")
    return _waiting(
        "SYN backlog", text, "connections can be half-open", "net.ipv4.tcp_max_syn_backlog"
    )


def arrival_times() -> Limit:
    """Return whether a token has the kernel's time of its arrival, or the time at which loadgen
    reads it.
    """
    stamped = kernel_stamps()
    return judged(
        "arrival times",
        stamped,
        "stamped by the kernel" if stamped else "not stamped by the kernel",
        good="the time of a token does not depend on when loadgen reads it",
        bad="a token has the time at which loadgen reads it, and the timing error is how late "
        "that may be",
        remedy="measure from Linux, and outside of sandboxes that have a network stack of their "
        "own",
    )


def kernel_stamps() -> bool:
    """Send a few bytes to this process, and look whether one of them comes with a stamp."""
    if sys.platform != "linux":
        return False
    with (
        contextlib.suppress(OSError),
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname(), timeout=1) as receiver,
        server.accept()[0] as sender,
    ):
        receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, RECEIVED_BY_SOFTWARE)
        for _ in range(ATTEMPTS):
            sender.send(b"x")
            _, ancillary, _, _ = receiver.recvmsg(1, 256)
            stamps = [
                data
                for level, kind, data in ancillary
                if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPING)
            ]
            if any(any(struct.unpack_from("=qq", stamp)) for stamp in stamps):
                return True
            time.sleep(APART_S)
    return False


def _waiting(name: str, text: str, what: str, key: str) -> Limit:
    good = f"so many {what} at a server on this machine"
    if not text.strip().isdecimal():
        return unknown(name, f"limits how many {what} at a server on this machine")
    most, remedy = int(text), f"sysctl -w {key}=16384, before the server starts"
    bad = f"{good}; further ones wait for a second or more"
    return judged(name, most >= MIN_QUEUE, f"{most:,}", good=good, bad=bad, remedy=remedy)


def _count(text: str) -> str:
    return f"{int(text):,}" if text.isdecimal() else text
