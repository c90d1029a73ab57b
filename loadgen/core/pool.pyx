# cython: language_level=3
"""The pool of connections to one server: which of them the next request uses, and how many more
are opened.

- The newest rested connection is used, after the kernel was asked whether the peer has closed it
  (`keep_alive` has the rules of their age). Of those that have carried no request, the oldest is.
- There are no more connections than requests were in flight at once, and one more: the one that
  rests, or the witness. An eighth more may rest until the server has shown that it keeps them.
- None is opened ahead of its request, unless `peak` was raised for it, or the server has shown that
  it keeps connections and answers several at once: then an eighth of the peak, and one more, while
  no request waits. Else those that cannot be opened would be replaced, and the request not fail.
  Idle ones hold the threads of some servers: at 8 threads, 69 of 400 requests had no answer within
  5 s. Once an eighth more are open, 21 in place of 98 of 600 requests waited for one.
- A request that finds no connection waits for one. AT_ONCE are begun in a turn of the event loop:
  each takes it 0.2 ms, so that reads and other requests come between them. A limit on how many are
  being opened would be too few where the network is slow; a limit on how many are opened in a
  second would be too few for a high rate, and too many for a slow machine.
- Once requests wait, one that comes LATE_NS late, since the client stood still, waits behind those
  in time, and leaves them the spare connections. For late ones a connection is opened in
  LATE_OPENING_NS: most use those of requests that have ended, and a stall does not open many: one
  each would have been 800 more after a stall of 2.5 s at 500 requests/s.
- Where idle connections hold threads of the server, each request has its own (`server_threads`).
"""

cimport cython
from libc.stdint cimport int64_t

from loadgen.core.http1 cimport Response
from loadgen.core.keep_alive cimport KeepAlive, KeptConnection
from loadgen.core.record cimport Record
from loadgen.core.server_threads cimport ServerThreads

from collections import deque

from loadgen.core.outcome import Outcome

AT_ONCE = 8
LATE_OPENING_NS = 20_000_000

cdef enum:
    SPARE = 8  # connections, beside which one more may be open
    LATE_NS = 50000000


