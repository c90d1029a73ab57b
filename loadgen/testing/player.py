"""Player: one connection of the faulty server; it plays the steps of one answer at a time."""

import asyncio
from typing import Protocol

from loadgen.testing.ask import Ask
from loadgen.testing.exchange import Exchange
from loadgen.testing.faults import Step, Steps, Together


class Owner(Protocol):
    """Whose connections they are."""

    def answer(self, ask: Ask) -> Steps:
        """The steps that answer a request; BadInput refuses it."""

    def joined(self, player: "Player") -> None:
        """A connection has been accepted."""

    def left(self, player: "Player") -> None:
        """A connection has ended."""

    def gather(self, player: "Player", count: int) -> None:
        """Call `go_on` of this player once `count` of them have come to such a step."""


class Player(Exchange):
    """Plays what answers each request."""

    def __init__(self, owner: Owner) -> None:
        super().__init__()
        self._owner = owner
        self._steps: Steps | None = None
        self._awaits_request = self._paused = self._scheduled = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio: the connection is there."""
        super().connection_made(transport)
        self._owner.joined(self)

    def connection_lost(self, exc: Exception | None) -> None:
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

    def asked(self, ask: Ask) -> None:
        """Begin to play what answers it, or go on with what waited for it."""
        steps = self._owner.answer(ask)
        if self._awaits_request:
            self._awaits_request = False
        else:
            self._steps = steps
        self.go_on()

    def go_on(self) -> None:
        """Play the next step, after what has been written so far has had a turn of the loop to arrive in."""
        if not self._scheduled:
            self._scheduled = True
            loop = asyncio.get_running_loop()
            # Twice: in asyncio's loop, what is called soon comes before what has become readable meanwhile.
            loop.call_soon(loop.call_soon, self._play)

    def _play(self) -> None:
        self._scheduled = False
        if self._steps is None or self._paused or self.transport.is_closing():
            return
        match next(self._steps, None):
            case None:
                self._steps = None
                self.answered()
            case bytes() as data:
                self.transport.write(data)
                self.go_on()
            case Together(count=count):
                self._owner.gather(self, count)
            case Step.CLOSE:
                self.transport.close()
            case Step.RESET:
                self.reset()
            case Step.NEXT_REQUEST:
                self._awaits_request = True
                self.answered()
            case Step.SILENCE:
                pass
