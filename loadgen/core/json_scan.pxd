# cython: language_level=3
"""One pass over the JSON of a streamed event: which tokens, finish reason and usage it carries.

A scanner, not a parser: it allocates nothing and looks only at the keys that matter. Whatever it does
not know for certain (escaped keys, keys given twice, tool calls, errors, answers that are not streamed,
anything that is not plain JSON) it leaves to `loadgen.core.sse_event`, which defines the same facts with a real
JSON parser.
"""
from libc.stdint cimport int64_t
from libc.string cimport memchr
from loadgen.core.json_cursor cimport (
    KEY, OVER, Cursor, Text, first, first_key, has_control, has_escape, next_key, same, skip_space, skip_value, take,
    take_integer, take_null, take_string,
)

cdef enum Kind:
    CONTENT = 1
    REASONING = 2
    OTHER = 4
    TOKENS = 7

cdef enum Says:
    CHOICE = 8
    ROLE = 16
    EMPTY = 32
    FINISH = 64
    USAGE = 128
    OLD_REASONING = 256
    TOOL = 512
    DONE = 1024

cdef struct Delta:
    int kinds               # which kinds of token the event bears, a set of Kind; 0: none
    int says                # what else it says, a set of Says
    int64_t tokens          # how many, by its token ids or logprobs; -1: not told
    const char *text        # what the tokens say, escaped as it came; NULL: nothing
    Py_ssize_t text_len
    const char *finish      # the finish reason, or NULL
    Py_ssize_t finish_len
    int64_t prompt_tokens   # -1: not told
    int64_t completion_tokens
    int64_t cached_tokens
    int64_t reasoning_tokens

cdef enum Counts:           # of which object
    IN_ALL
    OF_PROMPT
    OF_ANSWER


cdef inline bint scan_text(Cursor *c, Delta *out, int kind, int empty, int there) noexcept nogil:
    """A string or null that bears a token of `kind` if it is not empty; it says `empty` if it is, `there` either way."""
    cdef Text text
    if take_null(c):
        return True
    if not take_string(c, &text):
        return False
    out.says |= there if text.n > 0 else there | empty
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
    cdef int at, seen = 0
    at = first_key(c, &key)
    while at == KEY:
        if same(&key, b"content", 7):
            ok = first(&seen, 1) and scan_text(c, out, CONTENT, EMPTY, 0)
        elif same(&key, b"reasoning", 9):
            ok = first(&seen, 2) and scan_text(c, out, REASONING, 0, 0)
        elif same(&key, b"reasoning_content", 17):
            ok = first(&seen, 4) and scan_text(c, out, REASONING, 0, OLD_REASONING)
        elif same(&key, b"refusal", 7):
            ok = first(&seen, 8) and scan_text(c, out, OTHER, 0, 0)
        elif same(&key, b"tool_calls", 10):
            ok = first(&seen, 16) and take_null(c)
        else:
            if same(&key, b"role", 4):
                out.says |= ROLE
            ok = skip_value(c)
        at = next_key(c, &key, ok)
    return at == OVER


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
    cdef int at, seen = 0
    cdef int64_t tokens = -1
    if c.p < c.end and c.p[0] != b"{":
        return skip_value(c)
    at = first_key(c, &key)
    while at == KEY:
        if same(&key, b"content", 7):
            ok = first(&seen, 1) and count_items(c, count)
        elif same(&key, b"tokens", 6):
            ok = first(&seen, 2) and count_items(c, &tokens)
        else:
            ok = skip_value(c)
        at = next_key(c, &key, ok)
    if count[0] < 0:
        count[0] = tokens
    return at == OVER


