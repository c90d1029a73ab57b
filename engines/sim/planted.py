"""Planted faults of time: pauses of the engine, freezes of single streams, headers before the first
token.
"""

import asyncio
import random
from collections.abc import Iterable, Sequence
from typing import Any, cast

from loadgen.engines.sim.answers import Answer
from loadgen.engines.sim.settings import Faults


class FreezableTransport:
    """A transport that can be frozen: what is written in the meantime is sent when it thaws.

    Args:
        transport: The transport; it has all other attributes.
        loop: The event loop.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held: list[bytes] | None = None
        self._closes = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def freeze(self, seconds: float) -> None:
        """Hold back what is written from now on."""
        if self._held is None:
            self._held = []
            self._loop.call_later(seconds, self._thaw)

    def get_write_buffer_size(self) -> int:
        """Return how many bytes wait; at least 1 while it is frozen, so that nothing passes it."""
        size = self._transport.get_write_buffer_size()
        return size if self._held is None else size + 1 + sum(map(len, self._held))

    def write(self, data: bytes) -> None:
        """Write `data`, or hold it back."""
        if self._held is None:
            self._transport.write(data)
        else:
            self._held.append(data)

    def close(self) -> None:
        """Close the transport behind what is held back."""
        if self._held is None:
            self._transport.close()
        else:
            self._closes = True

    def _thaw(self) -> None:
        held = self._held or ()
        self._held = None
        if not self._transport.is_closing():
            self._transport.write(b"".join(held))
        if self._closes:
            self._transport.close()


class PlantedFaults:
    """The faults of one engine core; by default there is none.

    Args:
        faults: Which faults, and how long they last.
        frontend_s: Time from the arrival of a request until the scheduler sees it.
        loop: The event loop.
        seed: Seed of which streams are frozen.
    """

    def __init__(
        self, faults: Faults, frontend_s: float, loop: asyncio.AbstractEventLoop, seed: int
    ) -> None:
        self._faults = faults
        self._frontend_s = frontend_s
        self._loop = loop
        self._draw = random.Random(seed)
        self._next_pause_ns = self._next_freeze_ns = 0

    def submitted(self, answer: Answer) -> None:
        """Send the head of the answer when the front end has done, if it is to come early."""
        if self._faults.early_headers:
            self._loop.call_later(self._frontend_s, answer.begin)

    def pause_ns(self, begin_ns: int) -> int:
        """Return by how much the step that begins at `begin_ns` is longer."""
        period_ns = round(self._faults.pause_every_s * 1e9)
        if not period_ns or begin_ns < self._next_pause_ns:
            return 0
        is_first = not self._next_pause_ns
        self._next_pause_ns = begin_ns + period_ns
        return 0 if is_first else round(self._faults.pause_ms * 1e6)

    def freeze(self, at_ns: int, answers: Iterable[Answer]) -> None:
        """Freeze one of the streams, if it is time."""
        period_ns = round(self._faults.freeze_every_s * 1e9)
        if not period_ns or at_ns < self._next_freeze_ns:
            return
        is_first = not self._next_freeze_ns
        streamed: Sequence[Answer] = [answer for answer in answers if answer.stream is not None]
        if is_first or streamed:
            self._next_freeze_ns = at_ns + period_ns
        if is_first or not streamed:
            return
        answer = self._draw.choice(streamed)
        if answer.stream is not None:
            answer.stream.divert()
            transport = cast(FreezableTransport, answer.client.transport)
            transport.freeze(self._faults.freeze_ms / 1e3)
