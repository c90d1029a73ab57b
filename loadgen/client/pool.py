"""The pool of connections to one server: which of them the next request uses, and how many more
are opened.

- The newest rested connection is used, after the kernel was asked whether the peer has closed it
  (`keep_alive` has the rules of their age). Of those that have carried no request, the oldest is.
- There are no more connections than requests were in flight at once, and one more: the one that
  rests, or the witness. An eighth more may rest until the server has shown that it keeps them.
- None is opened ahead of its request, unless `peak` was raised for it, or the server has shown that
  it keeps connections and answers several at once: then an eighth of the peak, and one more.
- A request that finds no connection waits. One is opened in OPENING_NS, AT_ONCE at once: this takes
  the event loop some 0.4 ms, in 3 ms no other request becomes late (5 ms), and the loop keeps most
  of its time. A limit on how many are being opened would be too few where the network is slow, and
  none where the event loop is.
- A request that comes LATE_NS late, since the client stood still, waits behind those in time, and
  leaves them the spare connections. For late ones a connection is opened in LATE_OPENING_NS: most
  use those of requests that have ended, and a stall opens no storm.
- Where idle connections hold threads of the server, each request has its own (`server_threads`).
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from loadgen.client.keep_alive import KeepAlive
from loadgen.client.server_threads import ServerThreads
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record

if TYPE_CHECKING:
    from loadgen.core.stamped_connection import Connection

AT_ONCE = 8
OPENING_NS = 1_250_000
LATE_NS = 50_000_000
LATE_OPENING_NS = 20_000_000
SPARE = 8  # connections, beside which one more may be open


class Pool:
    """The connections that carry no request, and the requests that have none.

    It reads no clock, and its only I/O is to check whether the peer has closed a connection.

    Args:
        close: Called with each connection that is not to be used again.
        most_patience_ns: As of `ServerThreads`.

    Attributes:
        keep_alive: For how long the server keeps idle connections.
        threads: Whether idle connections hold threads of the server.
        waiting: How many requests wait for a connection.
        opening: How many connections are being opened.
        peak: How many requests were in flight at once, at most.
        is_short: Whether connections are to be opened ahead of the next requests.
    """

    def __init__(self, close: "Callable[[Connection], None]", most_patience_ns: int = 0) -> None:
        self.keep_alive = KeepAlive()
        self.threads = ServerThreads(most_patience_ns)
        self.waiting = 0
        self.opening = 0
        self.peak = 0
        self.is_short = False
        self._close = close
        # record, bytes, and since when it waits, ns; the oldest first
        self._in_time: deque[tuple[Record, bytes, int]] = deque()
        self._late: deque[tuple[Record, bytes, int]] = deque()
        self._in_use = 0
        self._opened_ns = -AT_ONCE * OPENING_NS  # those opened so far have had their time by then
        self._unused: list[Connection] = []  # in the order in which they were opened
        self._resting: deque[Connection] = deque()
        self._rested: list[Connection] = []

    def __iter__(self) -> "Iterator[Connection]":
        yield from (*self._unused, *self._resting, *self._rested)

    def __len__(self) -> int:
        return len(self._unused) + len(self._resting) + len(self._rested)

    @property
    def reusable(self) -> bool:
        """Whether the server lets a connection carry more than one request, as far as it has
        shown.
        """
        keep_alive = self.keep_alive
        return not self.threads.are_held and (keep_alive.is_shown or not keep_alive.closes_soon)

    def take(self, at_ns: int) -> "Connection | None":
        """Take a connection for a request that is sent at `at_ns`; None: it has to wait."""
        if self._resting:
            self._end_rests(at_ns)
        rested = self._rested
        connection = None
        if (
            rested
            and at_ns - rested[-1].idle_since < self.keep_alive.safe_ns
            and rested[-1].is_open()
        ):
            connection = rested.pop()
        elif rested:
            connection = self._take_older(at_ns)
        if connection is None and self._unused:
            connection = self._take_unused(at_ns)
        if connection is not None:
            self.begin_use()
        ready = len(rested) + len(self._unused)
        self.is_short = ready <= self.peak // SPARE and self._opens_ahead
        return connection

    def take_for_waiting(self, at_ns: int) -> "Connection | None":
        """Take a connection for the next of the requests that wait; None: it has to wait on."""
        if not self._in_time and self.ready(at_ns) <= self.peak // SPARE:
            return None  # late ones leave these to those in time
        return self.take(at_ns)

    def begin_use(self) -> None:
        """Count a request that is sent."""
        self._in_use += 1
        if self._in_use > self.peak:
            self.peak = self._in_use

    def has_turn(self, record: Record, at_ns: int) -> bool:
        """Return whether a request goes before all that wait."""
        return not self._in_time and not _is_late(record, at_ns)

    def wait(self, record: Record, request: bytes, at_ns: int) -> None:
        """Have a request wait that has found no connection."""
        waiting = self._late if _is_late(record, at_ns) else self._in_time
        waiting.append((record, request, at_ns))
        self.waiting += 1
        self.peak = max(self.peak, self._in_use + len(self._in_time))

    def next_waiting(self) -> tuple[Record, bytes, int]:
        """Take the next of the requests that wait: record, bytes, and since when it waits, ns."""
        self.waiting -= 1
        return (self._in_time or self._late).popleft()

    def to_open(self, at_ns: int) -> int:
        """Return how many connections to open now, and make room for them: `opening` counts
        them.
        """
        count = len(self._in_time) - self.opening
        room = self.peak + self._spare - self._in_use - self.opening - len(self)
        # if one rests where connections are kept, it is ready soon
        while room < count and len(self) and not (self._resting and self.keep_alive.is_shown):
            idle = self._resting or self._unused or self._rested
            self._close(idle.pop())
            room += 1
        each_ns = OPENING_NS
        if self._late and count <= 0:
            count = self.waiting - self.opening
            each_ns = LATE_OPENING_NS
        elif self._opens_ahead:
            count += max(0, self._spare - self._ready)
        self._opened_ns = max(self._opened_ns, at_ns - AT_ONCE * each_ns)
        count = max(0, min(count, room, (at_ns - self._opened_ns) // each_ns))
        self._opened_ns += count * each_ns
        self.opening += count
        return count

    def opened(self, connection: "Connection", at_ns: int) -> None:
        """Take a new connection, which was opened at `at_ns`."""
        connection.idle_since = at_ns
        self._unused.append(connection)

    def rest(self, connection: "Connection", at_ns: int) -> None:
        """Take a connection back whose response has ended at `at_ns`."""
        self._in_use -= 1
        keep_alive = self.keep_alive
        self.threads.ended(connection.record, at_ns)
        if self.threads.keeps_none:
            self._close(connection)
            self.close_all()
            return
        if not connection.keep_alive:
            if connection.record.outcome is Outcome.OK:
                keep_alive.closes_soon = True
            self._close(connection)
            return
        if connection.keep_alive_ns:
            keep_alive.limit(connection.keep_alive_ns)
        connection.idle_since = at_ns
        if connection.requests > 1:
            keep_alive.is_shown = True
            self._rested.append(connection)
        else:
            self._resting.append(connection)

    def rest_left_ns(self, at_ns: int) -> int:
        """Return how long it takes until the next resting connection is ready; 0: none rests."""
        self._end_rests(at_ns)
        return self._resting[0].idle_since + self._rest_ns - at_ns if self._resting else 0

    def ready(self, at_ns: int) -> int:
        """Return how many connections are ready for requests at `at_ns`."""
        self._end_rests(at_ns)
        return self._ready

    def lost(self, connection: "Connection", at_ns: int) -> None:
        """Handle an idle connection that the peer has closed at `at_ns`."""
        for idle in (self._rested, self._resting, self._unused):
            if connection in idle:
                idle.remove(connection)
        self._lose(connection, at_ns)

    def lost_request(self, connection: "Connection") -> None:
        """Learn from a connection that closed without a byte of a response: perhaps it was idle
        for too long.
        """
        age_ns = connection.record.sent - connection.idle_since
        self.keep_alive.closed(connection.requests - 1, age_ns)

    def watch(self, at_ns: int) -> int:
        """Close the idle connections if one of them seems to hold a thread that a request needs.

        Returns:
            After how long to look again, ns; 0: not before the next request on a new connection.
        """
        idle_ns = min((connection.idle_since for connection in self), default=None)
        closes, again_ns = self.threads.look(idle_ns, self._in_use, at_ns)
        if closes:
            self.close_all()
        return again_ns

    def close_all(self) -> None:
        """Close all idle connections."""
        for connection in self:
            self._close(connection)
        for idle in (self._unused, self._resting, self._rested):
            idle.clear()

    @property
    def _ready(self) -> int:
        return len(self._unused) + len(self._rested)

    @property
    def _opens_ahead(self) -> bool:
        threads = self.threads
        return threads.answers_several and self.keep_alive.is_shown and not threads.keeps_none

    @property
    def _spare(self) -> int:
        """How many connections may be open beside those of the peak."""
        if self.keep_alive.is_shown and not self.threads.answers_several:
            return 1
        return 1 + self.peak // SPARE

    @property
    def _rest_ns(self) -> int:
        return self.keep_alive.rest_ns(len(self._resting))

    def _end_rests(self, at_ns: int) -> None:
        """Make connections ready that have rested for long enough."""
        resting = self._resting
        keep_alive = self.keep_alive
        while resting and at_ns - resting[0].idle_since >= self._rest_ns:
            connection = resting.popleft()
            if keep_alive.is_shown or connection.is_open():
                keep_alive.is_shown = True
                self._rested.append(connection)
            else:
                self._lose(connection, at_ns)

    def _take_older(self, at_ns: int) -> "Connection | None":
        """Take the newest rested connection that is open, where the newest is old or closed; of
        those that are too old for use only the oldest stays.
        """
        rested = self._rested
        while rested:
            connection = rested[-1]
            if not self.keep_alive.may_use(connection, rested[0], at_ns):
                for old in rested[1:]:
                    self._close(old)
                del rested[1:]
                return None
            rested.pop()
            if connection.is_open():
                return connection
            self._lose(connection, at_ns)
        return None

    def _take_unused(self, at_ns: int) -> "Connection | None":
        """Take the oldest unused connection but for the witness.

        A server that gives each connection a thread has given its threads to the oldest.
        """
        unused = self._unused
        while unused:
            connection = unused.pop(1 if len(unused) > 1 else 0)
            oldest = unused[0] if unused else connection
            if self.keep_alive.may_use(connection, oldest, at_ns) and connection.is_open():
                return connection
            self._close(connection)
        return None

    def _lose(self, connection: "Connection", at_ns: int) -> None:
        """Close a connection that the peer has closed."""
        self.keep_alive.closed(connection.requests, at_ns - connection.idle_since)
        self._close(connection)


def _is_late(record: Record, at_ns: int) -> bool:
    """Return whether the client is late with a request that is sent at `at_ns`."""
    return at_ns - record.ready - record.retried_ns >= LATE_NS
