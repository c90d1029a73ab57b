from libc.stdint cimport uint32_t, uint64_t


cdef class Words:
    cdef bytes _text
    cdef const char *_chars
    cdef uint32_t *_starts
    cdef readonly Py_ssize_t count
    cdef readonly Py_ssize_t longest


cdef class Stream:
    cdef object _transport
    cdef Words _words
    cdef bytes _head, _tail, _reasoning_head
    cdef int _fd
    cdef bint _buffered
    cdef uint64_t _random
    cdef Py_ssize_t _reasoning_tokens, _limit
    cdef readonly Py_ssize_t tokens
    cdef readonly bint cut

    cdef Py_ssize_t _room(self) noexcept
    cdef char *_put_token(self, char *out) noexcept
    cdef int _send(self, const char *data, Py_ssize_t size) except -1
    cdef int _hand_over(self, const char *data, Py_ssize_t size) except -1
