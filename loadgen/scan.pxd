# cython: language_level=3
"""One pass over the JSON of a streamed event: which tokens, finish reason and usage it carries.

A scanner, not a parser: it allocates nothing and looks only at the keys that matter. Whatever it does
not know for certain (escaped keys, tool calls, errors, answers that are not streamed) it leaves to
`loadgen.deltas`, which defines the same facts with a real JSON parser.
"""
from libc.stdint cimport int64_t
from libc.string cimport memchr, memcmp

cdef enum Kind:
    CONTENT = 1
    REASONING = 2
    OTHER = 4

cdef struct Delta:
    int kinds               # which kinds of token the event bears, a set of Kind; 0: none
    int64_t tokens          # how many, by its token ids or logprobs; -1: not told
    const char *text        # what the tokens say, escaped as it came; NULL: nothing
    Py_ssize_t text_len
    const char *finish      # the finish reason, or NULL
    Py_ssize_t finish_len
    int64_t prompt_tokens   # -1: not told
    int64_t completion_tokens
    int64_t cached_tokens

cdef struct Cursor:
    const char *p
    const char *end

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
        b = q
        while b > text.p and b[-1] == b"\\":
            b -= 1
        if (q - b) % 2 == 0:  # not escaped itself
            break
        q += 1
    text.n = q - text.p
    c.p = q + 1
    return True


cdef inline bint take_key(Cursor *c, Text *key) noexcept nogil:
    """Step over `"key":`; False if it is not there or has an escape in it."""
    skip_space(c)
    return take_string(c, key) and memchr(key.p, b"\\", key.n) == NULL and take(c, b":")


cdef inline bint take_null(Cursor *c) noexcept nogil:
    if c.end - c.p >= 4 and memcmp(c.p, b"null", 4) == 0:
        c.p += 4
        return True
    return False


cdef inline bint take_integer(Cursor *c, int64_t *value) noexcept nogil:
    cdef const char *start = c.p
    value[0] = 0
    while c.p < c.end and b"0" <= c.p[0] <= b"9" and c.p - start < 9:
        value[0] = value[0] * 10 + (c.p[0] - 48)
        c.p += 1
    # A longer number, a fraction or an exponent is left to the real parser, which refuses them.
    return c.p > start and c.p < c.end and (c.p[0] == b"," or c.p[0] == b"}" or c.p[0] == b" ")


cdef inline bint skip_value(Cursor *c) noexcept nogil:
    """Step over any one value, however deep."""
    cdef int depth = 0
    cdef Text ignored
    while c.p < c.end:
        if c.p[0] == b'"':
            if not take_string(c, &ignored):
                return False
        elif c.p[0] == b"{" or c.p[0] == b"[":
            depth += 1
            c.p += 1
            continue
        elif c.p[0] == b"}" or c.p[0] == b"]":
            if depth == 0:
                return False
            depth -= 1
            c.p += 1
        elif depth > 0:
            c.p += 1
            continue
        else:  # a number, true, false or null: up to what ends it
            while c.p < c.end and c.p[0] != b"," and c.p[0] != b"}" and c.p[0] != b"]":
                c.p += 1
        if depth == 0:
            return True
    return False


cdef inline bint same(Text *key, const char *name, Py_ssize_t n) noexcept nogil:
    return key.n == n and memcmp(key.p, name, n) == 0


cdef inline bint scan_text(Cursor *c, Delta *out, int kind) noexcept nogil:
    """A string or null that bears a token of `kind` if it is not empty."""
    cdef Text text
    if take_null(c):
        return True
    if not take_string(c, &text):
        return False
    if text.n > 0:
        if out.text != NULL:  # two texts in one event: somebody else joins them
            return False
        out.kinds |= kind
        out.text = text.p
        out.text_len = text.n
    return True


cdef inline bint scan_delta(Cursor *c, Delta *out) noexcept nogil:
    cdef Text key
    cdef bint ok
    if not take(c, b"{"):
        return False
    if take(c, b"}"):
        return True
    while True:
        if not take_key(c, &key):
            return False
        if same(&key, b"content", 7):
            ok = scan_text(c, out, CONTENT)
        elif same(&key, b"reasoning", 9) or same(&key, b"reasoning_content", 17):
            ok = scan_text(c, out, REASONING)
        elif same(&key, b"refusal", 7):
            ok = scan_text(c, out, OTHER)
        elif same(&key, b"tool_calls", 10):
            ok = take_null(c)
        else:
            ok = skip_value(c)
        if not ok:
            return False
        if take(c, b","):
            continue
        return take(c, b"}")


