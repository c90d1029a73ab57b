"""Source addresses of connections: which local address each connection uses, so that it finds a
free local port.

To one server an address has about 28,000 local ports by default. Each further local address has as
many again.
"""

import contextlib
import errno
import ipaddress
import socket
import struct
import sys
from collections.abc import Sequence
from typing import Any

from loadgen.errors import BadInput, setting
from loadgen.util import machine
from loadgen.util.partition import WHOLE, Partition

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

FLAG = setting.source_address
# Connections to a server on this machine may use any address of 127.0.0.0/8. After so many
# connections the next address is used. The limit leaves ports to other processes, and is high
# enough that most runs use one address.
LOOPBACK = ipaddress.IPv4Network("127.0.0.0/8")
CONNECTIONS_PER_LOOPBACK = 4096
# From <linux/in.h>. The first option lets one port serve connections to several servers (Linux
# 4.2). With the second the kernel takes any free port (6.8). Without it the kernel uses odd ports
# only after all even ones, and from then on each connection costs a search of 0.9 ms instead of
# 0.02 ms.
BIND_ADDRESS_NO_PORT, LOCAL_PORT_RANGE = 24, 51


def parse(text: str | None) -> tuple[Address, ...]:
    """Parse --source-address, "A,B"; None gives no addresses.

    Raises:
        BadInput: A word is not an address, an address comes twice, or both families occur.
    """
    addresses: list[Address] = []
    for word in map(str.strip, text.split(",") if text is not None else ()):
        try:
            addresses.append(ipaddress.ip_address(word))
        except ValueError as error:
            raise BadInput(
                FLAG, f"invalid IP address {word!r}", "write A,B, for example 10.0.0.5,10.0.0.6"
            ) from error
    if len(set(addresses)) < len(addresses):
        raise BadInput(FLAG, f"{text} contains an address twice", "give each address once")
    if len({address.version for address in addresses}) > 1:
        raise BadInput(FLAG, f"{text} mixes IPv4 and IPv6", "give addresses of the server's family")
    return tuple(addresses)


def check(addresses: Sequence[Address], hosts: Sequence[str]) -> None:
    """Check that a socket can be bound to each address, and that its family is the one of each
    host.

    Raises:
        BadInput: An address is not one of this machine, or of another family than a host.
    """
    for address in addresses:
        for host in hosts:
            with contextlib.suppress(
                ValueError
            ):  # a name, which may have addresses of both families
                if ipaddress.ip_address(host).version != address.version:
                    raise BadInput(
                        FLAG,
                        f"{address} cannot reach {host}, which has another address family",
                        "give addresses of the host's family",
                    )
        with socket.socket(_family(address)) as probe:
            try:
                _bind(probe, address)
            except OSError as error:
                problem = f"{address} cannot be used ({error.strerror})"
                raise BadInput(
                    FLAG, problem, "give addresses of this machine: `ip address` lists them"
                ) from error


def count_addresses(addresses: Sequence[Address], host: str) -> int:
    """Return how many local addresses connections to a host may use."""
    if addresses:
        return len(addresses)
    with contextlib.suppress(ValueError, OSError), socket.socket(socket.AF_INET) as probe:
        if ipaddress.ip_address(host) in LOOPBACK:
            _bind(probe, _loopback(1))
            return LOOPBACK.num_addresses
    return 1


class SourceAddresses:
    """Creates the sockets of connections to one server, bound to each of the given addresses in
    turn.

    Without addresses the system chooses. Many connections to a server on this machine use further
    loopback addresses.

    Args:
        addresses: Addresses of this machine, of one family.
        stripe: The partition of the worker that opens the connections.
    """

    def __init__(self, addresses: Sequence[Address] = (), stripe: Partition = WHOLE) -> None:
        self._addresses = tuple(addresses)
        self._sockets = stripe.index if addresses else 0
        self._per_loopback = max(
            1, min(CONNECTIONS_PER_LOOPBACK, machine.max_connections_by_ports()) // stripe.count
        )
        first, last = machine.local_ports() or (0, 0)  # 0, 0: the system's own
        self._ports = struct.pack("I", first | last << 16)

    def socket(self, server: tuple[int, int, int, str, tuple[Any, ...]]) -> socket.socket:
        """Create a socket for a connection.

        Args:
            server: A result of `getaddrinfo` for the server.

        Raises:
            OSError: The system has no socket, or there is no address of the server's family.
        """
        family, kind, protocol, _, peer = server
        created = socket.socket(family, kind, protocol)
        try:
            _set_option(created, LOCAL_PORT_RANGE, self._ports)
            turn = self._sockets
            self._sockets += 1
            if self._addresses:
                _bind(created, self._addresses[turn % len(self._addresses)])
            elif (
                turn >= self._per_loopback
                and family == socket.AF_INET
                and ipaddress.ip_address(peer[0]) in LOOPBACK
            ):
                with contextlib.suppress(
                    OSError
                ):  # a system with one loopback address: let it choose
                    _bind(created, _loopback(turn // self._per_loopback))
        except OSError:
            created.close()
            raise
        return created


def _loopback(number: int) -> Address:
    """Return a loopback address by number, modulo their count; 0 is 127.0.0.1."""
    return LOOPBACK[1 + number % (LOOPBACK.num_addresses - 2)]


def _family(address: Address) -> int:
    return socket.AF_INET if address.version == 4 else socket.AF_INET6


def _bind(sock: socket.socket, address: Address) -> None:
    """Bind a socket to an address. The kernel chooses its port at connect time."""
    if sock.family != _family(address):
        raise OSError(errno.EADDRNOTAVAIL, f"{address} is not of the server's family")
    _set_option(sock, BIND_ADDRESS_NO_PORT, struct.pack("i", 1))
    place = socket.getaddrinfo(
        str(address), 0, sock.family, sock.type, flags=socket.AI_NUMERICHOST
    )[0][4]
    sock.bind(place)


def _set_option(sock: socket.socket, option: int, value: bytes) -> None:
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_IP, option, value)
