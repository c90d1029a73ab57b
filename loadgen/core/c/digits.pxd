"""Decimal digits of integers, inlined where they are cimported: there is no extension module
behind it.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

cdef enum:
    PLACES = 20  # of the largest


cdef inline char *put_decimal(char *out, uint64_t value) noexcept nogil:
    """Write a number; returns where it ends, at most PLACES further."""
    cdef char[PLACES] digits
    cdef int i = PLACES
    while True:
        i -= 1
        digits[i] = 48 + value % 10
        value //= 10
        if value == 0:
            break
    memcpy(out, &digits[i], PLACES - i)
    return out + PLACES - i


cdef inline char *put_signed(char *out, int64_t value) noexcept nogil:
    """Write a number that may be negative; returns where it ends, at most PLACES + 1 further."""
    if value >= 0:
        return put_decimal(out, value)
    out[0] = b"-"
    return put_decimal(out + 1, -<uint64_t>value)
