"""Spreads the requests of a run over several targets, each with connections of its own."""

import asyncio
from array import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from loadgen.client.transport import Transport
from loadgen.config.target import Balance
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.util.partition import WHOLE, Partition
from loadgen.workload.due_times import DueTimes

if TYPE_CHECKING:
    from loadgen.core.stamped_connection import Tap

NOWHERE = -1


class Balancer:
    """A `Transport` to several targets.

    round-robin: session (or single request) s of the schedule goes to target s modulo their number,
    so that who gets what is known before the run. least-outstanding: to the target with the fewest
    requests in flight or being sent, the first of several such. Further turns of a session go where
    its first turn went, to the prefix cache that knows it. Each worker of a run has a balancer,
    which knows of the requests of its own partition alone.

    Args:
        transports: One to each target, all with one hook; their `on_end` is taken.
        balance: How to choose the target of a request.
        partition: Whose requests it gets.

    Attributes:
        hook: The send hook of the transports.
    """

    def __init__(
        self, transports: Sequence[Transport], balance: Balance, partition: Partition = WHOLE
    ) -> None:
        self._transports = tuple(transports)
        self._in_turn = balance == "round-robin"
        count = len(transports)
        turns = (
            range(partition.index, partition.index + partition.count * count, partition.count)
            if self._in_turn
            else range(count)
        )
        # In turn, a partition may never come to some of them.
        self._used = [transports[number] for number in sorted({turn % count for turn in turns})]
        self.hook = transports[0].hook
        self._on_end: Callable[[Record], object] = lambda record: None
        self._in_flight = [0] * len(transports)
        self._session: array[int] | None = None  # of each request; None: each is one of its own
        self._homes = array("i")  # the target of each session, where there are any

    @property
    def on_end(self) -> Callable[[Record], object]:
        """As of a `Transport`."""
        return self._on_end

    @on_end.setter
    def on_end(self, on_end: Callable[[Record], object]) -> None:
        self._on_end = on_end
        for transport in self._transports:
            transport.on_end = self._ended

    @property
    def reuses(self) -> bool:
        """Whether connections to all of them carry more than one request."""
        return all(transport.reuses for transport in self._transports)

    @property
    def starved(self) -> int:
        """As of a `Transport`, to all of them."""
        return sum(transport.starved for transport in self._transports)

    async def open(self) -> None:
        """As `Transport.open`."""
        for transport in self._transports:
            await transport.open()

    async def warm(self, count: int) -> int:
        """Open connections until `count` are ready, as many to each target that is sent to.

        Returns how many are ready.
        """
        share = -(-count // len(self._used))
        return sum(await asyncio.gather(*(transport.warm(share) for transport in self._used)))

    def follow(self, schedule: DueTimes) -> None:
        """Keep the sessions of this schedule together; call before the first of its requests."""
        if schedule.has_sessions:
            self._session = schedule.session_numbers
            self._homes = array("i", [NOWHERE]) * schedule.sessions

    def tap(self, tap: "Tap") -> None:
        """As `Transport.tap`."""
        for transport in self._transports:
            transport.tap(tap)

    def send(self, record: Record, body: bytes) -> None:
        """As `Transport.send`, to the target whose turn it is."""
        session = record.index if self._session is None else self._session[record.index]
        if self._in_turn:
            number = session % len(self._transports)
        elif self._session is not None and self._homes[session] != NOWHERE:
            number = self._homes[session]
        else:
            number = self._in_flight.index(min(self._in_flight))
            if self._session is not None:
                self._homes[session] = number
        record.target = number
        self._in_flight[number] += 1
        self._transports[number].send(record, body)

    def abandon(self, outcome: Outcome, detail: str) -> None:
        """As `Transport.abandon`."""
        for transport in self._transports:
            transport.abandon(outcome, detail)

    async def close(self) -> None:
        """As `Transport.close`."""
        await asyncio.gather(*(transport.close() for transport in self._transports))

    def _ended(self, record: Record) -> None:
        self._in_flight[record.target] -= 1
        self._on_end(record)
