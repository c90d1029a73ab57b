# cython: language_level=3
"""The head of an HTTP/1 response and the line before a chunk: bytes in, a struct out, without
Python objects.

Rules are those of RFC 9112 (framing) and RFC 9110 (fields). Functions that can fail return NULL or
what is wrong, as the detail of a record.
"""
from libc.stdint cimport int64_t
from libc.string cimport memchr, memcmp

cdef extern from "strings.h" nogil:
    int strncasecmp(const char *, const char *, size_t)

cdef enum:
    MAX_LENGTH_BITS = 40  # of a body's length or a chunk's size


cdef struct ResponseHead:
    int status
    bint is_http10
    bint keep_alive           # the connection may carry another request
    int64_t keep_alive_ns     # for so long, where the server says it; else 0
    int64_t content_length    # -1: none
    bint is_chunked
    bint is_encoded           # by a transfer or content encoding other than chunked
    bint is_json              # by its content type
    bint has_transfer_encoding
    bint closes               # the server closes the connection after this response
    bint may_say_times        # of the server, by the name of a field (server_times)


cdef inline void clear_head(ResponseHead *head) noexcept nogil:
    """Set what holds where a head has no fields."""
    head.status = 0
    head.is_http10 = False
    head.keep_alive = True
    head.keep_alive_ns = 0
    head.content_length = -1
    head.is_chunked = False
    head.is_encoded = False
    head.is_json = False
    head.has_transfer_encoding = False
    head.closes = False
    head.may_say_times = False


cdef inline bint is_space(char c) noexcept nogil:
    return c == b" " or c == b"\t"


cdef inline bint is_blank(char c) noexcept nogil:
    """Whether it counts as a space in a head, also if it must not be there (RFC 9110, section
    5.5).
    """
    return is_space(c) or c == b"\r" or c == b"\n" or c == 0


cdef inline bint is_digit(char c) noexcept nogil:
    return b"0" <= c <= b"9"


cdef inline bint equals_nocase(const char *p, Py_ssize_t n, const char *word,
                               Py_ssize_t word_len) noexcept nogil:
    return n == word_len and strncasecmp(p, word, n) == 0


cdef inline bint contains_nocase(const char *p, Py_ssize_t n, const char *word,
                                 Py_ssize_t word_len) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n - word_len + 1):
        if p[i] | 32 == word[0] and strncasecmp(p + i, word, word_len) == 0:
            return True
    return False


cdef inline bint has_list_item(const char *p, Py_ssize_t n, const char *word,
                               Py_ssize_t word_len) noexcept nogil:
    """Whether one of the items of a comma-separated list is `word`."""
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
        if equals_nocase(p, n, word, word_len):
            return True
        p = last + 1
    return False


cdef inline const char *find_head_end(const char *p, const char *end) noexcept nogil:
    """Find the line end before the empty line that ends a head; NULL if it has not come yet.

    A lone LF ends a line as CR LF does (RFC 9112, section 2.2).
    """
    while True:
        p = <const char *>memchr(p, b"\n", end - p)
        if p == NULL or end - p < 2:
            return NULL
        if p[1] == b"\n" or (p[1] == b"\r" and end - p > 2 and p[2] == b"\n"):
            return p
        p += 1


cdef inline const char *find_field_end(const char *p, const char *end) noexcept nogil:
    """Find the LF of the line at `p` in a head that ends at `end`.

    A line that starts with a space continues it.
    """
    while True:
        p = <const char *>memchr(p, b"\n", end + 1 - p)
        if p == end or not is_space(p[1]):
            return p
        p += 1


cdef inline int64_t parse_capped_decimal(const char *p, Py_ssize_t n) noexcept nogil:
    """Read the number that n bytes begin with, a million at most; -1 if there is no digit."""
    cdef int64_t number = -1
    cdef Py_ssize_t i = 0
    while i < n and is_digit(p[i]):
        number = min(max(number, 0) * 10 + (p[i] - 48), 1000000)
        i += 1
    return number


cdef inline const char *parse_content_length(const char *p, Py_ssize_t n,
                                             ResponseHead *head) noexcept nogil:
    cdef int64_t number = 0, max_length = <int64_t>1 << MAX_LENGTH_BITS
    cdef bint is_second
    cdef Py_ssize_t i
    for i in range(n):
        if not is_digit(p[i]) or number > max_length:
            return b"Content-Length is no number"
        number = number * 10 + (p[i] - 48)
    is_second = head.content_length >= 0 and head.content_length != number
    if n == 0 or number > max_length or is_second:
        return b"Content-Length is no number, or there are two"
    head.content_length = number
    return NULL


