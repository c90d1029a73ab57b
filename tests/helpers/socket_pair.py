"""A connection of a server's whose other end is a raw socket of the test's own, on either event
loop.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import pytest
import uvloop


@dataclass(frozen=True)
class Pair:
    """A server-side transport, the raw socket at its other end, and whether the transport has
    ended.
    """

    transport: asyncio.Transport
    peer: socket.socket
    lost: asyncio.Event

    async def receive_all(self) -> bytes:
        """Everything until the other side closes."""
        loop, received = asyncio.get_running_loop(), b""
        while data := await loop.sock_recv(self.peer, 1 << 20):
            received += data
        return received


class Lost(asyncio.Protocol):
    def __init__(self) -> None:
        self.lost = asyncio.Event()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set()


@contextlib.asynccontextmanager
async def connected() -> AsyncIterator[Pair]:
    loop = asyncio.get_running_loop()
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as peer,
    ):
        accepted, _ = listener.accept()
        for each in (accepted, peer):
            each.setblocking(False)
            # Small, so that little data fills them.
            each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
            each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        transport, protocol = await loop.connect_accepted_socket(Lost, accepted)
        pair = Pair(transport, peer, protocol.lost)
        try:
            yield pair
        finally:
            if not pair.lost.is_set():
                transport.abort()
            await pair.lost.wait()


def on_both_loops(scenario: Callable[[Pair], Awaitable[None]]) -> Callable[..., None]:
    """Make a test of `scenario` that runs on asyncio's own loop and on uvloop."""

    @pytest.mark.parametrize(
        "new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
    )
    def test(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
        async def run() -> None:
            async with connected() as pair:
                await scenario(pair)

        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(run())

    return test
