# cython: language_level=3
"""Signed integers in 1 to 9 bytes, as HdrHistogram's V2 encoding has them: ZigZag, then LEB128 of 64 bits."""

from libc.stdint cimport int64_t, uint64_t

cdef enum:
    VARINT_BYTES = 9  # of the longest: eight with 7 bits each, and a ninth with 8


cdef inline char *put_varint(char *out, int64_t value) noexcept nogil:
    """Write a number; returns where it ends, at most VARINT_BYTES further."""
    cdef uint64_t rest = (<uint64_t>value << 1) ^ <uint64_t>(value >> 63)
    cdef char *last = out + VARINT_BYTES - 1
    while rest >= 128 and out < last:
        out[0] = <char>(rest & 127 | 128)
        rest >>= 7
        out += 1
    out[0] = <char>rest
    return out + 1


cdef inline const char *get_varint(const char *p, const char *end, int64_t *value) noexcept nogil:
    """Read a number; returns where it ends, NULL when that would be behind `end`."""
    cdef uint64_t coded = 0
    cdef int shift = 0
    while p < end:
        if shift == 7 * (VARINT_BYTES - 1):
            coded |= <uint64_t><unsigned char>p[0] << shift
            break
        coded |= <uint64_t>(<unsigned char>p[0] & 127) << shift
        if <unsigned char>p[0] < 128:
            break
        shift += 7
        p += 1
    if p >= end:
        return NULL
    value[0] = <int64_t>(coded >> 1) ^ -<int64_t>(coded & 1)
    return p + 1
