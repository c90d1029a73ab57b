# cython: language_level=3
"""Connection: a connection to a server, which stamps what it reads before it parses it.

Budget per read: recv, clock_gettime, parsing (http1, sse), and one comparison with the time of the next send. Without
a tap no Python object is made, until the response has ended.
"""
cimport cython
from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdint cimport int64_t
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

from loadgen.core.c.clock cimport now_ns
from loadgen.core.c.sockets cimport MSG_DONTWAIT, MSG_NOSIGNAL, MSG_PEEK, recv, send
from loadgen.core.http1 cimport IDLE, READER, Response
from loadgen.core.read_loop cimport READ_BYTES, ReadLoop
from loadgen.core.record cimport Record

import os


cdef int read_and_stamp(object target) except -1:
    """Read what the socket of a Connection holds, and stamp it first: the `on_readable` of a ReadLoop."""
    cdef Connection connection = <Connection>target
    cdef char *buffer = connection.read_loop.buffer
    cdef ssize_t n = recv(connection.fd, buffer, READ_BYTES, MSG_DONTWAIT)
    if n < 0 and (errno == EAGAIN or errno == EINTR):
        return 0
    if n < 0:  # the kernel reports it once: the event loop would only see an end
        connection.error = OSError(errno, os.strerror(errno))
    if n <= 0:
        return connection._fall_back_to_loop()
    try:
        return connection._received(buffer, n, now_ns())
    except BaseException as fault:  # the response cannot be read further; the event loop logs what is raised
        connection.error = fault
        connection._fall_back_to_loop()
        connection.transport.abort()
        raise


