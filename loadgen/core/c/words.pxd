"""Counts as the words of HdrHistogram's V2 encoding: signed numbers of one to nine bytes (ZigZag,
LEB128), of which one below zero stands for so many counts that are zero.
"""

from libc.stdint cimport int64_t, uint64_t

cdef enum:
    WORD_BYTES = 9  # the last one has eight bits of the number, those before it have seven


cdef inline unsigned char *put_word(unsigned char *out, int64_t value) noexcept nogil:
    """Write a word, and return where the next one goes; `out` has room for WORD_BYTES."""
    cdef uint64_t rest = (<uint64_t>value << 1) ^ <uint64_t>(value >> 63)
    cdef int byte = 1
    while byte < WORD_BYTES and rest >= 0x80:
        out[0] = <unsigned char>(rest | 0x80)
        out += 1
        byte += 1
        rest >>= 7
    out[0] = <unsigned char>rest
    return out + 1


cdef inline const unsigned char *get_word(
    const unsigned char *word, const unsigned char *end, int64_t *value
) noexcept nogil:
    """Read a word, and return where the next one is; NULL: `end` comes before its last byte."""
    cdef uint64_t zigzag = 0
    cdef int byte = 0
    while word < end:
        byte += 1
        if byte == WORD_BYTES or word[0] < 0x80:
            zigzag |= <uint64_t>word[0] << 7 * (byte - 1)
            value[0] = <int64_t>(zigzag >> 1) ^ -<int64_t>(zigzag & 1)
            return word + 1
        zigzag |= <uint64_t>(word[0] & 0x7F) << 7 * (byte - 1)
        word += 1
    return NULL


cdef inline Py_ssize_t put_counts(
    unsigned char *words, const int64_t *counts, int64_t end
) noexcept nogil:
    """Write the words of `end` counts, of which the last is not zero; return their size in bytes,
    which is at most WORD_BYTES for each count.
    """
    cdef unsigned char *out = words
    cdef int64_t index = 0, begin
    while index < end:
        begin = index
        while counts[index] == 0:
            index += 1
        if index > begin:
            out = put_word(out, begin - index)
        out = put_word(out, counts[index])
        index += 1
    return out - words


cdef inline bint get_counts(
    const unsigned char *word, const unsigned char *end, int64_t *counts, int64_t size
) noexcept nogil:
    """Read words into counts that are all zero; False: the last word is not whole, or the counts
    are more than `size`.
    """
    cdef int64_t index = 0, value
    while word < end:
        word = get_word(word, end, &value)
        if word == NULL or index == size or value < index - size:
            return False
        if value >= 0:
            counts[index] = value
        index += -value if value < 0 else 1
    return True