cdef inline bint scan_choice(Cursor *c, Delta *out) noexcept nogil:
    cdef Text key
    cdef Text reason
    cdef bint ok
    cdef int at, seen = 0
    cdef int64_t ids = -1, logprobs = -1, index = 0
    out.says |= CHOICE
    at = first_key(c, &key)
    while at == KEY:
        if same(&key, b"delta", 5):
            ok = first(&seen, 1) and scan_delta(c, out)
        elif same(&key, b"token_ids", 9):
            ok = first(&seen, 8) and count_items(c, &ids)
        elif same(&key, b"logprobs", 8):
            ok = first(&seen, 16) and scan_logprobs(c, &logprobs)
        elif same(&key, b"text", 4):
            ok = first(&seen, 2) and scan_text(c, out, CONTENT, EMPTY, 0)
        elif same(&key, b"index", 5):
            ok = first(&seen, 32) and take_integer(c, &index) and index == 0
        elif same(&key, b"matched_stop", 12) or same(&key, b"stop_reason", 11):
            ok = take_null(c)
        elif same(&key, b"finish_reason", 13):
            ok = first(&seen, 4)
            if ok and not take_null(c):
                ok = take_string(c, &reason) and not has_escape(c, &reason)
                if ok and reason.n > 0:
                    out.finish = reason.p
                    out.finish_len = reason.n
                    out.says |= FINISH
        else:
            ok = skip_value(c)
        at = next_key(c, &key, ok)
    if ids < 0:
        ids = logprobs
    if ids >= 0:
        out.tokens = max(out.tokens, 0) + ids
    return at == OVER


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


cdef inline bint scan_usage(Cursor *c, Delta *out, Counts what) noexcept nogil:
    """The usage object, or one of those inside it that count parts of the prompt or of the answer."""
    cdef Text key
    cdef bint ok
    cdef int at, seen = 0
    if take_null(c):
        return True
    if what == IN_ALL:
        out.says |= USAGE
    at = first_key(c, &key)
    while at == KEY:
        if what == OF_PROMPT and same(&key, b"cached_tokens", 13):
            ok = first(&seen, 1) and (take_null(c) or take_integer(c, &out.cached_tokens))
        elif what == OF_ANSWER and same(&key, b"reasoning_tokens", 16):
            ok = first(&seen, 1) and (take_null(c) or take_integer(c, &out.reasoning_tokens))
        elif what != IN_ALL:
            ok = skip_value(c)
        elif same(&key, b"prompt_tokens", 13):
            ok = first(&seen, 1) and take_integer(c, &out.prompt_tokens)
        elif same(&key, b"completion_tokens", 17):
            ok = first(&seen, 2) and take_integer(c, &out.completion_tokens)
        elif same(&key, b"prompt_tokens_details", 21):
            ok = first(&seen, 4) and scan_usage(c, out, OF_PROMPT)
        elif same(&key, b"completion_tokens_details", 25):
            ok = first(&seen, 8) and scan_usage(c, out, OF_ANSWER)
        else:
            ok = skip_value(c)
        at = next_key(c, &key, ok)
    return at == OVER


cdef inline bint scan_event(const char *p, Py_ssize_t n, Delta *out) noexcept nogil:
    """Fill `out` from one event's JSON object; False if a real parser must look at it."""
    cdef Cursor c
    cdef Text key
    cdef Text text
    cdef bint ok
    cdef int at, seen = 0
    if has_control(p, n):
        return False
    c.p = p
    c.end = p + n
    c.escapes = memchr(p, b"\\", n) != NULL
    out.kinds = out.says = 0
    out.finish = NULL
    out.finish_len = 0
    out.tokens = -1
    out.text = NULL
    out.text_len = 0
    out.prompt_tokens = out.completion_tokens = out.cached_tokens = out.reasoning_tokens = -1
    at = first_key(&c, &key)
    while at == KEY:
        if same(&key, b"choices", 7):
            ok = first(&seen, 1) and scan_choices(&c, out)
        elif same(&key, b"usage", 5):
            ok = first(&seen, 2) and scan_usage(&c, out, IN_ALL)
        elif same(&key, b"error", 5):
            ok = first(&seen, 4) and take_null(&c)
        elif same(&key, b"object", 6):
            ok = first(&seen, 8) and take_string(&c, &text) and not has_escape(&c, &text)
            ok = ok and not same(&text, b"error", 5)
        else:
            ok = skip_value(&c)
        at = next_key(&c, &key, ok)
    return at == OVER and c.p == c.end
