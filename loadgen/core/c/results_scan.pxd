# cython: language_level=3
"""One pass over the JSON of an answer of embeddings or scores, as json_scan passes over events; the
reference is `loadgen.core.pooled_answer`.
"""
from libc.stdint cimport int64_t
from libc.string cimport memchr

from loadgen.core.c.json_cursor cimport (
    AT_END, AT_VALUE, Cursor, Text, first_key, has_control_char, has_escape, is_new_key, next_key,
    skip_space, skip_value, take_char, take_null, take_string, text_is,
)
from loadgen.core.c.json_scan cimport USAGE_TOTALS, Delta, begin_event, scan_usage
from loadgen.core.event_flags cimport USAGE


cdef inline bint is_empty_result(Cursor *c, Text *key) noexcept nogil:
    """Whether the value at the cursor is an embedding or score without a number: null, an empty
    list, or a list of null.
    """
    if not (
        text_is(key, b"embedding", 9) or text_is(key, b"data", 4)
        or text_is(key, b"relevance_score", 15) or text_is(key, b"score", 5)
    ):
        return False
    if c.p < c.end and c.p[0] == b"[":
        return c.p + 1 >= c.end or memchr(b"]n \n\r\t", c.p[1], 6) != NULL
    return c.p < c.end and (c.p[0] == b"n" or c.p[0] == b'"' and c.p + 1 < c.end and c.p[1] == b'"')


cdef inline bint count_results(Cursor *c, int64_t *count) noexcept nogil:
    """Step over a list of results and count them; a real parser must read one that is empty."""
    cdef Text key
    cdef int step
    cdef bint has_value
    if not take_char(c, b"["):
        return False
    count[0] = 0
    if take_char(c, b"]"):
        return True
    while c.p < c.end:
        if c.p[0] == b"{":
            has_value = False
            step = first_key(c, &key)
            while step == AT_VALUE:
                if not text_is(&key, b"index", 5) and not text_is(&key, b"object", 6):
                    has_value = True
                step = next_key(c, &key, not is_empty_result(c, &key) and skip_value(c))
            if step != AT_END or not has_value:
                return False
        elif c.p[0] == b"n" or not skip_value(c):
            return False
        count[0] += 1
        skip_space(c)
        if take_char(c, b","):
            continue
        return take_char(c, b"]")
    return False


cdef inline bint scan_results(const char *p, Py_ssize_t n, Delta *out,
                              int64_t *results) noexcept nogil:
    """Scan an answer in one piece: the usage, and how many embeddings (`data`) or scores
    (`results`) it has.

    Returns:
        False if a real parser must read it: any error, no list of results, or a usage without
            `prompt_tokens`.
    """
    cdef Cursor c
    cdef Text key
    cdef Text text
    cdef bint ok
    cdef int step, seen_keys = 0
    if n == 0 or has_control_char(p, n):
        return False
    begin_event(&c, p, n, out)
    results[0] = -1
    step = first_key(&c, &key)
    while step == AT_VALUE:
        if text_is(&key, b"data", 4) or text_is(&key, b"results", 7):
            ok = is_new_key(&seen_keys, 1) and count_results(&c, results)
        elif text_is(&key, b"usage", 5):
            ok = is_new_key(&seen_keys, 2) and scan_usage(&c, out, USAGE_TOTALS)
        elif text_is(&key, b"error", 5):
            ok = is_new_key(&seen_keys, 4) and take_null(&c)
        elif text_is(&key, b"object", 6):
            ok = is_new_key(&seen_keys, 8) and take_string(&c, &text) and not has_escape(&c, &text)
            ok = ok and not text_is(&text, b"error", 5)
        else:
            ok = skip_value(&c)
        step = next_key(&c, &key, ok)
    if results[0] < 0 or (out.says & USAGE and out.prompt_tokens < 0):
        return False
    return step == AT_END and c.p == c.end
