"""Sources: from which addresses of this machine connections come, so that each finds a port.

A connection takes a port of its own among those of its address, and to one server there are some 28,000 of them unless
the system says otherwise. From another address all of them are free again.
"""

import contextlib
import errno
import ipaddress
import socket
import struct
import sys
from collections.abc import Sequence
from typing import Any

from loadgen.errors import BadInput
from loadgen.util import machine
from loadgen.util.partition import WHOLE, Partition

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

FLAG = "--source-address"
# To a server on this machine connections may come from anywhere in 127.0.0.0/8: so many come from one address, and the
# next from the next. Fewer than there are ports, for other processes connect too; and so many that most runs need one.
LOOPBACK = ipaddress.IPv4Network("127.0.0.0/8")
FROM_ONE = 4096
# Of Linux, in <linux/in.h>. The first lets one port serve connections to several servers (4.2). By the second a search
# for a port takes any that is free (6.8): else odd ones are kept back until all even ones are taken, and from then on
# every connection costs a search through them, 0.9 ms in place of 0.02.
BIND_ADDRESS_NO_PORT, LOCAL_PORT_RANGE = 24, 51


def parse(text: str | None) -> tuple[Address, ...]:
    """The addresses of "A,B", none of None.

    Raises:
        BadInput: One is no address, or comes twice, or they are of both families.
    """
    found: list[Address] = []
    for word in map(str.strip, text.split(",") if text is not None else ()):
        try:
            found.append(ipaddress.ip_address(word))
        except ValueError as error:
            raise BadInput(FLAG, f"{word!r} is no IP address", "write A,B, as 10.0.0.5,10.0.0.6") from error
    if len(set(found)) < len(found):
        raise BadInput(FLAG, f"{text} names one twice", "name each once")
    if len({address.version for address in found}) > 1:
        raise BadInput(FLAG, f"{text} are of IPv4 and of IPv6", "give those of the family that the server has")
    return tuple(found)


def check(addresses: Sequence[Address], hosts: Sequence[str]) -> None:
    """Try whether connections to these hosts can come from each of the addresses.

    Raises:
        BadInput: One is no address of this machine, or not of a host's family.
    """
    for address in addresses:
        for host in hosts:
            with contextlib.suppress(ValueError):  # a name, which may have addresses of both families
                if ipaddress.ip_address(host).version != address.version:
                    raise BadInput(FLAG, f"from {address} there is no way to {host}", "give addresses of its family")
        with socket.socket(_family(address)) as tried:
            try:
                _bind(tried, address)
            except OSError as error:
                problem = f"{address} cannot be used ({error.strerror})"
                raise BadInput(FLAG, problem, "give addresses of this machine: `ip address` lists them") from error


def count(addresses: Sequence[Address], host: str) -> int:
    """From how many addresses connections to a host may come."""
    if addresses:
        return len(addresses)
    with contextlib.suppress(ValueError, OSError), socket.socket(socket.AF_INET) as tried:
        if ipaddress.ip_address(host) in LOOPBACK:
            _bind(tried, _loopback(1))
            return LOOPBACK.num_addresses
    return 1


class Sources:
    """Makes the sockets of connections to one server, in turn from each of the addresses that are given.

    Where none are, the system chooses; but the further ones of many to a server on this machine come from further
    loopback addresses, if it has them.

    Args:
        addresses: Those of this machine that may be used, of one family.
        partition: Whose connections they are, among those of the workers that share a run.
    """

    def __init__(self, addresses: Sequence[Address] = (), partition: Partition = WHOLE) -> None:
        self._addresses, self._made = tuple(addresses), partition.index if addresses else 0
        self._from_one = max(1, min(FROM_ONE, machine.most_by_ports()) // partition.count)
        first, last = machine.local_ports() or (0, 0)  # 0, 0: the system's own
        self._ports = struct.pack("I", first | last << 16)

    def socket(self, asked: tuple[int, int, int, str, tuple[Any, ...]]) -> socket.socket:
        """A socket for a connection.

        Args:
            asked: What `getaddrinfo` says of the server.

        Raises:
            OSError: The system has none, or there is no address of the server's family.
        """
        family, kind, protocol, _, server = asked
        made = socket.socket(family, kind, protocol)
        try:
            _allow(made, LOCAL_PORT_RANGE, self._ports)
            turn, self._made = self._made, self._made + 1
            if self._addresses:
                _bind(made, self._addresses[turn % len(self._addresses)])
            elif turn >= self._from_one and family == socket.AF_INET and ipaddress.ip_address(server[0]) in LOOPBACK:
                with contextlib.suppress(OSError):  # a system with one loopback address: let it choose
                    _bind(made, _loopback(turn // self._from_one))
        except OSError:
            made.close()
            raise
        return made


def _loopback(number: int) -> Address:
    """One of the loopback addresses; 0 is 127.0.0.1, and after the last comes the first."""
    return LOOPBACK[1 + number % (LOOPBACK.num_addresses - 2)]


def _family(address: Address) -> int:
    return socket.AF_INET if address.version == 4 else socket.AF_INET6


def _bind(made: socket.socket, address: Address) -> None:
    """Have a connection come from an address; its port is chosen only once it is known where it goes."""
    if made.family != _family(address):
        raise OSError(errno.EADDRNOTAVAIL, f"{address} is not of the server's family")
    _allow(made, BIND_ADDRESS_NO_PORT, struct.pack("i", 1))
    place = socket.getaddrinfo(str(address), 0, made.family, made.type, flags=socket.AI_NUMERICHOST)[0][4]
    made.bind(place)


def _allow(made: socket.socket, option: int, value: bytes) -> None:
    """Set an option of Linux, where the kernel has it."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            made.setsockopt(socket.IPPROTO_IP, option, value)
