"""A client that stands still for a while, and its pool: in a time of integers."""

import heapq
import itertools
from collections.abc import Callable
from typing import Any

from loadgen.core.keep_alive import KeepAlive
from loadgen.core.outcome import Outcome
from loadgen.core.pool import Pool
from loadgen.core.server_threads import ServerThreads
from tests.helpers.integer_server import MS, Peer, S, request

SENDS_S, STALL_NS = 8, 4 * S
CONNECT_NS, TURN_NS = MS, 5 * MS


class StalledClient:
    """Sends requests at a constant rate for SENDS_S, and does nothing from STALL_NS on.

    Args:
        rate: Requests per second.
        latency_ns: How long each response takes.
        first_byte_ns: How long its first byte takes.
        stall_ns: For how long it does nothing.

    Attributes:
        opened: Connections opened so far.
        longest_wait_ns: For how long a request waited for one.
    """

    def __init__(self, rate: int, latency_ns: int, *, first_byte_ns: int, stall_ns: int) -> None:
        self.pool = Pool(lambda connection: None, KeepAlive(), ServerThreads())
        self.opened = 0
        self.longest_wait_ns = 0
        self._latency_ns, self._first_byte_ns = latency_ns, first_byte_ns
        self._stall_ends_ns = STALL_NS + stall_ns
        self._events: list[tuple[int, int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._numbers = itertools.count()
        for number in range(rate * SENDS_S):
            self._at(number * S // rate, self._send, number * S // rate)
        for number in range(SENDS_S * S // TURN_NS):
            self._at(number * TURN_NS, self._turn)

    def run(self) -> tuple[int, int]:
        """Return how many connections were opened before the stall, and in all."""
        before = 0
        while self._events:
            seen_ns, _, _, step, what = heapq.heappop(self._events)
            if seen_ns < STALL_NS:
                before = self.opened
            step(seen_ns, *what)
        return before, self.opened

    def _at(self, at_ns: int, step: Callable[..., None], *what: Any) -> None:
        """Have something happen: after the stall if it would be inside."""
        in_stall = STALL_NS <= at_ns < self._stall_ends_ns
        seen_ns = self._stall_ends_ns if in_stall else at_ns
        heapq.heappush(self._events, (seen_ns, at_ns, next(self._numbers), step, what))

    def _send(self, at_ns: int, due_ns: int) -> None:
        record = request(ready_ns=due_ns)
        connection = None
        if not self.pool.waiting or self.pool.has_turn(record, at_ns):
            connection = self.pool.take(at_ns)
        if connection is None:
            self.pool.wait(record, b"", at_ns)
        else:
            self._send_on(connection, record, at_ns)
        if connection is None or self.pool.is_short:
            self._serve(at_ns)

    def _turn(self, at_ns: int) -> None:
        self.pool.watch(at_ns)
        self._serve(at_ns)

    def _serve(self, at_ns: int) -> None:
        while self.pool.waiting and (connection := self.pool.take_for_waiting(at_ns)) is not None:
            self._send_waiting(connection, at_ns)
        for _ in range(self.pool.to_open(at_ns)):
            self.pool.beginning -= 1
            self._at(at_ns + CONNECT_NS, self._connected)

    def _connected(self, at_ns: int) -> None:
        self.opened += 1
        connection = Peer(str(self.opened))
        if self.pool.waiting:
            self.pool.begin_use()
            self._send_waiting(connection, at_ns)
        else:
            self.pool.opened(connection, at_ns)
        self.pool.opening -= 1
        if self.pool.waiting:
            self._serve(at_ns)

    def _send_waiting(self, connection: Peer, at_ns: int) -> None:
        record, _, since_ns = self.pool.next_waiting()
        self.longest_wait_ns = max(self.longest_wait_ns, at_ns - since_ns)
        self._send_on(connection, record, at_ns)

    def _send_on(self, connection: Peer, record: Any, at_ns: int) -> None:
        record.sent = at_ns
        record.reused = connection.requests > 0
        if not connection.requests:
            self.pool.threads.sent(record)
        connection.send(record)
        self._at(at_ns + self._first_byte_ns, self._begin, record, at_ns + self._first_byte_ns)
        self._at(at_ns + self._latency_ns, self._end, connection)

    def _begin(self, at_ns: int, record: Any, first_byte_ns: int) -> None:
        record.first_byte = first_byte_ns

    def _end(self, at_ns: int, connection: Peer) -> None:
        connection.record.closed = at_ns
        connection.record.outcome = Outcome.OK
        self.pool.rest(connection, at_ns)
        if self.pool.waiting:
            self._serve(at_ns)
