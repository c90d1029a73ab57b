# cython: language_level=3
"""The C side of the reader of server-sent events."""
cimport cython
from libc.stdint cimport int64_t

from loadgen.core.c.json_scan cimport Head
from loadgen.core.c.memory cimport Buffer
from loadgen.core.dialect_scan cimport DialectScanner
from loadgen.core.record cimport Record


@cython.final
cdef class SseReader:
    cdef DialectScanner scanner  # of an API with a dialect of its own; else None
    cdef readonly Record record
    cdef readonly bint failed
    cdef readonly object outcome, detail  # of a stream that has failed
    cdef int64_t at_ns
    # bytes since the last token-bearing event ended, without the end of its chunk
    cdef Py_ssize_t tail
    cdef bint skips_lf  # the last line ended with CR: an LF that follows belongs to it
    cdef bint has_data, at_first_line, at_end
    cdef bint is_no_chat  # events are not those of chat: they are of a dialect, or [DONE] has come
    cdef bint names_error  # the event that comes next is named an error; then is_no_chat is set
    cdef Buffer partial_line, event
    cdef Head head  # of the last event of chat that had another one
    cdef Buffer unread  # the first bytes of what no rule has taken
    cdef int begin(self, Record record) except -1
    cdef int feed(self, const char *p, Py_ssize_t n, int64_t at_ns) except -1
    cdef int finish(self, int64_t at_ns) except -1
    cdef bint _is_event(self, const char *p, const char *eol, Py_ssize_t n) noexcept
    cdef int _read_line(self, const char *p, Py_ssize_t n) except -1
    cdef int _read_other_line(self, const char *p, Py_ssize_t n) except -1
    cdef void _set_name(self, bint is_error) noexcept
    cdef int _leave_unread(self, str what, const char *p, Py_ssize_t n) except -1
    cdef int _keep_empty(self, int says, const char *p, Py_ssize_t n) except -1
    cdef int forget_rest(self) except -1
    cdef str quote(self)
    cdef int _read_event(self, const char *p, Py_ssize_t n) except -1
    cdef int _read_aside(self, const char *p, Py_ssize_t n) except -1
    cdef int _read_done(self) except -1
    cdef int read_whole(self, bytes payload, int64_t at_ns) except -1
    cdef int read_results(self, const char *p, Py_ssize_t n, int64_t at_ns) except -1
    cdef int _parse_event(self, bytes payload) except -1
    cdef int _add(self, object delta) except -1
    cdef int _fail(self, object outcome, object detail) except -1
