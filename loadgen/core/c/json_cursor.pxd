# cython: language_level=3
"""A cursor over JSON text: steps over strings, numbers and whole values, without allocating.

Each step returns whether it found what it looks for. It accepts only JSON, but not all JSON: a real
parser must read values nested deeper than MAX_DEPTH, long numbers, and text with control
characters.
"""
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy

cdef enum:
    MAX_DEPTH = 64
    MAX_NUMBER = 32  # characters; some longer ones do not fit a double

cdef enum ObjectStep:
    NOT_PLAIN    # a real parser must read this object
    AT_VALUE     # the cursor is behind a key: its value is next
    AT_END       # the cursor is behind the object

cdef struct Cursor:
    const char *p
    const char *end
    bint has_escapes        # whether there is a backslash anywhere

cdef struct Text:
    const char *p
    Py_ssize_t n


cdef inline void skip_space(Cursor *c) noexcept nogil:
    """Step over space; most text has none, and one comparison shows that."""
    while c.p < c.end and c.p[0] <= b" " and (
        c.p[0] == b" " or c.p[0] == b"\n" or c.p[0] == b"\t" or c.p[0] == b"\r"
    ):
        c.p += 1


cdef inline bint take_char(Cursor *c, char wanted) noexcept nogil:
    """Step over `wanted` and the space around it; if it is not there, skip only space and return
    False.
    """
    skip_space(c)
    if c.p < c.end and c.p[0] == wanted:
        c.p += 1
        skip_space(c)
        return True
    return False


cdef inline bint has_control_char(const char *p, Py_ssize_t n) noexcept nogil:
    """Whether any of n bytes is below 0x20, eight at a time; a line end between tokens counts
    too.
    """
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


cdef inline bint has_valid_escapes(const char *p, const char *end) noexcept nogil:
    """Whether every escape sequence is one of JSON's."""
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
    """Step over a string; `text` becomes what is between its quotes, escapes unchanged."""
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
        if not c.has_escapes:
            break
        b = q
        while b > text.p and (b - 1)[0] == b"\\":
            b -= 1
        if (q - b) % 2 == 0:  # not escaped itself
            break
        q += 1
    text.n = q - text.p
    c.p = q + 1
    return not c.has_escapes or has_valid_escapes(text.p, q)


cdef inline bint has_escape(Cursor *c, Text *text) noexcept nogil:
    return c.has_escapes and memchr(text.p, b"\\", text.n) != NULL


cdef inline bint take_key(Cursor *c, Text *key) noexcept nogil:
    """Step over `"key":`; False if it is not there or has an escape in it."""
    skip_space(c)
    return take_string(c, key) and not has_escape(c, key) and take_char(c, b":")


cdef inline int first_key(Cursor *c, Text *key) noexcept nogil:
    """Step into an object and over its first key; AT_END if it is empty."""
    if not take_char(c, b"{"):
        return NOT_PLAIN
    if take_char(c, b"}"):
        return AT_END
    return AT_VALUE if take_key(c, key) else NOT_PLAIN


cdef inline int next_key(Cursor *c, Text *key, bint ok) noexcept nogil:
    """Step over the next key of an object, from behind a value; `ok`: whether that value could
    be stepped over.
    """
    if not ok:
        return NOT_PLAIN
    if take_char(c, b","):
        return AT_VALUE if take_key(c, key) else NOT_PLAIN
    return AT_END if take_char(c, b"}") else NOT_PLAIN


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
    return c.p - start <= MAX_NUMBER


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
    """Step over one value of any type, nested up to MAX_DEPTH levels deep."""
    cdef Text ignored
    if c.p >= c.end or depth > MAX_DEPTH:
        return False
    if c.p[0] == b'"':
        return take_string(c, &ignored)
    if take_char(c, b"{"):
        if take_char(c, b"}"):
            return True
        while take_string(c, &ignored) and take_char(c, b":") and skip_value(c, depth + 1):
            if not take_char(c, b","):
                return take_char(c, b"}")
        return False
    if take_char(c, b"["):
        if take_char(c, b"]"):
            return True
        while skip_value(c, depth + 1):
            if not take_char(c, b","):
                return take_char(c, b"]")
        return False
    return take_null(c) or take_word(c, b"true", 4) or take_word(c, b"false", 5) or take_number(c)


cdef inline bint is_new_key(int *seen_keys, int key) noexcept nogil:
    """Whether an object has this key for the first time.

    Of two equal keys the last one counts: the parser's task.
    """
    cdef bint is_new = not seen_keys[0] & key
    seen_keys[0] |= key
    return is_new


cdef inline bint text_is(Text *key, const char *name, Py_ssize_t n) noexcept nogil:
    return key.n == n and memcmp(key.p, name, n) == 0
