"""A connector looks a name up once, begins with each address in turn, and leaves nothing open
that failed.
"""

import asyncio
import socket
from typing import Any

import pytest

from loadgen.client.connector import Connector
from loadgen.util import dialer
from loadgen.util.dialer import CannotConnect
from loadgen.util.route import DIRECT
from loadgen.util.source_address import SourceAddresses

ADDRESSES = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"10.0.0.{n}", 80)) for n in (1, 2, 3)]


class Network:
    """Look-ups and connections without a network.

    Attributes:
        asked: The names that were looked up.
        tried: The addresses of each connection, in the order in which they were to be tried.
        answers: What look-ups return or raise, in turn; the last one for all that follow.
        held: Whether look-ups do not end.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.tried: list[list[str]] = []
        self.answers: list[Any] = [ADDRESSES]
        self.held = False
        monkeypatch.setattr(dialer, "start_connection", self._start_connection)
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", self._look_up, raising=False)

    async def _look_up(self, host: str, port: int, **_: Any) -> Any:
        self.asked.append((host, port))
        if self.held:
            await asyncio.Event().wait()
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def _start_connection(self, addresses: list[Any], **_: Any) -> socket.socket:
        self.tried.append([address[4][0] for address in addresses])
        raise ConnectionRefusedError(111, "Connection refused")


def connector_for(url: str = "http://a.example:80", timeout_s: float | None = None) -> Connector:
    return Connector(url, DIRECT, timeout_s, SourceAddresses())


async def refusal(opening: Connector) -> CannotConnect:
    with pytest.raises(CannotConnect) as refused:
        await opening.connect()
    return refused.value


async def test_a_name_is_looked_up_once_and_each_address_is_the_first_in_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network, opening = Network(monkeypatch), connector_for()
    for _ in range(4):
        assert (await refusal(opening)).kind == "refused"
    assert network.asked == [("a.example", 80)]
    assert [tried[0] for tried in network.tried] == ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.1"]
    assert network.tried[1] == ["10.0.0.2", "10.0.0.3", "10.0.0.1"]


async def test_connections_that_open_together_share_a_look_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network, opening = Network(monkeypatch), connector_for()
    await asyncio.gather(*(refusal(opening) for _ in range(5)))
    assert len(network.asked) == 1
    assert len(network.tried) == 5


async def test_a_look_up_that_failed_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    network, opening = Network(monkeypatch), connector_for()
    network.answers = [
        socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"),
        ADDRESSES,
    ]
    assert (await refusal(opening)).kind == "dns_error"
    assert (await refusal(opening)).kind == "refused"
    assert len(network.asked) == 2


async def test_a_look_up_without_an_answer_ends_at_the_limit_and_with_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network, opening = Network(monkeypatch), connector_for(timeout_s=0.01)
    network.held = True
    found = await refusal(opening)
    assert (found.kind, str(found)) == (
        "connect_timeout",
        "no address of a.example:80 within --connect-timeout",
    )
    opening.close()
    await asyncio.sleep(0)
    assert len(asyncio.all_tasks()) == 1  # this test


@pytest.mark.parametrize(
    ("url", "asked"),
    [
        ("http://a.example", ("a.example", 80)),
        ("https://a.example", ("a.example", 443)),
        ("http://a.example.:8000/v1", ("a.example.", 8000)),
        ("http://user:password@a.example:8000", ("a.example", 8000)),
        ("http://[::1]:8000", ("::1", 8000)),
    ],
)
async def test_host_and_port_of_a_url_are_looked_up(
    url: str, asked: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    network = Network(monkeypatch)
    await refusal(connector_for(url))
    assert network.asked == [asked]
