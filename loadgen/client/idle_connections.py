"""Idle connections: those that are open and carry no request, and which of them the next request
may use.

A server may close a connection that is idle at any time. A request that is on its way then is lost,
and a POST must not be sent twice. Three rules keep requests away from such a close:

- A connection rests after a response. llama.cpp promises keep-alive and closes after every stream,
  most often within half a millisecond, on a crowded machine some tens of milliseconds later. So the
  first rest of a run is long. Once a connection has lasted through it, the server has shown that it
  keeps them, and a short rest is enough. One close soon after a response does not disprove it:
  others that last through their rest may be used for as long as they have shown.
- A connection is used only while it is younger than the server's idle limit. The server announces
  the limit (`Keep-Alive: timeout=`), or shows it when it closes an idle connection. Until the limit
  is known, one connection is left open unused to learn it. Others are used up to FIRST_LIMIT_NS, or
  for as long as that one has lasted. Servers may treat connections that have carried no request in
  another way, so the oldest of those shows how long they last.
- The kernel is asked right before the send whether the peer has closed the connection.

The newest used connection goes first, so that few of them grow old. Of the unused ones the oldest
go first, since a server that gives each connection a thread has given its threads to those; the
very oldest goes last.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from loadgen.util.clock import NS_PER_S

if TYPE_CHECKING:
    from loadgen.core.stamped_connection import Connection

REST_NS = 5_000_000
LONG_REST_NS = 250_000_000
FIRST_LIMIT_NS = 1_000_000_000
# A request must reach the server before its limit has passed: half a round trip after the response
# left, and another half after the send. The rest allows for timers.
MARGIN_NS = 50_000_000
MARGIN_ROUND_TRIPS = 2
UNKNOWN_ROUND_TRIP_NS = 600_000_000  # by satellite; assumed until a response has begun
REPLACE_AHEAD_NS = 200_000_000  # so long before it is too old a connection is replaced


class IdleConnections:
    """Connections that carry no request. Its only I/O is to check whether the peer has closed one.

    Args:
        close: Called with each connection that is not to be used again.

    Attributes:
        limit_ns: Age at which the server closes an idle connection, as far as known; None: not
            known.
        round_trip_ns: Least time from a request to the first byte of its response; 0: not known.
        old: Connections that are too old for use, to be closed when there is time.
        turned_away: How many unused connections the peer has closed soon after they were opened.
    """

    def __init__(self, close: "Callable[[Connection], None]") -> None:
        self.limit_ns: int | None = None
        self.round_trip_ns = 0
        self._close = close
        # Each with the time at which it was opened.
        self._unused: OrderedDict[Connection, int] = OrderedDict()
        self._oldest: Connection | None = (
            None  # of those that carried no request; it is not among the others
        )
        self._oldest_since_ns = 0  # when it was opened
        self._resting: OrderedDict[Connection, None] = OrderedDict()
        self._rested: OrderedDict[Connection, None] = OrderedDict()
        self.old: deque[Connection] = deque()
        self.turned_away = 0
        self._probe: Connection | None = None
        self._rest_ns = LONG_REST_NS
        self._used_at_ns = 0  # greatest age at which a connection was used again with success
        self._rested_ns = (
            0  # up to which one may be used, since another has lasted through its rest
        )

    def __iter__(self) -> "Iterator[Connection]":
        yield from (*self._unused, *self._resting, *self._rested, *self.old)
        yield from filter(None, (self._oldest, self._probe))

    def __len__(self) -> int:
        alone = (self._oldest is not None) + (self._probe is not None)
        return len(self._unused) + len(self._resting) + len(self._rested) + len(self.old) + alone

    @property
    def reusable(self) -> bool:
        """Whether the server lets a connection carry more than one request."""
        return self.limit_ns is None or self.limit_ns >= FIRST_LIMIT_NS or self._proven_ns > 0

    def rest_left_s(self, at_ns: int) -> float:
        """Return the seconds until the next resting connection is ready; 0 where none rests."""
        self._end_rests(at_ns)
        oldest = next(iter(self._resting), None)
        return 0.0 if oldest is None else (oldest.idle_since + self._rest_ns - at_ns) / NS_PER_S

    def add(self, connection: "Connection", at_ns: int) -> None:
        """Take a connection that was opened or has carried a response, at `at_ns`."""
        connection.idle_since = at_ns
        if not connection.requests:
            self._unused[connection] = at_ns
            if self._oldest is None:
                self._next_oldest()
        elif connection.keep_alive and self.reusable:
            if connection.keep_alive_ns:
                self._limit(connection.keep_alive_ns)
            self._resting[connection] = None
        else:
            self._close(connection)

    def begin(self, at_ns: int) -> None:
        """Start the ages of unused connections at `at_ns`: ten thousand take a second to open."""
        for connection in filter(None, (self._oldest, *self._unused)):
            connection.idle_since = at_ns

    def learn_round_trip(self, active: "Iterable[Connection]") -> None:
        """Learn the round trip from responses that have begun, while it is unknown.

        In a closed loop they end together. If the first end told it, the connections for the next
        requests could turn out to be too old at that very moment.
        """
        if not self.round_trip_ns:
            for connection in active:
                if connection.record.first_byte:
                    self.answered(connection)

    def answered(self, connection: "Connection") -> None:
        """Learn from a first byte the round trip to the server, and that its connections last."""
        record = connection.record
        round_trip_ns = record.first_byte - record.sent
        self.round_trip_ns = min(self.round_trip_ns or round_trip_ns, round_trip_ns)
        if connection.requests > 1:
            self._used_at_ns = max(self._used_at_ns, record.sent - connection.idle_since)

    def ready(self, at_ns: int) -> int:
        """Return how many connections a request may use at `at_ns`."""
        self._end_rests(at_ns)
        return (self._oldest is not None) + len(self._unused) + len(self._rested)

    def ready_for_longer(self, at_ns: int) -> int:
        """Return how many of them will still be young enough REPLACE_AHEAD_NS after `at_ns`."""
        count = self.ready(at_ns)
        until_ns = at_ns + REPLACE_AHEAD_NS
        count -= self._oldest is not None and not self._is_young(self._oldest, until_ns)
        for idle in (self._unused, self._rested):
            for connection in idle:
                if self._is_young(connection, until_ns):
                    break
                count -= 1
        return count

    def take(self, at_ns: int) -> "Connection | None":
        """Take a connection for a request that is sent at `at_ns`: the newest used one, else the
        oldest unused one.
        """
        self._end_rests(at_ns)
        while self._rested and self._is_young(next(reversed(self._rested)), at_ns):
            connection, _ = self._rested.popitem()
            if connection.is_open():
                return connection
            self._closed_by_peer(connection, at_ns)
        self._see_oldest(at_ns)
        while self._oldest is not None:
            connection = next(iter(self._unused), self._oldest)
            is_young = self._is_young(connection, at_ns)
            self._remove_unused(connection)
            if not is_young:
                self.old.append(connection)
            elif connection.is_open():
                return connection
            else:
                self._turned_away(connection, at_ns)
                self._close(connection)
        return None

    def retire(self, until_ns: int) -> None:
        """Retire connections that are too old for use at `until_ns`; one stays while the limit
        is not known.
        """
        self._see_oldest(until_ns)
        while self._oldest is not None:
            connection = next(iter(self._unused), self._oldest)
            if self._is_young(connection, until_ns):
                break
            self._remove_unused(connection)
            self.old.append(connection)
        while self._rested and not self._is_young(next(iter(self._rested)), until_ns):
            connection, _ = self._rested.popitem(last=False)
            if self._probe is None and self.limit_ns is None:
                self._probe = connection
            else:
                self.old.append(connection)

    def close_old(self, count: int) -> bool:
        """Close up to `count` retired connections, and return whether others are left."""
        for _ in range(min(count, len(self.old))):
            self._close(self.old.popleft())
        return bool(self.old)

    def lost(self, connection: "Connection", at_ns: int) -> None:
        """Handle an idle connection that the peer has closed at `at_ns`."""
        self._remove_unused(connection)
        for idle in (self._resting, self._rested):
            idle.pop(connection, None)
        if connection is self._probe:
            self._probe = None
        if connection.requests:
            self._learn(at_ns - connection.idle_since)
        else:
            self._turned_away(connection, at_ns)
        if connection not in self.old:
            self._close(connection)

    def lost_request(self, connection: "Connection") -> None:
        """Learn from a connection that closed without a byte of a response: perhaps it was idle
        for too long.
        """
        if connection.requests > 1:
            self._learn(connection.record.sent - connection.idle_since)

    def close_all(self) -> None:
        """Close all connections."""
        for connection in list(self):
            self._close(connection)
        for idle in (self._unused, self._resting, self._rested, self.old):
            idle.clear()
        self._oldest = self._probe = None

    def _end_rests(self, at_ns: int) -> None:
        """Make connections ready that have rested for long enough."""
        while self._resting and at_ns - next(iter(self._resting)).idle_since >= self._rest_ns:
            connection, _ = self._resting.popitem(last=False)
            if connection.is_open():
                self._rest_ns = REST_NS
                self._rested_ns = max(self._rested_ns, self._safe_ns(at_ns - connection.idle_since))
                self._rested[connection] = None
            else:
                self._closed_by_peer(connection, at_ns)

    def _is_young(self, connection: "Connection", at_ns: int) -> bool:
        """Return whether a request may use a connection at `at_ns`, by its age."""
        age_ns = at_ns - connection.idle_since
        limit_ns = self.limit_ns
        if limit_ns is None:
            if age_ns < FIRST_LIMIT_NS:
                return True
            if connection.requests:
                return age_ns < self._lasted_ns(at_ns) - self._margin_ns
            # The oldest unused connection must be older than this one by the margin.
            opened_ns = self._unused.get(connection, self._oldest_since_ns)
            margin_ns = self._margin_ns if self.round_trip_ns else MARGIN_NS + UNKNOWN_ROUND_TRIP_NS
            return opened_ns - self._oldest_since_ns > margin_ns
        if (
            limit_ns < FIRST_LIMIT_NS
        ):  # of used connections; and one close may have had another reason than age
            return age_ns < (self._proven_ns if connection.requests else FIRST_LIMIT_NS)
        return age_ns < self._safe_ns(limit_ns)

    def _remove_unused(self, connection: "Connection") -> None:
        if connection is self._oldest:
            self._oldest = None
            self._next_oldest()
        else:
            self._unused.pop(connection, None)

    def _next_oldest(self) -> None:
        if self._unused:
            self._oldest, self._oldest_since_ns = self._unused.popitem(last=False)

    def _see_oldest(self, at_ns: int) -> None:
        """Where the oldest unused connection has to show how long they last, close those that
        the peer has closed.
        """
        while (
            self._oldest
            and at_ns - self._oldest.idle_since >= FIRST_LIMIT_NS
            and not self._oldest.is_open()
        ):
            self._close(self._oldest)
            self._oldest = None
            self._next_oldest()

    @property
    def _proven_ns(self) -> int:
        """Age up to which a connection may be used again, also where others were closed."""
        return max(self._used_at_ns, self._rested_ns)

    @property
    def _margin_ns(self) -> int:
        return MARGIN_NS + MARGIN_ROUND_TRIPS * self.round_trip_ns

    def _safe_ns(self, open_ns: int) -> int:
        """Return the age up to which a connection may be used, where connections are open up to
        `open_ns`.
        """
        # The first byte may be late because the server computes. Half of the limit is safe on any
        # real network.
        return max(open_ns - self._margin_ns, open_ns // 2)

    def _lasted_ns(self, at_ns: int) -> int:
        """Return how long the probe has lasted; 0 without one, and where it was lost just now.

        `at_ns` may lie ahead, and only `lost` learns when that was.
        """
        return (
            at_ns - self._probe.idle_since
            if self._probe is not None and self._probe.is_open()
            else 0
        )

    def _turned_away(self, connection: "Connection", at_ns: int) -> None:
        if at_ns - connection.idle_since < REPLACE_AHEAD_NS:
            self.turned_away += 1

    def _closed_by_peer(self, connection: "Connection", at_ns: int) -> None:
        """Handle an idle connection that the peer has closed, before the event loop says so."""
        self._learn(at_ns - connection.idle_since)
        self._close(connection)

    def _learn(self, age_ns: int) -> None:
        """Learn from a connection that was closed at this age, unless others were used at a
        greater age.
        """
        if age_ns >= FIRST_LIMIT_NS or age_ns > self._used_at_ns:
            if (
                age_ns < FIRST_LIMIT_NS and not self._used_at_ns
            ):  # it speaks against those that lasted through a rest
                self._rest_ns = LONG_REST_NS
                self._rested_ns = 0
            self._limit(age_ns)

    def _limit(self, age_ns: int) -> None:
        self.limit_ns = age_ns if self.limit_ns is None else min(self.limit_ns, age_ns)
        if self._probe is not None:
            self._close(self._probe)
            self._probe = None
