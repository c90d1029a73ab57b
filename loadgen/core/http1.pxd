# cython: language_level=3
"""The C side of the reader of HTTP/1.1 responses."""
from libc.stdint cimport int64_t

from loadgen.core.answer cimport Finish
from loadgen.core.c.memory cimport Buffer
from loadgen.core.c.http_head cimport ResponseHead
from loadgen.core.record cimport Record
from loadgen.core.sse cimport SseReader


cdef enum Phase:
    IDLE          # no request under way
    HEAD          # status line and fields
    LENGTH        # a body of known length
    UNTIL_CLOSE   # a body that ends with the connection
    CHUNK_SIZE    # the line before a chunk
    CHUNK         # inside a chunk
    CHUNK_END     # the line end after a chunk
    TRAILER       # fields after the last chunk
    ENDED


cdef class Response:
    cdef readonly Record record
    cdef readonly bint complete, keep_alive
    cdef readonly int64_t keep_alive_ns
    cdef Phase phase
    cdef SseReader events
    cdef bint is_stream
    cdef int64_t at_ns, body_left, received
    cdef int64_t max_events  # of the answer
    cdef int64_t free_events  # up to so many, no limit can be passed
    cdef ResponseHead head
    cdef Buffer undecoded  # a head, or a line before or after a chunk
    cdef Buffer body  # of a response that is no stream
    cpdef int begin(self, Record record) except -1
    cdef int feed_raw(self, const char *p, Py_ssize_t n, int64_t at_ns) except -1
    cdef int _clear_head(self) except -1
    cdef Py_ssize_t _read_head(self, const char *p, Py_ssize_t n) except -1
    cdef int _start_body(self) except -1
    cdef int _read_chunk_line(self, const char *p, Py_ssize_t n) except -1
    cdef int _read_body(self, const char *p, Py_ssize_t n) except -1
    cdef int _read_events(self, const char *p, Py_ssize_t n) except -1
    cdef int _limit_events(self) except -1
    cdef int _end(self, object outcome=*, object detail=*) except -1
    cdef bint _has_answer(self, Finish least) except -1
    cdef int _end_answer(self) except -1
    cdef tuple _read_outcome(self)
    cdef bint _in_one_piece(self) except -1
    cdef int _fail(self, object outcome, object detail) except -1
