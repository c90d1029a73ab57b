# cython: language_level=3
"""Arrivals: when the bytes of a connection came, and how early its events can have come.

- The time of a token is the kernel's. With SO_TIMESTAMPING, recvmsg returns when the last segment
  of what was read reached the host. A C client that reads 24 ms late at p99 still has stamps with a
  p99 error of 22 us. Without a stamp the time is that of the reading, taken before parsing.
- A stamp holds for the last event of a read that emptied the socket; else it may be that of a later
  segment. A read that returns less than it has room for emptied it: the kernel copies all it has.
- Any other event lies between the stamp and the last time at which the socket was empty: the stamp
  of the read before, or the turn in which epoll did not report it (`ReadLoop.empty_until_ns`). What
  woke the thread came no earlier than the thread can have waited (`ReadLoop.ready_since_ns`).
  Without the rule for a stopped process there, tokens that had waited 48 ms were called exact, in
  one of 70 runs with stops of 50 ms.
- Events of one segment came together. TCP_INFO (1.2 us) counts the segments (`c/segments`); it is
  asked after a read that brought several events, or whose stamp is old, or that ends the response.
- A stamp can be too early: behind a lost segment it is that of one that was not readable yet. One
  more than 50 us older than its read is asked about, by the counter of reordered segments in the
  same TCP_INFO. Where that rose in this response, the times are those of the read, with its bound.
  On a link with 1 % loss and a round trip of 40 ms, p99 TTFT is 103.1 ms +- 5.9 for a true 103.0;
  stamps alone give 83.7 +- 0.09 for a true 103.3.
- The end of a chunk belongs to its event. A read that ends between the two shows a server that
  writes them apart; from then on TCP_INFO is asked for each event that is followed by the end of
  its chunk. To ask for every event would cost a tenth of it.
- A bound is stored only where it differs from the time, so exact streams take no more memory.

Budget per read: one stamp is converted and compared.
"""
cimport cython
from libc.stdint cimport int64_t, uint64_t

from loadgen.core.c.events cimport REORDERED, USER
from loadgen.core.c.network cimport set_facts
from loadgen.core.c.segments cimport (
    Segments, add_read, ask_segments, begin_response, begin_segments, is_early,
)
from loadgen.core.c.window cimport fills_window, learn_window
from loadgen.core.kernel_clock cimport KernelClock
from loadgen.core.read_loop cimport ReadLoop
from loadgen.core.record cimport Record