cdef inline void parse_keep_alive(const char *p, Py_ssize_t n, ResponseHead *head) noexcept nogil:
    """Read the idle limit and the number of further requests from the value of Keep-Alive."""
    cdef bint at_item = True
    cdef int64_t number
    cdef Py_ssize_t i
    for i in range(n):
        if at_item and i + 8 < n and strncasecmp(p + i, b"timeout=", 8) == 0:
            number = parse_capped_decimal(p + i + 8, n - i - 8)
            head.keep_alive_ns = max(number, 0) * 1000000000
            head.closes = head.closes or number == 0
        elif at_item and i + 4 < n and strncasecmp(p + i, b"max=", 4) == 0:
            head.closes = head.closes or parse_capped_decimal(p + i + 4, n - i - 4) == 0
        at_item = p[i] == b"," or (at_item and is_blank(p[i]))


cdef inline const char *parse_field(
    const char *name, Py_ssize_t name_len, const char *p, Py_ssize_t n, ResponseHead *head
) noexcept nogil:
    """Read one field, if it bears on framing; `p` and `n` are its value."""
    if equals_nocase(name, name_len, b"content-length", 14):
        return parse_content_length(p, n, head)
    if equals_nocase(name, name_len, b"transfer-encoding", 17):
        head.has_transfer_encoding = True
        if equals_nocase(p, n, b"chunked", 7):
            head.is_chunked = True
        elif not equals_nocase(p, n, b"identity", 8):
            head.is_encoded = True
    elif equals_nocase(name, name_len, b"content-encoding", 16):
        head.is_encoded = head.is_encoded or not equals_nocase(p, n, b"identity", 8)
    elif equals_nocase(name, name_len, b"content-type", 12):
        head.is_json = contains_nocase(p, n, b"json", 4)
    elif equals_nocase(name, name_len, b"connection", 10):
        if has_list_item(p, n, b"close", 5):
            head.closes = True
        elif has_list_item(p, n, b"keep-alive", 10):
            head.keep_alive = True
    elif equals_nocase(name, name_len, b"keep-alive", 10):
        parse_keep_alive(p, n, head)
    elif name_len >= 12 and (
        equals_nocase(name + name_len - 4, 4, b"time", 4)
        or equals_nocase(name + name_len - 3, 3, b"-ms", 3)
        or equals_nocase(name, name_len, b"server-timing", 13)
    ):
        head.may_say_times = True
    return NULL


cdef inline const char *parse_head(const char *p, const char *end,
                                   ResponseHead *head) noexcept nogil:
    """Read a head whose last line ends with the LF at `end`."""
    cdef const char *eol = find_field_end(p, end)
    cdef const char *colon
    cdef const char *value
    cdef const char *value_end
    cdef const char *wrong
    clear_head(head)
    if eol - p < 12 or memcmp(p, b"HTTP/1.", 7) != 0 or not is_digit(p[7]) or not is_blank(p[8]):
        return b"not an HTTP/1 response"
    if not (
        b"1" <= p[9] <= b"9" and is_digit(p[10]) and is_digit(p[11])
        and (p + 12 == eol or is_blank(p[12]))
    ):
        return b"not an HTTP status"
    head.status = (p[9] - 48) * 100 + (p[10] - 48) * 10 + (p[11] - 48)
    head.is_http10 = p[7] == b"0"
    head.keep_alive = not head.is_http10
    while eol < end:
        p = eol + 1
        eol = find_field_end(p, end)
        colon = <const char *>memchr(p, b":", eol - p)
        if colon == NULL:
            return b"a header line without a colon"
        value = colon + 1
        value_end = eol
        while value < value_end and is_blank(value[0]):
            value += 1
        while value < value_end and is_blank((value_end - 1)[0]):
            value_end -= 1
        wrong = parse_field(p, colon - p, value, value_end - value, head)
        if wrong != NULL:
            return wrong
    # HTTP/1.0 has no transfer encodings: such framing is not to be trusted further (RFC 9112,
    # section 6.1).
    if head.closes or (head.has_transfer_encoding and head.is_http10):
        head.keep_alive = False
    return NULL


cdef inline const char *parse_chunk_size(const char *p, Py_ssize_t n, int64_t *size) noexcept nogil:
    """Read the size in the line before a chunk, and ignore extensions."""
    cdef Py_ssize_t i = 0
    cdef int digit
    size[0] = 0
    while i < n and p[i] != b";" and not is_space(p[i]):
        if is_digit(p[i]):
            digit = p[i] - 48
        elif b"a" <= (p[i] | 32) <= b"f":
            digit = (p[i] | 32) - 87
        else:
            return b"a chunk size is no hexadecimal number"
        size[0] = size[0] * 16 + digit
        if size[0] > <int64_t>1 << MAX_LENGTH_BITS:
            return b"a chunk size is out of range"
        i += 1
    if i == 0:
        return b"a chunk without a size"
    while i < n and is_space(p[i]):
        i += 1
    if i < n and p[i] != b";":
        return b"a chunk size is no hexadecimal number"
    return NULL


cdef inline bint is_success(int status) noexcept:
    """Whether a status is that of an answer: any 2xx but No Content."""
    return 200 <= status < 300 and status != 204
