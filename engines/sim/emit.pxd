# cython: language_level=3
"""The C side of streams of tokens."""
from libc.stdint cimport uint32_t, uint64_t

from loadgen.engines.sim.outlet cimport Outlet


cdef class Words:
    cdef bytes _text
    cdef const char *_chars
    cdef uint32_t *_starts
    cdef readonly Py_ssize_t count
    cdef readonly Py_ssize_t longest


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
