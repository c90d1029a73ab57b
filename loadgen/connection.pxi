# Connection: the part of `wire` that is an asyncio protocol; included there.


cdef class Bell:
    """Something to do at a set time that must not wait for a long turn of the loop: `ring()` at `at_ns`.

    An engine that steps a large batch makes a thousand streams readable at once, and the loop reads them all
    before it looks at its timers. So every read looks whether the bell is due, which costs a comparison, and is
    counted in `reads`.
    """

    def __init__(self):
        self.at_ns, self.ring = NEVER, None


cdef class Connection(Response):
    """A connection as asyncio's protocol: stamps what arrives and tells its owner when a response has ended.

    The owner has `ended(connection)`, called once per response, `reader(connection)`, called when a response wants
    aiohttp's reader, and `dropped(connection, error)`, called when the peer or the network has ended the connection.
    tap: None, or who is told of what is sent and of all that comes, before it is read.
    """

    def __init__(self, owner, handle, transport, Bell bell not None):
        self.owner, self.handle, self.transport, self.bell = owner, handle, transport, bell
        self.keep_alive = True

    def send(self, bytes request not None, Record record not None):
        """Write a whole request and expect its response."""
        self.begin(record)
        record.sent = now_ns()
        self.transport.write(request)
        if self.tap is not None:
            self.tap.sent(record)

    def data_received(self, bytes data not None):
        cdef int64_t at_ns = now_ns()
        cdef bint was_complete = self.complete
        self.bell.reads += 1
        if self.tap is not None:
            self.tap.read(self.record, at_ns, data)
        self.feed_raw(PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data), at_ns)
        if self.wants_reader and self.phase == READER:
            self.owner.reader(self)
        elif self.complete and not was_complete:
            self.owner.ended(self)
        if at_ns >= self.bell.at_ns:  # last: what rings may send on this very connection
            self.bell.ring()

    def connection_made(self, transport):
        self.transport = transport

    def eof_received(self):
        return False

    def connection_lost(self, exc):
        cdef int64_t at_ns = now_ns()
        cdef bint was_open = self.phase != IDLE and not self.complete
        self.lost = True
        self.keep_alive = False
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
