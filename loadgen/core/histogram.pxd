"""The C side of Histogram.

Budget of `add`: one count-leading-zeros and seven additions; no GIL, no allocation.
"""

cimport cython
from libc.stdint cimport int64_t

cdef extern from *:
    """
    typedef unsigned __int128 loadgen_uint128;
    """
    ctypedef unsigned long long uint128 "loadgen_uint128"
    int clz "__builtin_clzll" (unsigned long long) noexcept nogil


# Three significant digits need 2,000 unit-wide steps, so 2,048 = 2**11 sub-buckets, of which every
# bucket after the first uses the upper 1,024 = 2**10 (its lower half is the bucket before it): the
# layout of HdrHistogram.
cdef enum:
    HALF_BITS = 10
    SUB_BUCKET_MASK = 2047
    COARSE = 64  # buckets in a coarse group: a sixteenth of the 1,024 of a doubling


cdef inline int64_t index_of(int64_t value) noexcept nogil:
    """Return the index of the bucket that counts `value` >= 0."""
    cdef int shift = 64 - (HALF_BITS + 1) - clz(value | SUB_BUCKET_MASK)
    return (<int64_t>shift << HALF_BITS) + (value >> shift)


@cython.final
cdef class Histogram:
    cdef int64_t *counts
    cdef int64_t size  # number of counters
    cdef int64_t smallest, largest  # INT64_MAX and -1 when empty
    cdef readonly int64_t highest, count, rejects
    cdef readonly uint128 total, total_of_squares

    cdef inline bint add(self, int64_t value, int64_t count) noexcept nogil:
        """Count `value` `count` >= 1 times; False when it is out of range and counted as a
        reject.
        """
        if value < 0 or value > self.highest:
            self.rejects += count
            return False
        self.counts[index_of(value)] += count
        self.count += count
        self.total += <uint128>value * count
        self.total_of_squares += <uint128>value * value * count
        if value < self.smallest:
            self.smallest = value
        if value > self.largest:
            self.largest = value
        return True

    cdef double middle(self, int64_t index) noexcept nogil
    cdef double value_at(self, int64_t rank) noexcept nogil
    cdef bint agrees(self)