cdef inline bint count_items(Cursor *c, int64_t *count) noexcept nogil:
    """Step over any value; `count` is how many items it has, unchanged where it is no array."""
    if c.p < c.end and c.p[0] != b"[":
        return skip_value(c)
    if not take(c, b"["):
        return False
    count[0] = 0
    if take(c, b"]"):
        return True
    while skip_value(c):
        count[0] += 1
        skip_space(c)
        if take(c, b","):
            continue
        return take(c, b"]")
    return False


cdef inline bint scan_logprobs(Cursor *c, int64_t *count) noexcept nogil:
    """Logprobs of chat (`content`, an item per token) or of completions (`tokens`)."""
    cdef Text key
    cdef bint ok
    cdef int64_t tokens = -1
    if c.p < c.end and c.p[0] != b"{":
        return skip_value(c)
    if not take(c, b"{"):
        return False
    if take(c, b"}"):
        return True
    while True:
        if not take_key(c, &key):
            return False
        if same(&key, b"content", 7):
            ok = count_items(c, count)
        elif same(&key, b"tokens", 6):
            ok = count_items(c, &tokens)
        else:
            ok = skip_value(c)
        if not ok:
            return False
        if take(c, b","):
            continue
        if count[0] < 0:
            count[0] = tokens
        return take(c, b"}")


cdef inline bint scan_choice(Cursor *c, Delta *out) noexcept nogil:
    cdef Text key
    cdef Text reason
    cdef bint ok
    cdef int64_t ids = -1, logprobs = -1
    if not take(c, b"{"):
        return False
    if take(c, b"}"):
        return True
    while True:
        if not take_key(c, &key):
            return False
        if same(&key, b"delta", 5):
            ok = scan_delta(c, out)
        elif same(&key, b"token_ids", 9):
            ok = count_items(c, &ids)
        elif same(&key, b"logprobs", 8):
            ok = scan_logprobs(c, &logprobs)
        elif same(&key, b"text", 4):
            ok = scan_text(c, out, CONTENT)
        elif same(&key, b"finish_reason", 13):
            ok = take_null(c)
            if not ok:
                ok = take_string(c, &reason) and memchr(reason.p, b"\\", reason.n) == NULL
                if ok and reason.n > 0:
                    out.finish = reason.p
                    out.finish_len = reason.n
        else:
            ok = skip_value(c)
        if not ok:
            return False
        if take(c, b","):
            continue
        if ids < 0:
            ids = logprobs
        if ids >= 0:
            out.tokens = max(out.tokens, 0) + ids
        return take(c, b"}")


cdef inline bint scan_choices(Cursor *c, Delta *out) noexcept nogil:
    if not take(c, b"["):
        return False
    if take(c, b"]"):
        return True
    while True:
        if not scan_choice(c, out):
            return False
        if take(c, b","):
            continue
        return take(c, b"]")


cdef inline bint scan_usage(Cursor *c, Delta *out, bint details) noexcept nogil:
    """The usage object, or (`details`) the one inside it that counts cached prompt tokens."""
    cdef Text key
    cdef bint ok
    if take_null(c):
        return True
    if not take(c, b"{"):
        return False
    if take(c, b"}"):
        return True
    while True:
        if not take_key(c, &key):
            return False
        if details:
            if same(&key, b"cached_tokens", 13):
                ok = take_null(c) or take_integer(c, &out.cached_tokens)
            else:
                ok = skip_value(c)
        elif same(&key, b"prompt_tokens", 13):
            ok = take_integer(c, &out.prompt_tokens)
        elif same(&key, b"completion_tokens", 17):
            ok = take_integer(c, &out.completion_tokens)
        elif same(&key, b"prompt_tokens_details", 21):
            ok = scan_usage(c, out, True)
        else:
            ok = skip_value(c)
        if not ok:
            return False
        if take(c, b","):
            continue
        return take(c, b"}")


cdef inline bint scan_event(const char *p, Py_ssize_t n, Delta *out) noexcept nogil:
    """Fill `out` from one event's JSON object; False if a real parser must look at it."""
    cdef Cursor c
    cdef Text key
    cdef Text text
    cdef bint ok
    c.p = p
    c.end = p + n
    out.kinds = 0
    out.finish = NULL
    out.finish_len = 0
    out.tokens = -1
    out.text = NULL
    out.text_len = 0
    out.prompt_tokens = out.completion_tokens = out.cached_tokens = -1
    if not take(&c, b"{"):
        return False
    while True:
        if not take_key(&c, &key):
            return False
        if same(&key, b"choices", 7):
            ok = scan_choices(&c, out)
        elif same(&key, b"usage", 5):
            ok = scan_usage(&c, out, False)
        elif same(&key, b"error", 5):
            ok = take_null(&c)
        elif same(&key, b"object", 6):
            ok = take_string(&c, &text) and not same(&text, b"error", 5)
        else:
            ok = skip_value(&c)
        if not ok:
            return False
        if take(&c, b","):
            continue
        return take(&c, b"}") and c.p == c.end
