# cython: language_level=3
"""RequestRows: a packed row for each request that has ended.

Budget per request: 40 bytes.
"""
cimport cython
from libc.stdint cimport int32_t, int64_t, uint32_t
from cpython.bytes cimport PyBytes_FromStringAndSize

from loadgen.core.record cimport Record

from loadgen.core.outcome import Cause, Outcome

# In place of the latencies of a request that was not ok: LEFT where its user ended it.
FAILED, CANCELLED, LEFT = (-1, -2, -3)

cpdef enum:
    NO_TPOT = -1  # of an answer of one token

cdef object OK = Outcome.OK
cdef dict IN_PLACE = {Cause.RUN: CANCELLED, Cause.USER: LEFT}


@cython.final
cdef class RequestRows:
    """The rows of a run, in the order in which requests ended.

    Args:
        start_ns: When the clock of the run starts.
        from_due: Whether latencies count from due; else from sent.
    """

    def __init__(self, int64_t start_ns, bint from_due):
        self.start_ns, self.from_due, self.blocks = start_ns, from_due, []

    cpdef add(self, Record record):
        """Add a record that has its outcome."""
        cdef Row *row = &self.block[self.count]
        cdef int64_t since_ns = record.due if self.from_due else record.sent
        cdef int64_t tokens
        row.index = <uint32_t>record.index
        row.sent = record.sent - self.start_ns if record.sent else -1
        row.closed = record.closed - self.start_ns
        if record.outcome is OK:
            tokens = record.tokens_but_one()
            row.ttft = <float><double>max(record.first_token - since_ns, 0)
            row.e2el = <float><double>max(record.last_token - since_ns, 0)
            row.tpot = NO_TPOT
            if tokens > 0:
                row.tpot = <float><double>((record.last_token - record.first_token) // tokens)
        else:
            row.ttft = row.e2el = row.tpot = IN_PLACE.get(record.outcome.cause, FAILED)
        row.input_tokens = <int32_t>(
            record.prompt_tokens if record.prompt_tokens >= 0 else record.get_expected_tokens()
        )
        row.cached_tokens = <int32_t>record.cached_tokens
        self.count += 1
        if self.count == BLOCK:
            self.blocks.append(PyBytes_FromStringAndSize(<char *>self.block, sizeof(self.block)))
            self.count = 0

    def __bytes__(self):
        rows = PyBytes_FromStringAndSize(<char *>self.block, self.count * <Py_ssize_t>sizeof(Row))
        return b"".join([*self.blocks, rows])
