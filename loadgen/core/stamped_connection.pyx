# cython: language_level=3
"""Connection: a connection to a server, which stamps what it reads before it parses it.

The time of sending is read from the error queue of the socket right after `send` (1.2 us). It is
used if it lies within the call; else the readings of the clock around the call bound it. Stamps
that come late are taken out, since each would wake the loop.

Budget per read: recv, clock_gettime, parsing (http1, sse), and one comparison with the time of the
next send. Without a tap no Python object is made, until the response has ended.
"""
cimport cython
from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdint cimport int64_t
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

from loadgen.core.answer cimport COMPLETE, UNFINISHED, Finish
from loadgen.core.arrivals cimport Arrivals
from loadgen.core.c.kernel cimport (
    MSG_DONTWAIT, MSG_NOSIGNAL, MSG_PEEK, SHUT_RDWR, ask_for_stamps, now_ns, receive, recv, send, shutdown,
    stamp_of_sent,
)
from loadgen.core.http1 cimport CHUNK_END, CHUNK_SIZE, IDLE, Response
from loadgen.core.keep_alive cimport KeptConnection
from loadgen.core.kernel_clock cimport KernelClock
from loadgen.core.read_loop cimport READ_BYTES, ReadLoop
from loadgen.core.record cimport Record
from loadgen.util.method cimport call

import os

from loadgen.core.outcome import Outcome

cdef int read_and_stamp(object target) except -1:
    """Read what the socket of a Connection holds, and stamp it first: the `on_readable` of a
    ReadLoop.
    """
    cdef Connection connection = <Connection>target
    cdef char *buffer = connection.read_loop.buffer
    cdef int64_t on_real_ns
    cdef ssize_t n = receive(connection.fd, buffer, READ_BYTES, &on_real_ns)
    if n < 0 and (errno == EAGAIN or errno == EINTR):
        stamp_of_sent(connection.fd)  # one that came late would be reported again and again
        return errno == EINTR
    if n < 0:  # the kernel reports it once: the event loop would only see an end
        connection.error = OSError(errno, os.strerror(errno))
    if n <= 0:
        return connection._fall_back_to_loop()
    connection._read(buffer, n, now_ns(), on_real_ns, n < READ_BYTES)
    return n == READ_BYTES


cdef class Owner:
    """What takes connections back without a call of Python."""

    cdef int take_back(self, Connection connection) except -1:
        """Take a connection whose response has ended."""
        raise NotImplementedError


