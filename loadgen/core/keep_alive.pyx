# cython: language_level=3
"""For how long a server keeps idle connections open, as far as it has shown.

A server may close an idle connection at any time. A request that is on its way then is lost, and a
POST must not be sent twice. The rules:

- A connection rests after its first response. llama.cpp promises keep-alive and closes after every
  stream, most often within half a millisecond, on a crowded machine some tens of milliseconds
  later. So the rest is long until one connection has lasted through it; where several rest and
  the server has closed none, a part of it shows the same. A connection that has carried two
  responses was kept after one of them, and needs no rest.
- A connection that has been idle for up to SAFE_AGE_NS may be used. An older one may be used if
  the server's limit is known, from its head or from a close, or while another one that has been
  idle for MARGIN_NS longer is open: the witness, the oldest of those that wait.
"""

cimport cython
from libc.stdint cimport int64_t

from loadgen.core.http1 cimport Response

REST_NS = 5_000_000
LONG_REST_NS = 250_000_000
LEAST_LONG_REST_NS = 25_000_000
SAFE_AGE_NS = 1_000_000_000
# A request must reach the server before its limit has passed: half a round trip after the response
# left, and another half after the send. The rest allows for timers.
MARGIN_NS = 250_000_000


cdef class KeptConnection:
    """A connection that may carry several requests, one after another; the subclass has a socket.

    Args:
        scanner: As that of a `Response`.

    Attributes:
        response: Reads the response to the request that it carries.
        requests: Requests that it has carried.
        idle_since: When the last response ended, or it was opened, ns; kept by the pool.
    """

    def __init__(self, scanner=None):
        self.response = Response(scanner)
        self.response.keep_alive = True

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

    cpdef bint is_open(self) except -1:
        """Ask whether the peer has neither closed it nor sent what no request asked for."""
        raise NotImplementedError


@cython.final
cdef class KeepAlive:
    """What a server has shown of how long it keeps idle connections.

    Attributes:
        is_shown: Whether one has lasted after a response.
        closes_soon: Whether it has closed one behind a response.
        limit_ns: Age at which it closes an idle one, as far as known.
        safe_ns: Up to this age one may be used without a witness.
    """

    def __init__(self):
        self.safe_ns = SAFE_AGE_NS

    cpdef int64_t rest_ns(self, Py_ssize_t count) except -1:
        """Return how long connections rest after their first response.

        Args:
            count: How many rest.
        """
        if self.is_shown:
            return REST_NS
        if self.closes_soon:
            return LONG_REST_NS
        return max(LONG_REST_NS // max(count, 1), LEAST_LONG_REST_NS)

    cpdef bint may_use(
        self, KeptConnection connection, KeptConnection oldest, int64_t at_ns
    ) except -1:
        """Return whether a request may use an idle connection, by its age.

        Args:
            connection: The connection.
            oldest: The one that has been idle for longest.
            at_ns: Now.
        """
        cdef int64_t age_ns = at_ns - connection.idle_since
        if self.limit_ns is not None:
            # The close had another reason than age where one lasts for much longer.
            if at_ns - oldest.idle_since < 2 * <int64_t>self.limit_ns or not oldest.is_open():
                return age_ns < self.safe_ns
            self.limit_ns = None
            self.safe_ns = SAFE_AGE_NS
        if age_ns < self.safe_ns:
            return True
        return connection.idle_since - oldest.idle_since > MARGIN_NS and oldest.is_open()

    def limit(self, int64_t age_ns):
        """Take a limit that the server names, or has shown by a close."""
        self.limit_ns = age_ns if self.limit_ns is None else min(self.limit_ns, age_ns)
        self.safe_ns = self.limit_ns - MARGIN_NS

    def closed(self, int64_t responses, int64_t age_ns):
        """Learn from a connection that the server has closed.

        Args:
            responses: How many it has carried.
            age_ns: For how long it was idle.
        """
        if not responses:
            return
        if age_ns >= LONG_REST_NS or responses > 1:
            self.limit(age_ns)
        else:  # behind a response
            self.is_shown = False
            self.closes_soon = True
