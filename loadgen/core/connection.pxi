# Connection: the part of `wire` that is an asyncio protocol; included there.


cdef class Bell:
    """Something to do at a set time that must not wait for a long turn of the loop: `ring()` at `at_ns`.

    An engine that steps a large batch makes a thousand streams readable at once, and the loop reads them all
    before it looks at its timers. So every read looks whether the bell is due, which costs a comparison, and is counted
    in `reads`, and what it brings in `tokens`, one for an event that does not say how many it bears; requests that are
    written are counted in `sends`. beats: whether a heartbeat rings in the same line.
    """

    def __init__(self):
        self.at_ns, self.ring, self.beats = NEVER, None, False


cdef class Connection(Response):
    """A connection as asyncio's protocol: stamps what arrives and tells its owner when a response has ended.

    The owner has `ended(connection)`, called once per response, `reader(connection)`, called when a response wants
    aiohttp's reader, and `dropped(connection, error)`, called when the peer or the network has ended the connection.
    A `poll` that is open reads the socket where it is one without TLS; the transport is then paused, and gets it back
    as long as there is more to do than reading.
    tap: None, or who is told of what is sent and of all that comes, before it is read.
    """

    def __init__(self, owner, handle, transport, Poll poll not None):
        self.owner, self.handle, self.transport, self.poll = owner, handle, transport, poll
        self.keep_alive = True
        self.fd = -1

    def begin_reading(self):
        """The transport is this connection's from now on, and idle."""
        self.socket_fd = self.transport.get_extra_info("socket").fileno()
        self.plain = self.poll.fd >= 0 and self.transport.get_extra_info("sslcontext") is None
        if self.plain:
            self._watch()
        else:
            self._lean()

    def release(self):
        """Nothing is read any more; the transport may be closed."""
        if self.fd >= 0:
            self.poll._forget(self.fd)
            self.fd = -1
        self.poll.leaning -= self.leans
        self.leans = self.plain = False

    def is_open(self):
        """Whether the peer has neither closed it nor sent what no request has asked for; the kernel knows it first."""
        cdef char byte
        if self.lost or not self.keep_alive or self.transport.is_closing():
            return False
        return recv(self.socket_fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0 and (errno == EAGAIN or errno == EINTR)

    def send(self, bytes request not None, Record record not None):
        """Write a whole request and expect its response."""
        cdef Py_ssize_t size = PyBytes_GET_SIZE(request), sent
        self.begin(record)
        self.requests += 1
        record.sent = now_ns()
        self.poll.sends += 1
        if self.fd >= 0:
            sent = send(self.fd, PyBytes_AS_STRING(request), size, MSG_DONTWAIT | MSG_NOSIGNAL)
            if sent < 0 and errno != EAGAIN and errno != EINTR:
                self.error = OSError(errno, os.strerror(errno))
            if sent < size:  # the rest when there is room; or what is wrong
                self._lean()
                self.transport.write(request[max(0, sent):])
        else:
            self.transport.write(request)
        if self.tap is not None:
            self.tap.sent(record)

    def data_received(self, bytes data not None):
        self._received(PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data), now_ns())
        if self.leans and self.plain and self.transport.get_write_buffer_size() == 0:
            self._watch()

    def feed_body(self, bytes data not None, int64_t at_ns):
        cdef int64_t counted = self.record.counted
        Response.feed_body(self, data, at_ns)
        self.poll.tokens += self.record.counted - counted

    def connection_made(self, transport):
        self.transport = transport

    def eof_received(self):
        return False

    def connection_lost(self, exc):
        cdef int64_t at_ns = now_ns()
        cdef bint was_open = self.phase != IDLE and not self.complete
        exc = self.error or exc
        self.lost = True
        self.keep_alive = False
        self.release()
        if was_open:
            if self.tap is not None:
                self.tap.lost(self.record, at_ns, exc)
            self.eof(at_ns, None if exc is None else str(exc) or type(exc).__name__)
        self.owner.dropped(self, exc)
        if was_open:
            self.owner.ended(self)

    def pause_writing(self):
        pass

    def resume_writing(self):
        pass

    cdef int _watch(self) except -1:
        """The poll reads it, unless the kernel watches no more sockets."""
        if not self.poll._watch(self.socket_fd, self):
            return self._lean()
        self.transport.pause_reading()
        self.fd = self.socket_fd
        self.poll.leaning -= self.leans
        self.leans = False
        return 0

    cdef int _lean(self) except -1:
        """The loop reads it."""
        if self.fd >= 0:
            self.poll._forget(self.fd)
            self.fd = -1
            self.transport.resume_reading()
        self.poll.leaning += not self.leans
        self.leans = True
        return 0

    cdef int _received(self, const char *p, Py_ssize_t n, int64_t at_ns) except -1:
        cdef bint was_complete = self.complete
        cdef Record record = self.record  # None before the first request
        cdef int64_t counted = 0 if record is None else record.counted
        self.poll.reads += 1
        if self.tap is not None and record is not None:
            self.tap.read(record, at_ns, p[:n])
        self.feed_raw(p, n, at_ns)
        if record is not None:
            self.poll.tokens += record.counted - counted
        if self.wants_reader and self.phase == READER:
            self._lean()
            self.plain = False
            self.owner.reader(self)
        elif self.complete and not was_complete:
            if self.leans and self.transport.get_write_buffer_size():  # answered before all of the request was read
                self.keep_alive = False
            self.owner.ended(self)
        if at_ns >= self.poll.at_ns:  # last: what rings may send on this very connection
            self.poll.ring()
        return 0
