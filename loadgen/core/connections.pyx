# cython: language_level=3
"""Connections: brings requests to one server, and takes the connections back.

Budget per request: its bytes are made once, a connection is popped, written to, and pushed again.
No task, future, coroutine or Python function.
"""
from libc.stdint cimport int64_t

from loadgen.core.c.kernel cimport now_ns
from loadgen.core.keep_alive cimport KeptConnection
from loadgen.core.pool cimport Pool
from loadgen.core.read_loop cimport ReadLoop
from loadgen.core.record cimport Record
from loadgen.core.request_encoder cimport RequestEncoder
from loadgen.core.stamped_connection cimport Connection, Owner
from loadgen.util.method cimport call_with

from loadgen.core.outcome import Outcome

cdef object REFUSED = Outcome.REFUSED


cdef class Connections(Owner):
    """The connections to one server: sends each request on one of them, and takes it back once the
    response has ended.

    The subclass opens and closes connections, and does what few requests need: `refused(connection)`
    ends a request whose connection was closed before a byte of a response, and
    `ends_early(connection)` one so long after it was sent, unless its response has ended.

    Args:
        read_loop: Reads the connections.
        pool: Those without a request, and requests without a connection.
        encoder: As the attribute.

    Attributes:
        on_end: Called once with every Record that was given to `send`, when it has its outcome.
        encoder: Makes the bytes of its requests; another one may take its place at any time.
        hook: The hook of the read loop.
        read_loop: The same.
        pool: The same.
        active: The connections that carry a request.
        heard_ns: When the last token of an answer that has ended came, or its first byte where it
            has none; 0: no answer has ended.
    """

    def __init__(
        self, ReadLoop read_loop not None, Pool pool not None, RequestEncoder encoder not None
    ):
        self.read_loop, self.hook, self.pool = read_loop, read_loop.hook, pool
        self.encoder, self.active = encoder, set()
        self.on_end = _ignore

    def send(self, Record record not None, bytes body not None):
        """Send one request now, or as soon as a connection is open; `on_end` is called with the
        record later.
        """
        self.send_request(record, body)

    def send_on(self, Connection connection not None, Record record not None, bytes request):
        """Send a request on a connection that was taken for it."""
        self.put(connection, record, request)

    def ended(self, Connection connection not None):
        """Keep or close a connection whose response has ended, then pass its record to `on_end`."""
        self.take_back(connection)

    cdef int send_request(self, Record record, bytes body) except -1:
        """As `send`."""
        cdef bytes request = self.encoder.encode(record, body)
        cdef int64_t at_ns = now_ns()
        cdef Pool pool = self.pool
        cdef KeptConnection connection = None
        if not pool.waiting or pool.has_turn(record, at_ns):
            connection = pool.take(at_ns)
        if connection is not None:
            self.put(<Connection>connection, record, request)
        else:
            pool.wait(record, request, at_ns)
        if pool.is_short or connection is None:
            self.serve()
        return 0

    cdef int put(self, Connection connection, Record record, bytes request) except -1:
        """As `send_on`."""
        record.reused = connection.requests > 0
        connection.send(request, record)
        self.active.add(connection)
        if not record.reused:
            self.sent_first(record)
        if record.end_after_ns >= 0:
            self.ends_early(connection)
        return 0

    cdef int take_back(self, Connection connection) except -1:
        """As `ended`."""
        cdef Record record = connection.response.record
        self.active.discard(connection)
        if record.first_byte:
            self.heard_ns = max(self.heard_ns, record.last_token or record.first_byte)
        self.pool.rest(connection, now_ns())
        if record.outcome is REFUSED:
            self.refused(connection)
        else:
            call_with(self.on_end, record)
        if self.pool.waiting:
            self.serve()
        return 0

    def serve(self):
        """Open connections for the requests that wait, and for the next ones."""
        raise NotImplementedError

    def sent_first(self, record):
        """Take note of the first request of a connection."""
        raise NotImplementedError


def _ignore(record):
    """Take a record that nobody waits for."""
