from libc.stdint cimport int64_t, uint32_t, uint64_t
from loadgen.engines.sim.heap cimport Heap


cdef class Words:
    cdef bytes _text
    cdef const char *_chars
    cdef uint32_t *_starts
    cdef readonly Py_ssize_t count
    cdef readonly Py_ssize_t longest


cdef class Outlet:
    cdef object _transport
    cdef int _fd
    cdef bint _buffered
    cdef Py_ssize_t _limit
    cdef readonly bint cut
    cdef readonly Py_ssize_t held_back

    cdef int _send(self, const char *data, Py_ssize_t size) except -1
    cdef int _hand_over(self, const char *data, Py_ssize_t size) except -1


cdef class Stream(Outlet):
    cdef Words _words
    cdef bytes _head, _tail, _reasoning_head
    cdef uint64_t _random
    cdef Py_ssize_t _reasoning_tokens
    cdef readonly Py_ssize_t tokens

    cdef Py_ssize_t _room(self) noexcept
    cdef char *_put_token(self, char *out) noexcept
    cdef char *_put_rest(self, char *out) noexcept


cdef class Grouped(Stream):
    cdef bytes _between, _end
    cdef Py_ssize_t _group, _prompt_tokens, _pending


cdef class Planned(Outlet):
    cdef bytes _event, _after
    cdef Py_ssize_t _plan_at, _write_at
    cdef const int64_t[::1] _plan
    cdef int64_t[::1] _writes
    cdef readonly Py_ssize_t written

    cdef int64_t _write_next(self) except -1


cdef class Ticker:
    cdef Heap _heap
    cdef object _on_end
