"""Source addresses: the given ones in turn, and as many as needed on loopback."""

import socket
from collections.abc import Iterator

import pytest

from loadgen.errors import BadInput
from loadgen.util import machine, source_address
from loadgen.util.dialer import OUR_LIMITS
from loadgen.util.source_address import (
    BIND_ADDRESS_NO_PORT,
    CONNECTIONS_PER_LOOPBACK,
    LOCAL_PORT_RANGE,
    SourceAddresses,
    count_addresses,
    parse,
)


@pytest.fixture
def server() -> Iterator[tuple[str, int]]:
    """Where somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()


def connected(made: SourceAddresses, server: tuple[str, int], times: int) -> list[tuple[str, int]]:
    """The own addresses and ports of so many connections."""
    found = []
    for _ in range(times):
        with made.socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", server)) as each:
            each.connect(server)
            found.append(each.getsockname())
    return found


@pytest.mark.integration
def test_connections_come_from_each_address_in_turn(server: tuple[str, int]) -> None:
    found = connected(SourceAddresses(parse("127.0.0.7, 127.0.0.8")), server, 4)
    assert [address for address, _ in found] == ["127.0.0.7", "127.0.0.8", "127.0.0.7", "127.0.0.8"]


@pytest.mark.integration
def test_loopback_connections_use_further_addresses(
    server: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "max_connections_by_ports", lambda: 2)
    found = connected(SourceAddresses(), server, 5)
    assert [address for address, _ in found] == [
        "127.0.0.1",
        "127.0.0.1",
        "127.0.0.2",
        "127.0.0.2",
        "127.0.0.3",
    ]


def test_thousands_of_connections_use_one_address() -> None:
    made, asked = SourceAddresses(), (socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 1))
    first = [made.socket(asked) for _ in range(3)]
    assert [each.getsockname()[0] for each in first] == ["0.0.0.0"] * 3  # the system chooses
    assert CONNECTIONS_PER_LOOPBACK >= 4096
    for each in first:
        each.close()


@pytest.mark.integration
def test_where_loopback_has_one_address_the_system_chooses(
    server: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "max_connections_by_ports", lambda: 1)
    # One that no machine has.
    monkeypatch.setattr(source_address, "_loopback", lambda number: parse("192.0.2.1")[0])
    assert [address for address, _ in connected(SourceAddresses(), server, 3)] == ["127.0.0.1"] * 3
    assert count_addresses((), "127.0.0.1") == 1


def test_an_address_of_the_wrong_family_makes_no_connection() -> None:
    with pytest.raises(OSError, match="not of the server's family") as failed:
        SourceAddresses(parse("127.0.0.1")).socket(
            (socket.AF_INET6, socket.SOCK_STREAM, 0, "", ("::1", 1, 0, 0))
        )
    assert failed.value.errno in OUR_LIMITS, "and that is no fault of the server's"


@pytest.mark.integration
@pytest.mark.parametrize("text", ["127.0.0.1", "::1"])
def test_port_is_chosen_at_connect_time(text: str) -> None:
    (address,) = parse(text)
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        made = SourceAddresses((address,)).socket((family, socket.SOCK_STREAM, 0, "", (text, 1)))
    except OSError as error:
        pytest.skip(f"this machine has no {text}: {error}")
    with made:
        assert made.getsockname()[1] == 0, "bound to an address, and to no port"
        assert made.getsockopt(socket.IPPROTO_IP, BIND_ADDRESS_NO_PORT) == 1
        ports = made.getsockopt(socket.IPPROTO_IP, LOCAL_PORT_RANGE)
        assert (ports & 0xFFFF, ports >> 16 & 0xFFFF) == machine.local_ports()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("eth0", "invalid IP address"),
        ("127.0.0.1,", "invalid IP address"),
        ("127.0.0.1,127.0.0.1", "twice"),
        ("127.0.0.1,::1", "mixes IPv4 and IPv6"),
    ],
)
def test_invalid_address_list_is_refused(text: str, said: str) -> None:
    with pytest.raises(BadInput, match=said) as refused:
        parse(text)
    assert refused.value.field == "--source-address"


@pytest.mark.integration
@pytest.mark.parametrize(
    ("host", "several"), [("127.0.0.1", True), ("127.8.8.8", True), ("10.0.0.1", False)]
)
def test_count_addresses_of_loopback(host: str, several: bool) -> None:
    assert (count_addresses((), host) > 1_000) == several


@pytest.mark.parametrize("host", ["localhost", "::1", "gpu7.example"])
def test_count_addresses_of_another_host_is_one(host: str) -> None:
    assert count_addresses((), host) == 1
