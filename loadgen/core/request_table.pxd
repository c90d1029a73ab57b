# cython: language_level=3
"""The C side of what is planned of each prepared request."""
cimport cython
from libc.stdint cimport int32_t, int64_t

from loadgen.core.c.memory cimport Buffer
from loadgen.core.record cimport Record


cdef struct Row:
    int64_t end  # of the body, in the file of all
    int64_t input_tokens, output_tokens, server_tokens
    int32_t class_number, texts


@cython.final
cdef class RequestTable:
    cdef public object add_rows
    cdef readonly int64_t output_tokens
    cdef int _file
    cdef Buffer _rows  # each a Row
    cdef Py_ssize_t _count
    cpdef Py_ssize_t row(self, int64_t index) except -1
    cpdef Record record(self, int64_t index, int64_t due_ns)
    cpdef bytes body(self, int64_t index)
    cdef Row *_at(self, Py_ssize_t row) noexcept