@cython.final
cdef class Connection:
    """A connection as an asyncio protocol: stamps what arrives and tells its owner when a response has ended.

    A ReadLoop that is open reads the socket if it has no TLS; the transport is then paused. The event loop reads
    whenever there is more to do than reading: ends, errors, a request that does not fit into the socket at once.

    Args:
        owner: Has `ended(connection)`, called once per response, `reader(connection)`, called when aiohttp's reader
            must decode a response, and `dropped(connection, error)`, called when the peer or the network has ended
            the connection.
        handle: Kept for the owner.
        transport: The asyncio transport.
        read_loop: The loop that reads the socket; its hook counts reads, tokens and sends.

    Attributes:
        tap: None, or an object that gets what is sent and all that arrives, before it is parsed.
        requests: Requests that it has carried.
        idle_since: Kept for the owner.
        lost: Whether the connection has ended.
    """

    def __init__(self, owner, handle, transport, ReadLoop read_loop not None):
        self.owner, self.handle, self.transport = owner, handle, transport
        self.read_loop, self.hook = read_loop, read_loop.hook
        self.response = Response()
        self.response.keep_alive = True
        self.fd = -1

    @property
    def record(self):
        """The record of the request that it carries or has carried last; None before the first."""
        return self.response.record

    @property
    def complete(self):
        """Whether the response has ended and the record has its outcome."""
        return self.response.complete

    @property
    def keep_alive(self):
        """Whether it may carry another request."""
        return self.response.keep_alive

    @property
    def keep_alive_ns(self):
        """For how long it may be idle, if the server says so; else 0."""
        return self.response.keep_alive_ns

    def begin_reading(self):
        """Start to read; from now on the transport belongs to this connection."""
        self.socket_fd = self.transport.get_extra_info("socket").fileno()
        self.is_plain = self.read_loop.fd >= 0 and self.transport.get_extra_info("sslcontext") is None
        if self.is_plain:
            self._read_directly()
        else:
            self._fall_back_to_loop()

    def release(self):
        """Stop reading; the transport may be closed."""
        if self.fd >= 0:
            self.read_loop.forget(self.fd)
            self.fd = -1
        self.read_loop.loop_users -= self.uses_loop
        self.uses_loop = self.is_plain = False

    def is_open(self):
        """Ask the kernel whether the peer has neither closed the connection nor sent what no request asked for."""
        cdef char byte
        if self.lost or not self.response.keep_alive or self.transport.is_closing():
            return False
        return recv(self.socket_fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0 and (errno == EAGAIN or errno == EINTR)

    def send(self, bytes request not None, Record record not None):
        """Stamp and write a whole request, and expect its response."""
        cdef Py_ssize_t size = PyBytes_GET_SIZE(request), sent
        self.response.begin(record)
        self.requests += 1
        record.sent = now_ns()
        self.hook.sends += 1
        if self.fd >= 0:
            sent = send(self.fd, PyBytes_AS_STRING(request), size, MSG_DONTWAIT | MSG_NOSIGNAL)
            if sent < 0 and errno != EAGAIN and errno != EINTR:
                self.error = OSError(errno, os.strerror(errno))
            if sent < size:  # the event loop writes the rest when there is room, or meets the error
                self._fall_back_to_loop()
                self.transport.write(request[max(0, sent):])
        else:
            self.transport.write(request)
        if self.tap is not None:
            self.tap.sent(record)

    def raw(self):
        """Return all bytes so far of a response that aiohttp's reader must decode."""
        return self.response.raw()

    def feed_body(self, bytes data not None, int64_t at_ns):
        """Read the next bytes of a body that aiohttp's reader has decoded."""
        cdef int64_t counted = self.response.record.counted
        self.response.feed_body(data, at_ns)
        self.hook.tokens += self.response.record.counted - counted

    def eof(self, int64_t at_ns):
        """End a response whose body aiohttp's reader has decoded to its end."""
        self.response.eof(at_ns)

    def abandon(self, outcome, detail, int64_t at_ns):
        """End the response from the client's side: a timeout, an interrupt."""
        self.response.abandon(outcome, detail, at_ns)

    # What asyncio calls.

    def data_received(self, bytes data not None):
        """Read what the event loop has read."""
        self._received(PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data), now_ns())
        if self.uses_loop and self.is_plain and self.transport.get_write_buffer_size() == 0:
            self._read_directly()

    def connection_made(self, transport):
        """Take the transport."""
        self.transport = transport

    def eof_received(self):
        """Let the transport close itself."""
        return False

    def connection_lost(self, exc):
        """End the response, if one is under way, and tell the owner."""
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
        """Do nothing: a request is written whole."""

    cdef int _read_directly(self) except -1:
        """Have the read loop read the socket, unless the kernel watches no more files."""
        if not self.read_loop.watch(self.socket_fd, self, read_and_stamp):
            return self._fall_back_to_loop()
        self.transport.pause_reading()
        self.fd = self.socket_fd
        self.read_loop.loop_users -= self.uses_loop
        self.uses_loop = False
        return 0

    cdef int _fall_back_to_loop(self) except -1:
        """Have the event loop read the socket."""
        if self.fd >= 0:
            self.read_loop.forget(self.fd)
            self.fd = -1
            self.transport.resume_reading()
        self.read_loop.loop_users += not self.uses_loop
        self.uses_loop = True
        return 0

    cdef int _received(self, const char *p, Py_ssize_t n, int64_t at_ns) except -1:
        """Parse n bytes that arrived at `at_ns`, then call the send hook if it is due."""
        cdef Response response = self.response
        cdef bint was_complete = response.complete
        cdef Record record = response.record  # None before the first request
        cdef int64_t counted = 0 if record is None else record.counted
        self.hook.reads += 1
        if self.tap is not None and record is not None:
            self.tap.read(record, at_ns, p[:n])
        response.feed_raw(p, n, at_ns)
        if record is not None:
            self.hook.tokens += record.counted - counted
        if response.wants_reader and response.phase == READER:
            self._fall_back_to_loop()
            self.is_plain = False
            self.owner.reader(self)
        elif response.complete and not was_complete:
            if self.uses_loop and self.transport.get_write_buffer_size():  # answered before the request was all read
                response.keep_alive = False
            self.owner.ended(self)
        if at_ns >= self.hook.due_ns:  # last: it may send on this very connection
            self.hook.callback()
        return 0
