"""Player: one connection of the faulty server, as asyncio's protocol; it plays the steps of one answer at a time."""

import asyncio
import socket
import struct
from typing import Any, Protocol

from loadgen.testing.ask import Ask
from loadgen.testing.faults import Step, Steps, Together
from loadgen.testing.replies import error_body, whole

NO_LINGER = struct.pack("ii", 1, 0)  # on, 0 s: the kernel ends the connection with a reset


class Owner(Protocol):
    """Whose connections they are."""

    def answer(self, ask: Ask) -> Steps:
        """The steps that answer a request."""

    def joined(self, player: "Player") -> None:
        """A connection has been accepted."""

    def left(self, player: "Player") -> None:
        """A connection has ended."""

    def gather(self, player: "Player", count: int) -> None:
        """Call `go_on` of this player once `count` of them have come to such a step."""


class Player(asyncio.Protocol):
    """Reads requests and plays what answers them."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._received = bytearray()
        self._steps: Steps | None = None
        self._awaits_request = self._paused = self._scheduled = False

    def connection_made(self, transport: Any) -> None:  # uvloop's are no asyncio.Transport
        """asyncio: the connection is there."""
        self._transport = transport
        self._owner.joined(self)

    def data_received(self, data: bytes) -> None:
        """asyncio: bytes have come."""
        self._received += data
        self._take_request()

    def connection_lost(self, error: Exception | None) -> None:
        """asyncio: the connection has ended."""
        self._steps = None
        self._owner.left(self)

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
        except ValueError as error:
            self._transport.write(whole(400, "Bad Request", error_body(str(error), 400), "Connection: close"))
            self._transport.close()
            return
        if ask is None:
            return
        steps = self._owner.answer(ask)
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
                self._owner.gather(self, count)
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