@cython.final
cdef class Arrivals:
    """The reads of one connection.

    Args:
        read_loop: Says how late it reads.
        bytes_read: How many bytes were read before.
    """

    def __init__(self, ReadLoop read_loop not None, uint64_t bytes_read=0):
        self.read_loop, self.clock = read_loop, read_loop.kernel_clock
        self.fd = -1
        self.was_emptied = True
        learn_window(&self.window, self.fd)
        begin_segments(&self.segments, bytes_read)

    cdef int open(self, int fd) except -1:
        """Take the socket; what was read from it is what the next read is compared with."""
        self.fd = fd
        learn_window(&self.window, fd)
        if self.segments.bytes_read:
            ask_segments(&self.segments, fd)
        return 0

    cdef int begin_response(self, int64_t sent_ns) except -1:
        """Expect the response to a request that is sent at `sent_ns`."""
        self.emptied_ns, self.was_emptied = sent_ns, True
        begin_response(&self.segments, self.fd)
        return 0

    cdef int64_t add(self, Py_ssize_t n, int64_t read_ns, int64_t on_real_ns, bint emptied) except? -1:
        """Take a read of n bytes; return when they came.

        Args:
            read_ns: When they were read.
            on_real_ns: The kernel's stamp of the last of them, on CLOCK_REALTIME; 0: it gave none.
            emptied: Whether they were all that the socket held.
        """
        cdef KernelClock clock = self.clock
        cdef bint is_stamped = on_real_ns != 0 and clock.usable, is_reordered
        cdef int64_t at_ns = read_ns, least_ns, most_ns
        if is_stamped:
            at_ns = clock.monotonic_ns(on_real_ns)
            if clock.slack_ns:  # the latest time that the stamp can mean
                at_ns = min(at_ns + clock.slack_ns, read_ns)
        add_read(&self.segments, n, emptied)
        is_reordered = is_stamped and is_early(&self.segments, self.fd, read_ns - at_ns)
        if is_reordered:
            at_ns = max(at_ns, self.emptied_ns)
        # by the width of a pair of readings, or CLOCK_REALTIME was set
        if at_ns > read_ns or at_ns < self.emptied_ns:
            least_ns, most_ns = self.emptied_ns - clock.max_width_ns, read_ns + clock.max_width_ns
            is_stamped = least_ns <= at_ns <= most_ns
            at_ns = max(at_ns, self.emptied_ns) if is_stamped and at_ns <= read_ns else read_ns
        self.at_ns, self.read_ns = at_ns, read_ns
        self.is_stamped, self.is_reordered, self.emptied = is_stamped, is_reordered, emptied
        # the read before may have had no stamp, and so a later time
        self.latest_ns = max(self.latest_ns, read_ns if is_reordered else at_ns)
        return self.latest_ns

    cdef bint fills_window(self, Py_ssize_t n) except -1:
        """Whether the n bytes of the last read may have filled the receive window."""
        return fills_window(&self.window, self.fd, n, self.read_ns - self.at_ns)

    cdef int bound(self, Record record, bint ends_event, bint by_loop) except -1:
        """Store how early the events can have come that the last read has brought.

        A stamp is that of the last segment of what was read, or of one that is still unread. It
        holds for the last event if that ends what has come, and for all events if what has come was
        one segment. Where segments were reordered it is only the earliest time of the last event.

        Args:
            record: What they were written to.
            ends_event: Whether the read ended with the end of an event.
            by_loop: Whether the event loop read it.
        """
        cdef bint ends_read = self.emptied and ends_event
        cdef Py_ssize_t first = record.events_before, exact_from
        cdef int64_t earliest_ns = self.emptied_ns, at_ns = self.at_ns
        cdef int64_t seen_ns = self.read_ns if self.is_reordered else at_ns  # all had come by then
        cdef int64_t slack_ns = self.clock.slack_ns
        record.set_read(first, self.read_ns)
        if self.was_emptied and not by_loop:
            earliest_ns = max(earliest_ns, self.read_loop.empty_until_ns(seen_ns))
        if not self.is_stamped or self.is_reordered:
            exact_from = record.events
            record.set_source(first, REORDERED if self.is_reordered else USER)
        elif (
            ends_read and record.events - first == 1
            or ask_segments(&self.segments, self.fd)
        ):
            exact_from = first
            if self.read_loop.woken_ns:
                self.read_loop.learn_wake(at_ns, self.read_ns)
        else:
            exact_from = record.events - ends_read
        if exact_from > first:
            earliest_ns = max(earliest_ns, self.read_loop.ready_since_ns(self.read_ns, seen_ns))
            earliest_ns = min(earliest_ns, seen_ns)
            record.set_earliest(first, exact_from, earliest_ns)
            if self.is_reordered and ends_read and at_ns > earliest_ns:
                record.set_earliest(exact_from - 1, exact_from, at_ns)
        # Their stamps are those of a read before that came late; or the clock is slow.
        if at_ns < self.latest_ns or slack_ns:
            record.set_earliest(exact_from, record.events, at_ns - 2 * slack_ns)
        return 0

    cdef int end_request(self, Record record, bint has_read) except -1:
        """Store what TCP saw during a request.

        Args:
            record: Of the request.
            has_read: Whether a read has just ended it.
        """
        cdef Segments *segments = &self.segments
        segments.was_asked = segments.was_asked and has_read
        ask_segments(segments, self.fd)
        if segments.is_known:
            set_facts(&record.tcp, &segments.numbers, &self.numbers_before)
        return 0

    cdef int end_read(self) except -1:
        """Keep of the last read what the next one is compared with."""
        self.was_emptied = self.emptied
        if self.emptied:
            self.emptied_ns = self.read_loop.asked_ns
            if self.is_stamped:
                self.emptied_ns = self.at_ns - 2 * self.clock.slack_ns
        return 0
