# cython: language_level=3
"""One pass over the JSON of a streamed event: which tokens, finish reason and usage it carries.

A scanner, not a parser: it allocates nothing and looks only at the keys that matter. Whatever it does
not know for certain (escaped keys, keys given twice, tool calls, errors, answers that are not streamed,
anything that is not plain JSON) it leaves to `loadgen.deltas`, which defines the same facts with a real
JSON parser.
"""
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy

cdef enum:
    DEEPEST = 64          # values nested deeper are left to the real parser
    LONGEST_NUMBER = 32   # and so are longer numbers: some are beyond a double

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
    """Whether all escapes are JSON's; surrogates, of which a lone one is none, are left to the real parser."""
    while True:
        p = <const char *>memchr(p, b"\\", end - p)
        if p == NULL:
            return True
        p += 1  # there is a character: the closing quote is not escaped
        if p[0] == b"u":
            if end - p < 5 or not (is_hex(p[1]) and is_hex(p[2]) and is_hex(p[3]) and is_hex(p[4])):
                return False
            if (p[1] | 32) == b"d" and p[2] >= b"8":
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
        while b > text.p and b[-1] == b"\\":
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
    cdef int seen = 0
    if not take(c, b"{"):
        return False
    if take(c, b"}"):
        return True
    while True:
        if not take_key(c, &key):
            return False
        if same(&key, b"content", 7):
            ok = first(&seen, 1) and scan_text(c, out, CONTENT)
        elif same(&key, b"reasoning", 9):
            ok = first(&seen, 2) and scan_text(c, out, REASONING)
        elif same(&key, b"reasoning_content", 17):
            ok = first(&seen, 4) and scan_text(c, out, REASONING)
        elif same(&key, b"refusal", 7):
            ok = first(&seen, 8) and scan_text(c, out, OTHER)
        elif same(&key, b"tool_calls", 10):
            ok = first(&seen, 16) and take_null(c)
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
    cdef int seen = 0
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
            ok = first(&seen, 1) and count_items(c, count)
        elif same(&key, b"tokens", 6):
            ok = first(&seen, 2) and count_items(c, &tokens)
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
    cdef int seen = 0
    cdef int64_t ids = -1, logprobs = -1
    if not take(c, b"{"):
        return False
    if take(c, b"}"):
        return True
    while True:
        if not take_key(c, &key):
            return False
        if same(&key, b"delta", 5):
            ok = first(&seen, 1) and scan_delta(c, out)
        elif same(&key, b"token_ids", 9):
            ok = first(&seen, 8) and count_items(c, &ids)
        elif same(&key, b"logprobs", 8):
            ok = first(&seen, 16) and scan_logprobs(c, &logprobs)
        elif same(&key, b"text", 4):
            ok = first(&seen, 2) and scan_text(c, out, CONTENT)
        elif same(&key, b"finish_reason", 13):
            if not first(&seen, 4):
                return False
            ok = take_null(c)
            if not ok:
                ok = take_string(c, &reason) and not has_escape(c, &reason)
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
    cdef int seen = 0
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
                ok = first(&seen, 1) and (take_null(c) or take_integer(c, &out.cached_tokens))
            else:
                ok = skip_value(c)
        elif same(&key, b"prompt_tokens", 13):
            ok = first(&seen, 1) and take_integer(c, &out.prompt_tokens)
        elif same(&key, b"completion_tokens", 17):
            ok = first(&seen, 2) and take_integer(c, &out.completion_tokens)
        elif same(&key, b"prompt_tokens_details", 21):
            ok = first(&seen, 4) and scan_usage(c, out, True)
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
    cdef int seen = 0
    if has_control(p, n):
        return False
    c.p = p
    c.end = p + n
    c.escapes = memchr(p, b"\\", n) != NULL
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
            ok = first(&seen, 1) and scan_choices(&c, out)
        elif same(&key, b"usage", 5):
            ok = first(&seen, 2) and scan_usage(&c, out, False)
        elif same(&key, b"error", 5):
            ok = first(&seen, 4) and take_null(&c)
        elif same(&key, b"object", 6):
            ok = first(&seen, 8) and take_string(&c, &text) and not has_escape(&c, &text)
            ok = ok and not same(&text, b"error", 5)
        else:
            ok = skip_value(&c)
        if not ok:
            return False
        if take(&c, b","):
            continue
        return take(&c, b"}") and c.p == c.end
