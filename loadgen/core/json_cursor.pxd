# cython: language_level=3
"""Steps over plain JSON, part by part, without allocating: what `loadgen.scan` walks with.

Each step says whether it found what it is for. It takes nothing but JSON, though not all of it: values nested deep,
and long numbers are for a real parser, as is a text with control characters.
"""
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy

cdef enum:
    DEEPEST = 64
    LONGEST_NUMBER = 32  # some beyond it are no double

cdef enum:
    WRONG  # what stands there is left to a real parser
    KEY    # a key has been stepped over: its value is next
    OVER   # the object has ended

cdef struct Cursor:
    const char *p
    const char *end
    bint escapes            # whether there is a backslash anywhere

cdef struct Text:
    const char *p
    Py_ssize_t n


cdef inline void skip_space(Cursor *c) noexcept nogil:
    while c.p < c.end and (c.p[0] == b" " or c.p[0] == b"\n" or c.p[0] == b"\t" or c.p[0] == b"\r"):
        c.p += 1


cdef inline bint take(Cursor *c, char wanted) noexcept nogil:
    """Step over `wanted` and the space around it; False, and nothing but space skipped, if it is not there."""
    skip_space(c)
    if c.p < c.end and c.p[0] == wanted:
        c.p += 1
        skip_space(c)
        return True
    return False


cdef inline bint has_control(const char *p, Py_ssize_t n) noexcept nogil:
    """Whether there is a byte below 0x20 (or, to be left to the parser like those, a line end between tokens)."""
    cdef uint64_t eight
    cdef uint64_t found = 0
    while n >= 8:
        memcpy(&eight, p, 8)
        found |= (eight - <uint64_t>0x2020202020202020) & ~eight & <uint64_t>0x8080808080808080
        p += 8
        n -= 8
    while n > 0:
        found |= 0 <= p[0] < 0x20
        p += 1
        n -= 1
    return found != 0


cdef inline bint is_hex(char c) noexcept nogil:
    return b"0" <= c <= b"9" or b"a" <= (c | 32) <= b"f"


cdef inline bint plain_escapes(const char *p, const char *end) noexcept nogil:
    """Whether all escapes are JSON's."""
    while True:
        p = <const char *>memchr(p, b"\\", end - p)
        if p == NULL:
            return True
        p += 1  # there is a character: the closing quote is not escaped
        if p[0] == b"u":
            if end - p < 5 or not (is_hex(p[1]) and is_hex(p[2]) and is_hex(p[3]) and is_hex(p[4])):
                return False
            p += 4
        elif memchr(b'"\\/bfnrt', p[0], 8) == NULL:
            return False
        p += 1


cdef inline bint take_string(Cursor *c, Text *text) noexcept nogil:
    """Step over a string; `text` is what stands between its quotes, escapes as they are."""
    cdef const char *q
    cdef const char *b
    if c.p >= c.end or c.p[0] != b'"':
        return False
    text.p = c.p + 1
    q = text.p
    while True:
        q = <const char *>memchr(q, b'"', c.end - q)
        if q == NULL:
            return False
        if not c.escapes:
            break
        b = q
        while b > text.p and (b - 1)[0] == b"\\":
            b -= 1
        if (q - b) % 2 == 0:  # not escaped itself
            break
        q += 1
    text.n = q - text.p
    c.p = q + 1
    return not c.escapes or plain_escapes(text.p, q)


cdef inline bint has_escape(Cursor *c, Text *text) noexcept nogil:
    return c.escapes and memchr(text.p, b"\\", text.n) != NULL


cdef inline bint take_key(Cursor *c, Text *key) noexcept nogil:
    """Step over `"key":`; False if it is not there or has an escape in it."""
    skip_space(c)
    return take_string(c, key) and not has_escape(c, key) and take(c, b":")


cdef inline int first_key(Cursor *c, Text *key) noexcept nogil:
    """Step into an object: KEY, or OVER where it is empty."""
    if not take(c, b"{"):
        return WRONG
    if take(c, b"}"):
        return OVER
    return KEY if take_key(c, key) else WRONG


cdef inline int next_key(Cursor *c, Text *key, bint ok) noexcept nogil:
    """Step on behind a value of an object, if that has been stepped over (`ok`): KEY or OVER."""
    if not ok:
        return WRONG
    if take(c, b","):
        return KEY if take_key(c, key) else WRONG
    return OVER if take(c, b"}") else WRONG


cdef inline bint take_word(Cursor *c, const char *word, Py_ssize_t n) noexcept nogil:
    if c.end - c.p >= n and memcmp(c.p, word, n) == 0:
        c.p += n
        return True
    return False


cdef inline bint take_null(Cursor *c) noexcept nogil:
    return take_word(c, b"null", 4)


cdef inline bint take_digits(Cursor *c) noexcept nogil:
    cdef const char *start = c.p
    while c.p < c.end and b"0" <= c.p[0] <= b"9":
        c.p += 1
    return c.p > start


cdef inline bint take_number(Cursor *c) noexcept nogil:
    cdef const char *start = c.p
    cdef const char *exponent
    if c.p < c.end and c.p[0] == b"-":
        c.p += 1
    if c.p < c.end and c.p[0] == b"0":
        c.p += 1
    elif not take_digits(c):
        return False
    if c.p < c.end and c.p[0] == b".":
        c.p += 1
        if not take_digits(c):
            return False
    if c.p < c.end and (c.p[0] | 32) == b"e":
        c.p += 1
        if c.p < c.end and (c.p[0] == b"-" or c.p[0] == b"+"):
            c.p += 1
        exponent = c.p
        if not take_digits(c) or c.p - exponent > 2:
            return False
    return c.p - start <= LONGEST_NUMBER


cdef inline bint take_integer(Cursor *c, int64_t *value) noexcept nogil:
    cdef const char *start = c.p
    value[0] = 0
    while c.p < c.end and b"0" <= c.p[0] <= b"9" and c.p - start < 9:
        value[0] = value[0] * 10 + (c.p[0] - 48)
        c.p += 1
    if c.p - start > 1 and start[0] == b"0":
        return False
    # A longer number, a fraction or an exponent is left to the real parser, which refuses them.
    return c.p > start and c.p < c.end and (c.p[0] == b"," or c.p[0] == b"}" or c.p[0] == b" ")


cdef inline bint skip_value(Cursor *c, int depth=0) noexcept nogil:
    """Step over any one value, up to DEEPEST levels deep."""
    cdef Text ignored
    if c.p >= c.end or depth > DEEPEST:
        return False
    if c.p[0] == b'"':
        return take_string(c, &ignored)
    if take(c, b"{"):
        if take(c, b"}"):
            return True
        while take_string(c, &ignored) and take(c, b":") and skip_value(c, depth + 1):
            if not take(c, b","):
                return take(c, b"}")
        return False
    if take(c, b"["):
        if take(c, b"]"):
            return True
        while skip_value(c, depth + 1):
            if not take(c, b","):
                return take(c, b"]")
        return False
    return take_null(c) or take_word(c, b"true", 4) or take_word(c, b"false", 5) or take_number(c)


cdef inline bint first(int *seen, int key) noexcept nogil:
    """Whether this is the first time that an object has this key: of two the last counts, which the parser knows."""
    cdef bint is_new = not seen[0] & key
    seen[0] |= key
    return is_new


cdef inline bint same(Text *key, const char *name, Py_ssize_t n) noexcept nogil:
    return key.n == n and memcmp(key.p, name, n) == 0
