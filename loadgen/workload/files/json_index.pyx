"""Structure: where the objects of a JSON list lie, found without parsing them.

Only what stands outside strings is looked at byte by byte, for its brackets: 1 deep is inside the
list, 2 inside one of its objects, 3 inside an object's own list or object. A string is left in one
step, by looking for the quote that ends it; most bytes of a file of conversations are inside
strings.
"""

import numpy as np

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memchr, memcmp

UNKNOWN = -1  # how many there are takes parsing to tell

cdef enum:
    BLOCK = 1024  # objects looked for in one go


cdef const uint8_t *past_string(const uint8_t *content, const uint8_t *end) noexcept nogil:
    """Where a string goes on that begins at `content`: one past its quote, of which escaped ones do
    not count.

    NULL: it does not end before `end`.
    """
    cdef const uint8_t *quote
    cdef const uint8_t *first
    while True:
        quote = <const uint8_t *>memchr(content, b'"', end - content)
        if quote is NULL:
            return NULL
        first = quote
        while first > content and (first - 1)[0] == b"\\":
            first -= 1
        content = quote + 1
        if (quote - first) % 2 == 0:
            return content


cdef class Structure:
    """A walk through data that begins with a JSON list, after any white space, a block of its
    objects at a time.

    Args:
        data: The bytes; they are not copied.
        key: The key of a list, in every object, whose own objects are counted.

    Yields:
        An int64 array (objects, 3): where each object begins, one past its closing bracket, and how
            many objects its
        list at `key` holds; UNKNOWN where any other list or object lies in it.

    Attributes:
        end: One past the bracket that closes the list; None for as long as it has not been met, and
            so in the end for data that is cut off.
    """

    cdef Py_buffer data
    cdef bytes key
    cdef int64_t at, depth, start, children, listed, closed, unknown
    cdef const uint8_t *name  # content of the last string that stood right inside an object
    cdef int64_t name_size
    cdef bint named  # whether the last list or object in it is the list at the key

    def __cinit__(self, data, bytes key):
        PyObject_GetBuffer(data, &self.data, PyBUF_SIMPLE)
        self.key = key
        self.at = self.depth = self.closed = 0
        self.start, self.unknown = -1, UNKNOWN

    def __dealloc__(self):
        PyBuffer_Release(&self.data)

    @property
    def end(self):
        return self.closed or None

    def __iter__(self):
        return self

    def __next__(self):
        cdef int64_t[BLOCK][3] rows
        cdef const uint8_t *key = self.key
        cdef int64_t key_size = len(self.key), filled
        with nogil:
            filled = self.fill(rows, key, key_size)
        if not filled:
            raise StopIteration
        return np.frombuffer((<char *>rows)[: filled * <int64_t>sizeof(rows[0])],
                             dtype=np.int64).reshape(-1, 3)

    cdef int64_t fill(self, int64_t[3] *rows, const uint8_t *key, int64_t key_size) noexcept nogil:
        """Go on until all rows are filled, the list is closed or the data ends; returns how many
        are filled.
        """
        cdef const uint8_t *begin = <const uint8_t *>self.data.buf
        cdef const uint8_t *end = begin + self.data.len
        cdef const uint8_t *at = begin + self.at
        cdef const uint8_t *past
        cdef uint8_t byte
        cdef int64_t filled = 0
        while at < end and filled < BLOCK and not self.closed:
            byte = at[0]
            at += 1
            if byte == b'"':
                past = past_string(at, end)
                if past is NULL:
                    at = end
                    break
                if self.depth == 2:
                    self.name, self.name_size = at, past - 1 - at
                at = past
            elif byte == b"{" or byte == b"[":
                self.depth += 1
                if self.depth == 2:
                    self.start = at - 1 - begin if byte == b"{" else -1
                    self.children, self.listed, self.name, self.name_size = 0, 0, NULL, 0
                elif self.depth == 3:
                    self.children += 1
                    self.named = (
                        byte == b"[" and self.name_size == key_size
                        and memcmp(self.name, key, key_size) == 0
                    )
                elif self.depth == 4 and byte == b"{":
                    self.listed += 1
            elif byte == b"}" or byte == b"]":
                self.depth -= 1
                if self.depth == 1 and self.start >= 0:
                    rows[filled][0], rows[filled][1] = self.start, at - begin
                    if not self.children or (self.children == 1 and self.named):
                        rows[filled][2] = self.listed
                    else:
                        rows[filled][2] = self.unknown
                    filled += 1
                    self.start = -1
                elif self.depth == 0:
                    self.closed = at - begin
        self.at = at - begin
        return filled