@cython.final
cdef class Connection(KeptConnection):
    """A connection as an asyncio protocol: stamps what arrives and tells its owner when a response
    has ended.

    A ReadLoop that is open reads the socket; the transport is then paused. The event loop reads
    whenever there is more to do than reading: ends, errors, a request that does not fit into the
    socket at once.

    Args:
        owner: Has `ended(connection)`, called once per response; `finished(connection,
            is_complete)`, called when more of the end of an answer has come and its response is
            still open; and `dropped(connection, error)`, called when the peer or the network has
            ended the connection.
        transport: The asyncio transport.
        read_loop: The loop that reads the socket; its hook counts reads, tokens and sends.
        tls: A `TlsStream` after its handshake; None: the connection has no TLS.
        scanner: As that of a `Response`.
        bytes_read: How many bytes were read from the socket before: a proxy's answer, a handshake.

    Attributes:
        tap: None, or an object that gets what is sent and all that arrives, before it is parsed.
        lost: Whether the connection has ended.
    """

    def __init__(
        self, owner, transport, ReadLoop read_loop not None, tls=None, scanner=None,
        Py_ssize_t bytes_read=0
    ):
        super().__init__(scanner)
        self.owner, self.transport = owner, transport
        self.read_loop, self.hook, self.tls = read_loop, read_loop.hook, tls
        self.fd = self.socket_fd = -1
        self.arrivals = Arrivals(read_loop, bytes_read)

    def begin_reading(self):
        """Start to read; from now on the transport belongs to this connection."""
        self.socket_fd = self.transport.get_extra_info("socket").fileno()
        self.arrivals.open(self.socket_fd)
        self.is_readable = self.read_loop.fd >= 0
        if self.is_readable:
            # so that resume_writing is called when nothing is left to write
            self.transport.set_write_buffer_limits(0)
            self._read_directly()
        else:
            self._fall_back_to_loop()

    def release(self):
        """Stop reading; the transport may be closed."""
        if self.fd >= 0:
            self.read_loop.forget(self.fd)
            self.fd = -1
        self.uses_loop = False
        self.is_readable = False

    def shut(self):
        """Tell the peer at once that the connection ends: the event loop closes the socket only at
        its next turn, and a server may wait for that.
        """
        if not self.lost and not self.transport.is_closing():
            shutdown(self.socket_fd, SHUT_RDWR)

    cpdef bint is_open(self) except -1:
        cdef char byte
        if self.lost or not self.response.keep_alive:
            return False
        # by itself the event loop closes only what it reads, and a TLS session ends unasked
        if (self.fd < 0 or self.tls is not None) and self.transport.is_closing():
            return False
        if recv(self.socket_fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) >= 0:
            return False
        return errno == EAGAIN or errno == EINTR

    cpdef int send(self, bytes request, Record record) except -1:
        """Stamp and write a whole request, and expect its response."""
        cdef Py_ssize_t size, sent
        if self.tls is not None:
            request = self.tls.encrypt(request)
        size = PyBytes_GET_SIZE(request)
        self.response.begin(record)
        self.requests += 1
        record.sent = now_ns()
        self.arrivals.begin_response(record.sent)
        if record.index >= 0:
            self.hook.sends += 1
        if self.fd >= 0:
            sent = send(self.fd, PyBytes_AS_STRING(request), size, MSG_DONTWAIT | MSG_NOSIGNAL)
            if sent < 0 and errno != EAGAIN and errno != EINTR:
                self.error = OSError(errno, os.strerror(errno))
            record.written = now_ns()
            if sent < size:  # the event loop writes the rest when there is room, or meets the error
                self._fall_back_to_loop()
                self.transport.write(request[max(0, sent):])
                if self.transport.get_write_buffer_size() == 0:  # there was room meanwhile
                    self.resume_writing()
            else:
                self._take_stamp_of_sent(record)
        else:
            self.transport.write(request)
            record.written = now_ns()
        if self.tap is not None:
            self.tap.sent(record)
        return 0

    def abandon(self, outcome, detail, int64_t at_ns):
        """End the response from the client's side: a timeout, an interrupt."""
        if self.response.phase != IDLE and not self.response.complete and not self.lost:
            self.arrivals.end_request(self.response.record, False)
        self.response.abandon(outcome, detail, at_ns)

    # What asyncio calls.

    def data_received(self, bytes data not None):
        """Read what the event loop has read."""
        self._read(PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data), now_ns(), 0, False)
        if self.uses_loop and self.is_readable:
            # one that came late would wake the event loop again and again
            stamp_of_sent(self.socket_fd)
            if self.transport.get_write_buffer_size() == 0:
                self._read_directly()

    def take(
        self, bytes data not None, int64_t read_ns, int64_t on_real_ns, bint emptied,
        bint reordered=False
    ):
        """For tests: read bytes as the read loop would, with a stamp on CLOCK_REALTIME."""
        if reordered:
            self.arrivals.segments.was_reordered = True
        self._read(PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data), read_ns, on_real_ns, emptied)

    def connection_made(self, transport):
        """Take the transport."""
        self.transport = transport

    def eof_received(self):
        """Let the transport close itself."""
        return False

    def connection_lost(self, exc):
        """End the response, if one is under way, and tell the owner."""
        self.hook.guarded(self._lost, exc)

    def _lost(self, exc):
        cdef int64_t at_ns = now_ns()
        cdef bint was_open = self.response.phase != IDLE and not self.response.complete
        exc = self.error or exc
        self.lost = True
        self.response.keep_alive = False
        self.release()
        if was_open:
            if self.tap is not None:
                self.tap.lost(self.response.record, at_ns, exc)
            self.response.eof(at_ns, None if exc is None else str(exc) or type(exc).__name__)
        self.owner.dropped(self, exc)
        if was_open:
            self.owner.ended(self)

    def pause_writing(self):
        """Do nothing: a request is written whole."""

    def resume_writing(self):
        """Read the socket directly again once the rest of a large request has been written."""
        if self.uses_loop and self.is_readable:
            self._read_directly()

    cdef int _take_stamp_of_sent(self, Record record) except -1:
        """Take the kernel's time at which the last byte of a request left, where it lies within
        the call of `send`.
        """
        cdef KernelClock clock = self.read_loop.kernel_clock
        cdef int64_t on_real_ns = stamp_of_sent(self.socket_fd), at_ns
        if on_real_ns and clock.usable and clock.slack_ns == 0:
            at_ns = clock.monotonic_ns(on_real_ns)
            if record.sent <= at_ns <= record.written:
                record.sent = record.written = at_ns
        return 0

    cdef int _read_directly(self) except -1:
        """Have the read loop read the socket, unless the kernel watches no more files."""
        ask_for_stamps(self.socket_fd, True)
        if not self.read_loop.watch(self.socket_fd, self, read_and_stamp):
            return self._fall_back_to_loop()
        self.transport.pause_reading()
        self.fd = self.socket_fd
        self.uses_loop = False
        return 0

    cdef int _fall_back_to_loop(self) except -1:
        """Have the event loop read the socket."""
        if self.fd >= 0:
            self.read_loop.forget(self.fd)
            # the event loop would be called for each stamp, and take none
            ask_for_stamps(self.fd, False)
            stamp_of_sent(self.fd)
            self.fd = -1
            self.transport.resume_reading()
        self.uses_loop = True
        return 0

    cdef int _read(self, const char *p, Py_ssize_t n, int64_t read_ns, int64_t on_real_ns,
                   bint emptied) except -1:
        """As `_received`; an exception ends the response and the connection."""
        try:
            self._received(p, n, read_ns, on_real_ns, emptied)
        except Exception as fault:
            self._end_with(fault)
        return 0

    cdef int _end_with(self, fault) except -1:
        """End the response, if one is open, and the connection with an exception of ours."""
        cdef Response response = self.response
        cdef bint was_open = response.phase != IDLE and not response.complete
        response.abandon(Outcome.CLIENT_ERROR, f"{type(fault).__name__}: {fault}", now_ns())
        response.keep_alive = False
        self.transport.abort()
        self.hook.on_fault(fault)
        if was_open:
            self.hook.guarded(self.owner.ended, self)
        return 0

    cdef int _take_back(self) except -1:
        """Give the connection back to its owner, since a response has ended."""
        if isinstance(self.owner, Owner):
            return (<Owner>self.owner).take_back(self)
        self.owner.ended(self)
        return 0

    cdef int _received(self, const char *p, Py_ssize_t n, int64_t read_ns, int64_t on_real_ns,
                       bint emptied) except -1:
        """Parse n bytes, then call the send hook if it is due.

        Args:
            read_ns: When they were read.
            on_real_ns: The kernel's stamp of the last of them, on CLOCK_REALTIME; 0: it gave none.
            emptied: Whether they were all that the socket held.
        """
        cdef Response response = self.response
        cdef Arrivals arrivals = self.arrivals
        cdef bint was_complete = response.complete
        cdef Record record = response.record  # None before the first request
        cdef int64_t counted = 0 if record is None else record.counted
        cdef int64_t at_ns = arrivals.add(n, read_ns, on_real_ns, emptied)
        cdef Finish was_finished = UNFINISHED if record is None else record.finish
        cdef bytes decrypted
        if record is not None:
            record.events_before = record.events
        self.hook.reads += 1
        if self.tls is not None:
            decrypted = self._decrypt(p, n)
        if self.tap is not None and record is not None:
            self.tap.read(record, at_ns, p[:n] if self.tls is None else decrypted)
        if self.tls is None:
            response.feed_raw(p, n, at_ns)
        else:
            response.feed_raw(PyBytes_AS_STRING(decrypted), PyBytes_GET_SIZE(decrypted), at_ns)
            response.events.tail += self.tls.is_partial
        if response.phase == CHUNK_END:
            self.read_loop.splits_chunks = True
        if record is not None:
            if record.index >= 0:
                self.hook.tokens += record.counted - counted
            if arrivals.fills_window(n):
                record.window_filled = True
            if record.events > record.events_before:
                arrivals.bound(record, self._ends_event(), self.uses_loop)
        arrivals.end_read()
        if not response.complete:
            if record is not None and record.finish != was_finished:
                self.owner.finished(self, record.finish == COMPLETE)
        elif not was_complete:
            arrivals.end_request(record, True)
            # answered before the request was all read
            if self.uses_loop and self.transport.get_write_buffer_size():
                response.keep_alive = False
            self._take_back()
        if read_ns >= self.hook.due_ns:  # last: it may send on this very connection
            call(self.hook.callback)
        return 0

    cdef bytes _decrypt(self, const char *p, Py_ssize_t n):
        """Decrypt bytes of a TLS session, send what it answers itself, and close after its end."""
        cdef bytes decrypted = self.tls.decrypt(p[:n])
        reply = self.tls.take_reply()
        if reply:
            self.transport.write(reply)
        if self.tls.closed:
            self.error = self.tls.error
            self.transport.close()
        return decrypted

    cdef bint _ends_event(self) noexcept:
        """Whether what was read ended with the end of an event."""
        # The end of a chunk belongs to its event, and may have come later.
        cdef bint may_end_later = (
            self.read_loop.splits_chunks and self.response.phase == CHUNK_SIZE
        )
        return self.response.events.tail == 0 and not may_end_later
