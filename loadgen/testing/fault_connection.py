"""Fault connection: one connection of the faulty server, which plays the steps of one answer at a time."""

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

from loadgen.testing.faults import Step, Together
from loadgen.testing.request import Request
from loadgen.testing.server_connection import ServerConnection

if TYPE_CHECKING:
    from loadgen.testing.faulty import Faulty


class FaultConnection(ServerConnection):
    """Plays the steps that answer each request."""

    def __init__(self, server: "Faulty") -> None:
        super().__init__()
        self._server = server
        self._steps: Iterator[bytes | Step | Together] | None = None
        self._awaits_request = self._paused = self._scheduled = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register the connection with the server."""
        super().connection_made(transport)
        self._server.register(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Unregister the connection, and stop playing."""
        self._steps = None
        self._server.unregister(self)

    def pause_writing(self) -> None:
        """Pause: the client reads too slowly."""
        self._paused = True

    def resume_writing(self) -> None:
        """Continue: the client has caught up."""
        self._paused = False
        self.go_on()

    def handle(self, request: Request) -> None:
        """Play the answer to a request, or continue the steps that waited for it."""
        steps = self._server.answer(request)
        if self._awaits_request:
            self._awaits_request = False
        else:
            self._steps = iter(steps)
        self.go_on()

    def go_on(self) -> None:
        """Play the next step in a later turn of the loop, so that earlier writes reach the client by themselves."""
        if not self._scheduled:
            self._scheduled = True
            loop = asyncio.get_running_loop()
            # Twice: asyncio runs callbacks of `call_soon` before it handles sockets that have become readable.
            loop.call_soon(loop.call_soon, self._play)

    def _play(self) -> None:
        self._scheduled = False
        if self._steps is None or self._paused or self.transport.is_closing():
            return
        match next(self._steps, None):
            case None:
                self._steps = None
                self.finish()
            case bytes() as data:
                self.transport.write(data)
                self.go_on()
            case Together(count=count):
                self._server.gather(self, count)
            case Step.CLOSE:
                self.transport.close()
            case Step.RESET:
                self.reset()
            case Step.NEXT_REQUEST:
                self._awaits_request = True
                self.finish()
            case Step.SILENCE:
                pass
