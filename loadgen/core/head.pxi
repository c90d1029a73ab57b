# Head: names, values and lists in the lines of a response's head, and sizes of chunks, for `wire`; included there.


cdef inline bint is_name(const char *p, Py_ssize_t n, const char *name, Py_ssize_t name_len) noexcept nogil:
    return n == name_len and strncasecmp(p, name, n) == 0


cdef inline bint is_space(char c) noexcept nogil:
    return c == b" " or c == b"\t"


cdef inline bint is_blank(char c) noexcept nogil:
    """A space in a head, also in the place of what must not be there (RFC 9110, section 5.5)."""
    return is_space(c) or c == b"\r" or c == b"\n" or c == 0


cdef inline const char *head_end(const char *p, const char *end) noexcept nogil:
    """The line end before an empty line, which ends a head; NULL where there is none yet.

    A lone LF ends a line as CR LF does (RFC 9112, section 2.2).
    """
    while True:
        p = <const char *>memchr(p, b"\n", end - p)
        if p == NULL or end - p < 2:
            return NULL
        if p[1] == b"\n" or (p[1] == b"\r" and end - p > 2 and p[2] == b"\n"):
            return p
        p += 1


cdef inline const char *line_end(const char *p, const char *end) noexcept nogil:
    """The LF of a line of the head whose last is `end`; one that starts with a space belongs to the line before it."""
    while True:
        p = <const char *>memchr(p, b"\n", end + 1 - p)
        if p == end or not is_space(p[1]):
            return p
        p += 1


cdef inline bint lists(const char *p, Py_ssize_t n, const char *word, Py_ssize_t word_len) noexcept nogil:
    """Whether one of the items between commas is `word`."""
    cdef const char *end = p + n
    cdef const char *comma
    cdef const char *last
    while p < end:
        comma = <const char *>memchr(p, b",", end - p)
        last = end if comma == NULL else comma
        while p < last and is_blank(p[0]):
            p += 1
        n = last - p
        while n > 0 and is_blank(p[n - 1]):
            n -= 1
        if is_name(p, n, word, word_len):
            return True
        p = last + 1
    return False


cdef inline bint mentions(const char *p, Py_ssize_t n, const char *word, Py_ssize_t word_len) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n - word_len + 1):
        if strncasecmp(p + i, word, word_len) == 0:
            return True
    return False


cdef inline int64_t decimal(const char *p, Py_ssize_t n) noexcept nogil:
    """The number that the n bytes begin with, a million at most; -1 where there is no digit."""
    cdef int64_t number = -1
    cdef Py_ssize_t i = 0
    while i < n and b"0" <= p[i] <= b"9":
        number = min(max(number, 0) * 10 + (p[i] - 48), 1000000)
        i += 1
    return number


cdef inline const char *chunk_size(const char *p, Py_ssize_t n, int64_t most, int64_t *size) noexcept nogil:
    """Read the line before a chunk, extensions left out: NULL, or what is wrong with it."""
    cdef Py_ssize_t i = 0
    cdef int digit
    size[0] = 0
    while i < n and p[i] != b";" and not is_space(p[i]):
        if b"0" <= p[i] <= b"9":
            digit = p[i] - 48
        elif b"a" <= (p[i] | 32) <= b"f":
            digit = (p[i] | 32) - 87
        else:
            return b"a chunk size is no hexadecimal number"
        size[0] = size[0] * 16 + digit
        if size[0] > most:
            return b"a chunk size is out of range"
        i += 1
    if i == 0:
        return b"a chunk without a size"
    while i < n and is_space(p[i]):
        i += 1
    if i < n and p[i] != b";":
        return b"a chunk size is no hexadecimal number"
    return NULL
