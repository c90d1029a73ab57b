"""Spare connections: opened in the background while the clock runs, so that a request does not wait
for a handshake.

They replace idle connections that grow too old, and serve a number of requests in flight that
grows.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from loadgen.client.idle_connections import IdleConnections
from loadgen.core.read_loop import ReadLoop
from loadgen.util.clock import NS_PER_S, now_ns

MAINTAIN_NS = 50_000_000  # how often connections are retired, opened and closed
# connections that are opened, or closed, in one turn of the loop: opening one takes it some 0.1 ms
AT_ONCE = 8
# A closed loop begins with a burst that may not come again: after so many times the spare
# connections have been sent, they are no more than requests have needed between two rounds of
# maintenance.
SENDS_UNTIL_KNOWN = 2


class SpareConnections:
    """Keeps connections to one target open beyond those in use.

    Args:
        idle: Where they are put, and what is retired.
        connect: Opens one and puts it there.
        in_use: How many connections requests use or open themselves.
        learn: Called before each round: has `idle` learn from responses that have not ended.
        read_loop: The read loop of the transport; it leaves the event loop its turns while a
            connection is opened.
        max_connections: How many this process may have to the target in all.

    Attributes:
        opened: How many have been opened here.
    """

    def __init__(
        self,
        idle: IdleConnections,
        connect: Callable[[], Coroutine[Any, Any, None]],
        in_use: Callable[[], int],
        learn: Callable[[], None],
        read_loop: ReadLoop,
        max_connections: int,
    ) -> None:
        self._idle = idle
        self._connect = connect
        self._in_use = in_use
        self._read_loop = read_loop
        self._learn = learn
        self.opened = 0
        self._count = 0
        self._most = max_connections * 9 // 10  # the rest is for requests that find none
        self._sends = self._sends_before = self._most_sends = (
            0  # in all, until the last round, between two rounds
        )
        self._may_open = (
            0  # until the next round: a peer that closes them at once must not be asked without end
        )
        self._turned_away = 0  # connections, until the last round
        self._opening: set[asyncio.Task[None]] = set()
        self._unreachable = False  # the last one could not be opened
        self._timer: asyncio.TimerHandle | None = None

    def keep(self, count: int) -> None:
        """Keep up to `count` connections ready for use from now on."""
        self._count = count
        if self._timer is None:
            self._sends = self._sends_before = (
                0  # those before the clock starts show no demand of the run
            )
            self._maintain()

    def sent(self, at_ns: int) -> None:
        """Count a request that has taken a connection at `at_ns`, or found none."""
        self._sends += 1
        if 2 * self._idle.ready(at_ns) < self._wanted:
            self._refill()

    async def close(self) -> None:
        """Open no more, and cancel those that are being opened."""
        self._count = 0
        if self._timer is not None:
            self._timer.cancel()
        for task in self._opening:
            task.cancel()
        await asyncio.gather(*self._opening, return_exceptions=True)

    @property
    def _wanted(self) -> int:
        is_known = self._sends > SENDS_UNTIL_KNOWN * self._count
        return min(self._count, 1 + self._most_sends) if is_known else self._count

    def _maintain(self) -> None:
        """Retire connections that are too old before the next round, and open others in their
        place.
        """
        self._learn()
        self._idle.retire(now_ns() + MAINTAIN_NS)
        if self._sends > SENDS_UNTIL_KNOWN * self._count:
            self._most_sends = max(self._most_sends, self._sends - self._sends_before)
        self._sends_before = self._sends
        turned_away = self._idle.turned_away
        self._may_open = 1 if turned_away > self._turned_away else max(AT_ONCE, self._wanted)
        self._turned_away = turned_away
        self._refill()
        self._close_old()
        self._timer = asyncio.get_running_loop().call_later(MAINTAIN_NS / NS_PER_S, self._maintain)

    def _close_old(self) -> None:
        """Close a few connections in each turn of the loop, so that no token waits."""
        if self._idle.close_old(AT_ONCE):
            asyncio.get_running_loop().call_soon(self._close_old)

    def _refill(self) -> None:
        """Open the connections that are missing, a few at a time.

        That is one where the last one failed, and none where the peer has just closed one.
        """
        if not self._count or self._idle.turned_away > self._turned_away:
            return
        short = self._wanted - self._idle.ready_for_longer(now_ns()) - len(self._opening)
        room = self._most - len(self._idle) - self._in_use() - len(self._opening)
        at_once = (1 if self._unreachable else AT_ONCE) - len(self._opening)
        for _ in range(min(short, room, at_once, self._may_open)):
            self._may_open -= 1
            self._read_loop.loop_users += 1
            task = asyncio.get_running_loop().create_task(self._connect())
            self._opening.add(task)
            task.add_done_callback(self._opening_ended)

    def _opening_ended(self, task: "asyncio.Task[None]") -> None:
        self._read_loop.loop_users -= 1
        self._opening.discard(task)
        # The requests will tell why.
        self._unreachable = task.cancelled() or task.exception() is not None
        if not self._unreachable:
            self.opened += 1
            self._refill()
