# cython: language_level=3
"""Text that repeats all text before it: of servers that send the whole answer once more at its end,
or all text so far in each event.
"""
from libc.string cimport memcmp

cdef enum:
    TEXT_HEAD = 64  # bytes
    MANY_EVENTS = 4  # after these, text that is all text before is no chance


cdef struct TextSoFar:
    int kinds           # of the tokens of the text
    Py_ssize_t size     # bytes
    Py_ssize_t events
    char[TEXT_HEAD] head  # how it begins


cdef inline Py_ssize_t add_suspect(TextSoFar *before, int kinds, const char *text,
                                   Py_ssize_t n) noexcept:
    """Add n bytes of text; return how many of its first bytes are all text before, again.

    One word that is the same as the only word before is no repetition. A second text that is longer
    and begins with the first is: a server that sends deltas rarely sends one, and it costs the kept
    text a word. Of one that sends all text so far, the text would be many times too long.
    """
    cdef Py_ssize_t again = 0, i
    if kinds != before.kinds:
        before.kinds, before.size, before.events = kinds, 0, 0
    if 0 < before.size <= n and (n > before.size or before.events >= MANY_EVENTS):
        if memcmp(before.head, text, min(before.size, TEXT_HEAD)) == 0:
            again = before.size
    for i in range(before.size, min(before.size + n - again, TEXT_HEAD)):
        before.head[i] = text[i - before.size + again]
    before.size += n - again
    before.events += 1
    return again


cdef inline Py_ssize_t add_text(TextSoFar *before, int kinds, const char *text,
                                Py_ssize_t n) noexcept:
    """Add n bytes of text, which nearly always are too few to repeat the text before; return as
    `add_suspect`.
    """
    if n >= before.size or before.size < TEXT_HEAD or kinds != before.kinds:
        return add_suspect(before, kinds, text, n)
    before.size += n
    before.events += 1
    return 0
