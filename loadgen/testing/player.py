"""Player: one connection of the faulty server, as asyncio's protocol; it plays the steps of one answer at a time."""

import asyncio
import socket
import struct
from collections.abc import Callable

from loadgen.testing.ask import Ask
from loadgen.testing.faults import Step, Steps, Together

NO_LINGER = struct.pack("ii", 1, 0)  # on, 0 s: the kernel ends the connection with a reset


class Player(asyncio.Protocol):
    """Reads requests and plays what answers them.

    Args:
        answer: Chooses the steps for a request.
        gather: Called with this player and a count when a step waits for others; they call `go_on`.
        lost: Called with this player once its connection has ended.
    """

    def __init__(
        self,
        answer: Callable[[Ask], Steps],
        gather: Callable[["Player", int], None],
        lost: Callable[["Player"], None],
    ) -> None:
        self._answer, self._gather, self._lost = answer, gather, lost
        self._received = bytearray()
        self._steps: Steps | None = None
        self._awaits_request = self._paused = self._scheduled = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio: the connection is there."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """asyncio: bytes have come."""
        self._received += data
        self._take_request()

    def connection_lost(self, error: Exception | None) -> None:
        """asyncio: the connection has ended."""
        self._steps = None
        self._lost(self)

    def pause_writing(self) -> None:
        """asyncio: the client does not keep up."""
        self._paused = True

    def resume_writing(self) -> None:
        """asyncio: it has caught up."""
        self._paused = False
        self.go_on()

    def go_on(self) -> None:
        """Play the next step, after what has been written so far has had a turn of the loop to arrive in."""
        if not self._scheduled:
            self._scheduled = True
            loop = asyncio.get_running_loop()
            # Twice: in asyncio's loop, what is called soon comes before what has become readable meanwhile.
            loop.call_soon(loop.call_soon, self._play)

    def abort(self) -> None:
        """End the connection at once."""
        self._transport.abort()

    def _take_request(self) -> None:
        if self._steps is not None and not self._awaits_request:
            return  # it is answered after the one before it
        try:
            ask = Ask.take(self._received)
        except ValueError:
            self._transport.close()
            return
        if ask is None:
            return
        steps = self._answer(ask)
        if self._awaits_request:
            self._awaits_request = False
        else:
            self._steps = steps
        self.go_on()

    def _play(self) -> None:
        self._scheduled = False
        if self._steps is None or self._paused or self._transport.is_closing():
            return
        match next(self._steps, None):
            case None:
                self._steps = None
                self._take_request()
            case bytes() as data:
                self._transport.write(data)
                self.go_on()
            case Together(count=count):
                self._gather(self, count)
            case Step.CLOSE:
                self._transport.close()
            case Step.RESET:
                raw = self._transport.get_extra_info("socket")
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
                self._transport.abort()
            case Step.NEXT_REQUEST:
                self._awaits_request = True
                self._take_request()
            case Step.SILENCE:
                pass
