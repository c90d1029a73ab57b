"""Connections: how many of them a process may have, and how many a server on this machine can take."""

import re
from pathlib import Path

from loadgen.cli.doctor.limit import Limit, State, enough, unknown
from loadgen.util import machine

STREAMS = 10_000  # at once from one process: what a heavy run needs
TIME_WAIT_S = 60  # the kernel's, and not to be changed
# What waits for a server is taken in bursts: a load generator may open its connections all at once.
FEWEST_WAITING = 1024


def limits(root: Path) -> list[Limit]:
    """All of them, read below `root`."""
    return [files(root), ports(root), time_wait(root), accept_queue(root), syn_backlog(root)]


def files(root: Path) -> Limit:
    """Files that a process may have open, a connection being one."""
    name, bounds = "open files", "the connections of a process"
    found = re.search(
        r"^Max open files +(\w+) +(\w+)", machine.read_system_file(root / "proc/self/limits"), re.MULTILINE
    )
    if not found:
        return unknown(name, bounds)
    soft, hard = found.groups()
    value = _count(hard) if soft == hard else f"{_count(soft)}, which a run raises to {_count(hard)} by itself"
    remedy = (
        "ulimit -n 65536, as root; for good in /etc/security/limits.conf, LimitNOFILE= of systemd, or "
        "docker run --ulimit nofile=65536:65536"
    )
    if not hard.isdecimal():
        return Limit(name, State.OK, value, "any number of connections at once from one process", remedy)
    most = int(hard) - machine.SPARE_FILES
    return Limit(name, enough(most >= STREAMS), value, f"at most {most:,} connections at once from one process", remedy)


def ports(root: Path) -> Limit:
    """Ports that connections are given."""
    name, bounds = "local ports", "the connections to one server"
    found = machine.local_ports(root)
    if found is None:
        return unknown(name, bounds)
    first, last = found
    most = machine.max_connections_by_ports(root)
    bounds = f"at most {most:,} connections at once from one address to one server"
    remedy = 'sysctl -w net.ipv4.ip_local_port_range="1024 65535", or several addresses with --source-address'
    return Limit(name, enough(most >= STREAMS), f"{first} to {last}", bounds, remedy)


def time_wait(root: Path) -> Limit:
    """Whether the port of a connection that this side has closed can be used again at once."""
    name, remedy = "ports in TIME_WAIT", "sysctl -w net.ipv4.tcp_tw_reuse=1"
    set_to = machine.read_system_file(root / "proc/sys/net/ipv4/tcp_tw_reuse").strip()
    values = {"0": "never reused early", "1": "reused", "2": "reused on loopback alone"}
    if set_to not in values:
        return unknown(name, "connections that this side closes")
    if set_to == "1":
        return Limit(name, State.OK, values[set_to], "connections that this side closes cost no port", remedy)
    rate = machine.max_connections_by_ports(root) // TIME_WAIT_S
    bounds = f"where this side closes connections, at most {rate:,} new ones a second to one server"
    return Limit(name, enough(set_to == "2"), values[set_to], bounds, remedy)


def accept_queue(root: Path) -> Limit:
    """Connections that a server has not accepted yet."""
    name, bounds = "somaxconn", "a server on this machine: connections that wait to be accepted"
    return _waiting(name, machine.read_system_file(root / "proc/sys/net/core/somaxconn"), bounds, "net.core.somaxconn")


def syn_backlog(root: Path) -> Limit:
    """Connections of which a server has seen only the first packet."""
    name, bounds = "SYN backlog", "a server on this machine: connections that are half open"
    found = machine.read_system_file(root / "proc/sys/net/ipv4/tcp_max_syn_backlog")
    return _waiting(name, found, bounds, "net.ipv4.tcp_max_syn_backlog")


def _waiting(name: str, text: str, bounds: str, key: str) -> Limit:
    if not text.strip().isdecimal():
        return unknown(name, bounds)
    most, remedy = int(text), f"sysctl -w {key}=16384, before that server starts"
    return Limit(name, enough(most >= FEWEST_WAITING), f"{most:,}", f"{bounds}, no more than that", remedy)


def _count(text: str) -> str:
    return f"{int(text):,}" if text.isdecimal() else text