@cython.final
cdef class Pool:
    """The connections that carry no request, and the requests that have none.

    It reads no clock, and its only I/O is to check whether the peer has closed a connection.

    Args:
        close: Called with each connection that is not to be used again.
        keep_alive: For how long the server keeps idle connections, as far as it has shown.
        threads: What is known of the server's threads.

    Attributes:
        keep_alive, threads: The same.
        waiting: How many requests wait for a connection.
        opening: How many connections are being opened.
        beginning: How many of them are begun in this turn of the event loop and the next one.
        peak: How many connections were wanted at once, at most: for requests in flight, for those
            that wait in time, and those that were warmed.
        is_short: Whether connections are to be opened ahead of the next requests.
    """

    def __init__(self, close, KeepAlive keep_alive not None, ServerThreads threads not None):
        self.keep_alive, self.threads = keep_alive, threads
        self._close = close
        self._in_time, self._late, self._resting = deque(), deque(), deque()
        self._unused, self._rested = [], []
        self._late_opened_ns = -AT_ONCE * LATE_OPENING_NS

    def __iter__(self):
        return iter([*self._unused, *self._resting, *self._rested])

    def __len__(self):
        return len(self._unused) + len(self._resting) + len(self._rested)

    @property
    def reusable(self):
        """Whether the server lets a connection carry more than one request, as far as it has
        shown.
        """
        keep_alive = self.keep_alive
        return not self.threads.are_held and (keep_alive.is_shown or not keep_alive.closes_soon)

    cpdef KeptConnection take(self, int64_t at_ns):
        """Take a connection for a request that is sent at `at_ns`; None: it has to wait."""
        cdef list rested = self._rested
        cdef Py_ssize_t ready
        cdef KeptConnection connection = None
        if self._resting:
            self._end_rests(at_ns)
        if rested:
            connection = rested[len(rested) - 1]
            if (
                at_ns - connection.idle_since < self.keep_alive.safe_ns
                and connection.is_open()
            ):
                rested.pop()
            else:
                connection = self._take_older(at_ns)
        if connection is None and self._unused:
            connection = self._take_unused(at_ns)
        if connection is not None:
            self.begin_use()
        ready = len(rested) + len(self._unused)
        self.is_short = ready <= self.peak // SPARE and self._opens_ahead()
        return connection

    def take_for_waiting(self, int64_t at_ns):
        """Take a connection for the next of the requests that wait; None: it has to wait on."""
        if not self._in_time and self.ready(at_ns) <= self.peak // SPARE:
            return None  # late ones leave these to those in time
        return self.take(at_ns)

    cpdef begin_use(self):
        """Count a request that is sent."""
        self._in_use += 1
        if self._in_use > self.peak:
            self.peak = self._in_use

    cpdef bint has_turn(self, Record record, int64_t at_ns) except -1:
        """Return whether a request goes before all that wait."""
        return not self._in_time and not _is_late(record, at_ns)

    cpdef wait(self, Record record, bytes request, int64_t at_ns):
        """Have a request wait that has found no connection."""
        waiting = self._late if _is_late(record, at_ns) else self._in_time
        waiting.append((record, request, at_ns))
        self.waiting += 1
        self.peak = max(self.peak, self._in_use + <Py_ssize_t>len(self._in_time))

    def next_waiting(self):
        """Take the next of the requests that wait: record, bytes, and since when it waits, ns."""
        self.waiting -= 1
        return (self._in_time or self._late).popleft()

    def to_open(self, int64_t at_ns):
        """Return how many connections to open now, and make room for them: `opening` counts
        them, and `beginning` until the caller has begun them.
        """
        cdef Py_ssize_t count = len(self._in_time) - self.opening
        cdef Py_ssize_t limit = AT_ONCE - self.beginning
        cdef bint is_late = self._late and count <= 0
        cdef Py_ssize_t room = self.peak + self._spare() - self._in_use - self.opening - len(self)
        # if one rests where connections are kept, it is ready soon
        while room < count and len(self) and not (self._resting and self.keep_alive.is_shown):
            idle = self._resting or self._unused or self._rested
            self._close(idle.pop())
            room += 1
        if is_late:
            count = self.waiting - self.opening
            self._late_opened_ns = max(self._late_opened_ns, at_ns - AT_ONCE * LATE_OPENING_NS)
            limit = min(limit, (at_ns - self._late_opened_ns) // LATE_OPENING_NS)
        elif not self.waiting and self._opens_ahead():
            count += max(0, self._spare() - <Py_ssize_t>(len(self._unused) + len(self._rested)))
        count = max(0, min(count, room, limit))
        if is_late:
            self._late_opened_ns += count * LATE_OPENING_NS
        self.opening += count
        self.beginning += count
        return count

    def opened(self, KeptConnection connection not None, int64_t at_ns):
        """Take a new connection, which was opened at `at_ns`."""
        connection.idle_since = at_ns
        self._unused.append(connection)

    cpdef rest(self, KeptConnection connection, int64_t at_ns):
        """Take a connection back whose response has ended at `at_ns`."""
        cdef KeepAlive keep_alive = self.keep_alive
        cdef Response response = connection.response
        self._in_use -= 1
        self.threads.ended(response.record, at_ns)
        if self.threads.keeps_none:
            self._close(connection)
            self.close_all()
            return
        if not response.keep_alive:
            if response.record.outcome is Outcome.OK:
                keep_alive.closes_soon = True
            self._close(connection)
            return
        if response.keep_alive_ns:
            keep_alive.limit(response.keep_alive_ns)
        connection.idle_since = at_ns
        if connection.requests > 1:
            keep_alive.is_shown = True
            self._rested.append(connection)
        else:
            self._resting.append(connection)

    def rest_left_ns(self, int64_t at_ns):
        """Return how long it takes until the next resting connection is ready; 0: none rests."""
        self._end_rests(at_ns)
        return self._resting[0].idle_since + self._rest_ns() - at_ns if self._resting else 0

    cpdef Py_ssize_t ready(self, int64_t at_ns) except -1:
        """Return how many connections are ready for requests at `at_ns`."""
        self._end_rests(at_ns)
        return len(self._unused) + len(self._rested)

    def lost(self, KeptConnection connection not None, int64_t at_ns):
        """Handle an idle connection that the peer has closed at `at_ns`."""
        for idle in (self._rested, self._resting, self._unused):
            if connection in idle:
                idle.remove(connection)
        self._lose(connection, at_ns)

    def lost_request(self, KeptConnection connection not None):
        """Learn from a connection that closed without a byte of a response: perhaps it was idle
        for too long.
        """
        cdef Record record = connection.response.record
        age_ns = record.sent - connection.idle_since
        self.keep_alive.closed(connection.requests - 1, age_ns)

    def watch(self, int64_t at_ns):
        """Close the idle connections if one of them seems to hold a thread that a request needs.

        Returns:
            After how long to look again, ns; 0: not before the next request on a new connection.
        """
        idle_ns = min([connection.idle_since for connection in self], default=None)
        closes, again_ns = self.threads.look(idle_ns, self._in_use, at_ns)
        if closes:
            self.close_all()
        return again_ns

    cpdef close_all(self):
        """Close all idle connections."""
        for connection in self:
            self._close(connection)
        for idle in (self._unused, self._resting, self._rested):
            idle.clear()

    cdef bint _opens_ahead(self) except -1:
        return (
            self.threads.answers_several
            and not self.threads.keeps_none
            and self.keep_alive.is_shown
        )

    cdef Py_ssize_t _spare(self) except -1:
        """How many connections may be open beside those of the peak."""
        if self.keep_alive.is_shown and not self.threads.answers_several:
            return 1
        return 1 + self.peak // SPARE

    cdef int64_t _rest_ns(self) except -1:
        return self.keep_alive.rest_ns(len(self._resting))

    cdef int _end_rests(self, int64_t at_ns) except -1:
        """Make connections ready that have rested for long enough."""
        cdef object resting = self._resting
        cdef KeepAlive keep_alive = self.keep_alive
        cdef KeptConnection connection
        while resting:
            connection = resting[0]
            if at_ns - connection.idle_since < self._rest_ns():
                break
            resting.popleft()
            if keep_alive.is_shown or connection.is_open():
                keep_alive.is_shown = True
                self._rested.append(connection)
            else:
                self._lose(connection, at_ns)
        return 0

    cdef KeptConnection _take_older(self, int64_t at_ns):
        """Take the newest rested connection that is open, where the newest is old or closed; of
        those that are too old for use only the oldest stays.
        """
        cdef list rested = self._rested
        cdef KeptConnection connection
        while rested:
            connection = rested[len(rested) - 1]
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

    cdef KeptConnection _take_unused(self, int64_t at_ns):
        """Take the oldest unused connection but for the witness.

        A server that gives each connection a thread has given its threads to the oldest.
        """
        cdef list unused = self._unused
        cdef KeptConnection connection
        while unused:
            connection = unused.pop(1 if len(unused) > 1 else 0)
            oldest = unused[0] if unused else connection
            if self.keep_alive.may_use(connection, oldest, at_ns) and connection.is_open():
                return connection
            self._close(connection)
        return None

    cdef int _lose(self, KeptConnection connection, int64_t at_ns) except -1:
        """Close a connection that the peer has closed."""
        self.keep_alive.closed(connection.requests, at_ns - connection.idle_since)
        self._close(connection)
        return 0


cdef bint _is_late(Record record, int64_t at_ns) noexcept:
    """Return whether the client is late with a request that is sent at `at_ns`."""
    return at_ns - record.ready - record.retried_ns >= LATE_NS
