"""The pool of connections to one server: which of them the next request uses, and how many more
are opened.

A server may close an idle connection at any time. A request that is on its way then is lost, and a
POST must not be sent twice. And a server that gives each connection a thread serves nobody else
while that one is idle. The rules:

- The newest rested connection is used, after the kernel was asked whether the peer has closed it.
- A connection rests after its first response. llama.cpp promises keep-alive and closes after every
  stream, most often within half a millisecond, on a crowded machine some tens of milliseconds
  later. So the rest is long until one connection has lasted through it; where several rest and
  the server has closed none, a part of it shows the same. A connection that has carried two
  responses was kept after one of them, and needs no rest.
- A connection that has been idle for up to SAFE_AGE_NS may be used. An older one may be used if
  the server's limit is known, from its head or from a close, or while another one that has been
  idle for MARGIN_NS longer is open: the witness, the oldest of those that wait.
- There are no more connections than requests were in flight at once, and one more: the one that
  rests, or the witness. Until the server has shown that it keeps them, a quarter more may rest.
  None is opened ahead of its request, unless `peak` was raised for it.
- A request that finds no connection waits. AT_ONCE connections are opened in OPENING_NS: one takes
  the event loop some 0.4 ms, in 3 ms no other request becomes late (5 ms), and the loop keeps most
  of its time. Of requests that come late together most use connections of those that have ended. A
  limit on how many are being opened would be too few where the network is slow, and none where the
  event loop is.
- A request on a new connection without a byte of a response, for PATIENCE times as long as any
  other has taken, may wait for a thread that an idle connection holds. Then the idle ones are
  closed. If the response begins soon after that, each request has its own connection from then on.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from loadgen.core.outcome import Outcome
from loadgen.core.record import Record

if TYPE_CHECKING:
    from loadgen.core.stamped_connection import Connection

REST_NS = 5_000_000
LONG_REST_NS = 250_000_000
LEAST_LONG_REST_NS = 25_000_000
SAFE_AGE_NS = 1_000_000_000
# A request must reach the server before its limit has passed: half a round trip after the response
# left, and another half after the send. The rest allows for timers.
MARGIN_NS = 250_000_000
AT_ONCE = 8
OPENING_NS = 10_000_000
PATIENCE = 3
LEAST_PATIENCE_NS = 50_000_000
FIRST_PATIENCE_NS = 5_000_000_000  # before any request was answered
PROOF = 2  # so many more responses begin after idle connections were closed than do not
NOT_SHOWN, RESTED, USED_AGAIN = range(3)  # how far the server has shown that it keeps connections


class Pool:
    """The connections that carry no request, and the requests that have none.

    It reads no clock, and its only I/O is to check whether the peer has closed a connection.

    Args:
        close: Called with each connection that is not to be used again.
        most_patience_ns: For how long a request may wait for its first byte before idle connections
            are closed, at most; 0: no limit.

    Attributes:
        waiting: Requests without a connection, the oldest first: record, bytes, and since when they
            wait, ns.
        opening: How many connections are being opened for them.
        peak: How many requests were in flight at once, at most.
        limit_ns: Age at which the server closes an idle connection, as far as known.
        starved: Requests that waited for a thread of the server that an idle connection held.
    """

    def __init__(self, close: "Callable[[Connection], None]", most_patience_ns: int = 0) -> None:
        self.waiting: deque[tuple[Record, bytes, int]] = deque()
        self.opening = 0
        self.peak = 0
        self.limit_ns: int | None = None
        self._safe_ns = SAFE_AGE_NS  # up to this age one may be used without a witness
        self.starved = 0
        self._close = close
        self._most_patience_ns = most_patience_ns or 1 << 62
        self._in_use = 0
        self._round_ns = 0  # when the last round of opening began
        self._round = 0  # how many were opened in it
        self._unused: list[Connection] = []  # in the order in which they were opened
        self._resting: deque[Connection] = deque()
        self._rested: list[Connection] = []
        self._keeps = NOT_SHOWN
        self._closes_soon = False
        self._longest_ns = 0  # from a request to the first byte of its response
        self._unanswered: deque[Record] = deque()  # sent on new connections
        self._freed: Record | None = None  # that for which idle connections were closed
        self._freed_ns = 0  # when that was
        self._soon_ns = 0  # its response begins within this time if it has waited for a thread
        self._weight = 0  # of that proof
        self._proof = 0

    def __iter__(self) -> "Iterator[Connection]":
        yield from (*self._unused, *self._resting, *self._rested)

    def __len__(self) -> int:
        return len(self._unused) + len(self._resting) + len(self._rested)

    @property
    def reusable(self) -> bool:
        """Whether the server lets a connection carry more than one request, as far as it has
        shown.
        """
        return not self.holds_threads and (self._keeps == USED_AGAIN or not self._closes_soon)

    @property
    def holds_threads(self) -> bool:
        """Whether idle connections hold threads of the server that requests wait for."""
        return self._proof >= PROOF

    def take(self, at_ns: int) -> "Connection | None":
        """Take a connection for a request that is sent at `at_ns`; None: it has to wait."""
        if self._resting:
            self._end_rests(at_ns)
        rested = self._rested
        connection = None
        if rested and at_ns - rested[-1].idle_since < self._safe_ns and rested[-1].is_open():
            connection = rested.pop()
        elif rested:
            connection = self._take_older(at_ns)
        if connection is None and self._unused:
            connection = self._take_unused(at_ns)
        if connection is not None:
            self._in_use += 1
            if self._in_use > self.peak:
                self.peak = self._in_use
        return connection

    def begin_use(self) -> None:
        """Count a request that has waited, and is sent on a connection that was just opened."""
        self._in_use += 1

    def wait(self, record: Record, request: bytes, at_ns: int) -> None:
        """Have a request wait that has found no connection."""
        self.waiting.append((record, request, at_ns))
        self.peak = max(self.peak, self._in_use + len(self.waiting))

    def to_open(self, at_ns: int) -> int:
        """Return how many connections to open now for requests that wait, and make room for them:
        `opening` counts them.
        """
        if at_ns - self._round_ns >= OPENING_NS:
            self._round_ns = at_ns
            self._round = 0
        count = min(len(self.waiting) - self.opening, AT_ONCE - self._round)
        beside = 1 if self._keeps else 1 + self.peak // 4
        room = self.peak + beside - self._in_use - self.opening - len(self)
        while room < count and not (self._resting and self._keeps):  # else one is ready soon
            idle = self._resting or self._unused or self._rested
            self._close(idle.pop())
            room += 1
        count = max(0, min(count, room))
        self._round += count
        self.opening += count
        return count

    def opened(self, connection: "Connection", at_ns: int) -> None:
        """Take a new connection, which was opened at `at_ns`."""
        connection.idle_since = at_ns
        self._unused.append(connection)

    def rest(self, connection: "Connection", at_ns: int) -> None:
        """Take a connection back whose response has ended at `at_ns`."""
        self._in_use -= 1
        record = connection.record
        if record is self._freed:
            self._see_freed(at_ns)
        if record.first_byte - record.sent > self._longest_ns:
            # what was waited for a thread is left out
            since_ns = max(record.sent, self._freed_ns)
            self._longest_ns = max(self._longest_ns, record.first_byte - since_ns)
        if not connection.keep_alive or self._proof >= PROOF:
            self._closes_soon = self._closes_soon or record.outcome is Outcome.OK
            self._close(connection)
            return
        if connection.keep_alive_ns:
            self._limit(connection.keep_alive_ns)
        connection.idle_since = at_ns
        if connection.requests > 1:
            self._keeps = USED_AGAIN
            self._rested.append(connection)
        else:
            self._resting.append(connection)

    def rest_left_ns(self, at_ns: int) -> int:
        """Return how long it takes until the next resting connection is ready; 0: none rests."""
        self._end_rests(at_ns)
        return self._resting[0].idle_since + self._rest_ns - at_ns if self._resting else 0

    def ready(self, at_ns: int) -> int:
        """Return how many connections wait for requests at `at_ns`."""
        self._end_rests(at_ns)
        return len(self._unused) + len(self._rested)

    def lost(self, connection: "Connection", at_ns: int) -> None:
        """Handle an idle connection that the peer has closed at `at_ns`."""
        for idle in (self._rested, self._resting, self._unused):
            if connection in idle:
                idle.remove(connection)
        self._learn(connection, at_ns - connection.idle_since)
        self._close(connection)

    def lost_request(self, connection: "Connection") -> None:
        """Learn from a connection that closed without a byte of a response: perhaps it was idle
        for too long.
        """
        if connection.requests > 1:
            self._learn(connection, connection.record.sent - connection.idle_since)

    def sent_on_new(self, record: Record) -> None:
        """Watch a request that was sent on a connection that has carried no other."""
        self._unanswered.append(record)

    def watch(self, at_ns: int) -> int:
        """Close the idle connections if one of them seems to hold a thread that a request needs.

        Returns:
            After how long to look again, ns; 0: no request on a new connection is without a
            response.
        """
        self._see_freed(at_ns)
        unanswered = self._unanswered
        while unanswered and (unanswered[0].first_byte or unanswered[0].outcome is not None):
            unanswered.popleft()
        if not unanswered or self.holds_threads:
            return 0 if self._freed is None else self._soon_ns
        patience_ns = max(PATIENCE * self._longest_ns, LEAST_PATIENCE_NS)
        if not self._longest_ns:
            patience_ns = FIRST_PATIENCE_NS
        patience_ns = min(patience_ns, self._most_patience_ns)
        since_ns = min((connection.idle_since for connection in self), default=at_ns)
        left_ns = max(since_ns, unanswered[0].sent) + patience_ns - at_ns
        if left_ns <= 0:
            self._freed = unanswered.popleft()
            self._freed_ns = at_ns
            self._soon_ns = max(self._longest_ns, LEAST_PATIENCE_NS)
            # With nothing else to do, the server has no other reason.
            self._weight = PROOF if self._in_use == 1 else 1
            self.close_all()
            return self._soon_ns
        return min(left_ns, LEAST_PATIENCE_NS)

    def close_all(self) -> None:
        """Close all idle connections."""
        for connection in self:
            self._close(connection)
        for idle in (self._unused, self._resting, self._rested):
            idle.clear()

    def _end_rests(self, at_ns: int) -> None:
        """Make connections ready that have rested for long enough."""
        resting = self._resting
        while resting and at_ns - resting[0].idle_since >= self._rest_ns:
            connection = resting.popleft()
            if self._keeps or connection.is_open():
                self._keeps = max(self._keeps, RESTED)
                self._rested.append(connection)
            else:
                self._lose(connection, at_ns)

    @property
    def _rest_ns(self) -> int:
        if self._keeps:
            return REST_NS
        if self._closes_soon:
            return LONG_REST_NS
        return max(LONG_REST_NS // max(len(self._resting), 1), LEAST_LONG_REST_NS)

    def _take_older(self, at_ns: int) -> "Connection | None":
        """Take the newest rested connection that is open, where the newest is old or closed; of
        those that are too old for use only the oldest stays.
        """
        rested = self._rested
        while rested:
            connection = rested[-1]
            if not self._is_safe(connection, rested[0], at_ns):
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
            age_ns = at_ns - connection.idle_since
            is_safe = age_ns < SAFE_AGE_NS or (unused and _is_witnessed(connection, unused[0]))
            if is_safe and connection.is_open():
                return connection
            self._close(connection)
        return None

    def _is_safe(self, connection: "Connection", oldest: "Connection", at_ns: int) -> bool:
        """Return whether a request may use a rested connection, by its age."""
        if self.limit_ns is not None:
            # The close had another reason than age where one lasts for much longer.
            if at_ns - oldest.idle_since < 2 * self.limit_ns or not oldest.is_open():
                return at_ns - connection.idle_since < self._safe_ns
            self.limit_ns = None
            self._safe_ns = SAFE_AGE_NS
        age_ns = at_ns - connection.idle_since
        return age_ns < self._safe_ns or _is_witnessed(connection, oldest)

    def _lose(self, connection: "Connection", at_ns: int) -> None:
        """Close a connection that the peer has closed, before the event loop says so."""
        self._learn(connection, at_ns - connection.idle_since)
        self._close(connection)

    def _learn(self, connection: "Connection", age_ns: int) -> None:
        """Learn from a connection that the peer has closed at this age."""
        if not connection.requests:
            return
        if age_ns >= LONG_REST_NS or self._keeps == USED_AGAIN:
            self._limit(age_ns)
        else:  # it closes connections behind a response
            self._keeps = NOT_SHOWN
            self._closes_soon = True

    def _limit(self, age_ns: int) -> None:
        self.limit_ns = age_ns if self.limit_ns is None else min(self.limit_ns, age_ns)
        self._safe_ns = self.limit_ns - MARGIN_NS

    def _see_freed(self, at_ns: int) -> None:
        """Learn from whether a response began soon after the idle connections were closed."""
        freed = self._freed
        if freed is None:
            return
        soon_ns = self._freed_ns + self._soon_ns
        if self._freed_ns < freed.first_byte <= soon_ns:
            self.starved += 1
            self._proof += self._weight
            self._freed = None
            if self.holds_threads:
                self.close_all()
        elif freed.first_byte or freed.outcome is not None or at_ns > soon_ns:
            self._proof = max(self._proof - 1, 0)
            self._freed = None


def _is_witnessed(connection: "Connection", oldest: "Connection") -> bool:
    """Return whether a connection that has been idle for longer, by the margin, is still open."""
    return connection.idle_since - oldest.idle_since > MARGIN_NS and oldest.is_open()
