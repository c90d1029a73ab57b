# cython: language_level=3
"""One pass over the JSON of a streamed event: its tokens, finish reason and usage.

A scanner, not a parser: it allocates nothing and looks only at the keys that matter, in any order
and nesting. Where it is not sure (escaped keys, keys given twice, tool calls, errors, answers that
are not streamed, anything that is not plain JSON) it returns False, and
`loadgen.core.reference_parser` reads the event with a real JSON parser. That module defines the
facts; tests hold this scanner to it.
"""
from libc.stdint cimport int64_t
from libc.string cimport memchr, memcmp, memcpy

from loadgen.core.c.json_cursor cimport (
    AT_END, AT_VALUE, Cursor, Text, first_key, has_control_char, has_escape, is_new_key, next_key,
    skip_space, skip_value, take_char, take_integer, take_null, take_string, text_is,
)
from loadgen.core.c.server_times cimport (
    PLACES_OF_TIMES, TIMES_META_INFO, TIMES_METRICS, TIMES_STATS, TIMES_TIME_INFO, TIMES_TIMINGS,
    TIMES_USAGE,
)
from loadgen.core.event_flags cimport (
    BARE, CHOICE, CONTENT, CUMULATIVE, EMPTY, FINISH, OLD_REASONING, OTHER, REASONING, ROLE, USAGE
)

cdef struct Delta:
    int kinds               # the kinds of token that the event bears, a subset of TOKENS; 0: none
    int says                # the other flags of the event
    int64_t tokens          # how many tokens, by its token ids or logprobs; -1: it does not say
    const char *text        # the text of the tokens, escaped as it came; NULL: none
    Py_ssize_t text_len
    const char *finish      # the finish reason, or NULL
    Py_ssize_t finish_len
    int64_t prompt_tokens   # by the usage object, like the next three; -1: it does not say
    int64_t completion_tokens
    int64_t cached_tokens
    int64_t reasoning_tokens
    int64_t total_tokens
    int times_at            # which of the members below it has, a bit for each
    Text[PLACES_OF_TIMES] times  # members that may say times of the server (server_times_scan)

cdef enum:
    MAX_HEAD = 512

cdef struct Head:
    char[MAX_HEAD] bytes    # of an event, up to the value of its `choices`
    Py_ssize_t n            # how many they are; 0: none
    int seen_keys           # the keys among them, as `scan_event` marks them

cdef enum UsageObject:
    USAGE_TOTALS            # the usage object itself
    PROMPT_DETAILS          # its prompt_tokens_details
    COMPLETION_DETAILS      # its completion_tokens_details


cdef inline bint scan_text(Cursor *c, Delta *out, int kind, int empty, int present) noexcept nogil:
    """Scan a string or null. A string that is not empty bears a token of `kind`.

    Args:
        empty: The flag that an empty string sets.
        present: The flag that any string sets.
    """
    cdef Text text
    if take_null(c):
        return True
    if not take_string(c, &text):
        return False
    out.says |= present if text.n > 0 else present | empty
    if text.n > 0:
        if out.text != NULL:  # two texts in one event: the parser joins them
            return False
        out.kinds |= kind
        out.text = text.p
        out.text_len = text.n
    return True


cdef inline bint may_hold_text(Cursor *c) noexcept nogil:
    """Whether the value at the cursor is a string that is not empty, a list or an object."""
    if c.p + 1 >= c.end:
        return True
    return c.p[0] == b"{" or c.p[0] == b"[" or (c.p[0] == b'"' and c.p[1] != b'"')


cdef inline bint scan_delta(Cursor *c, Delta *out) noexcept nogil:
    """Scan the delta of a choice: the texts that bear tokens."""
    cdef Text key
    cdef bint ok, names_role = False
    cdef int step, seen_keys = 0
    step = first_key(c, &key)
    while step == AT_VALUE:
        if text_is(&key, b"content", 7):
            ok = is_new_key(&seen_keys, 1) and scan_text(c, out, CONTENT, EMPTY, 0)
        elif text_is(&key, b"reasoning", 9):
            ok = is_new_key(&seen_keys, 2) and scan_text(c, out, REASONING, 0, 0)
        elif text_is(&key, b"reasoning_content", 17):
            ok = is_new_key(&seen_keys, 4) and scan_text(c, out, REASONING, 0, OLD_REASONING)
        elif text_is(&key, b"refusal", 7):
            ok = is_new_key(&seen_keys, 8) and scan_text(c, out, OTHER, 0, 0)
        elif text_is(&key, b"tool_calls", 10):
            ok = is_new_key(&seen_keys, 16) and take_null(c)
        else:
            if text_is(&key, b"role", 4):
                ok = is_new_key(&seen_keys, 32)
                out.says |= ROLE
                if ok and not take_null(c):
                    names_role = True
                    ok = skip_value(c)
            else:
                ok = not may_hold_text(c) and skip_value(c)
        step = next_key(c, &key, ok)
    if not names_role:
        out.says |= BARE
    return step == AT_END


cdef inline bint count_items(Cursor *c, int64_t *count) noexcept nogil:
    """Step over any value; `count` becomes the number of its items if it is an array."""
    if c.p < c.end and c.p[0] != b"[":
        return skip_value(c)
    if not take_char(c, b"["):
        return False
    count[0] = 0
    if take_char(c, b"]"):
        return True
    while skip_value(c):
        count[0] += 1
        skip_space(c)
        if take_char(c, b","):
            continue
        return take_char(c, b"]")
    return False


cdef inline bint scan_logprobs(Cursor *c, int64_t *count) noexcept nogil:
    """Count the tokens in logprobs of chat (`content`, an item per token) or of completions
    (`tokens`).
    """
    cdef Text key
    cdef bint ok
    cdef int step, seen_keys = 0
    cdef int64_t tokens = -1
    if c.p < c.end and c.p[0] != b"{":
        return skip_value(c)
    step = first_key(c, &key)
    while step == AT_VALUE:
        if text_is(&key, b"content", 7):
            ok = is_new_key(&seen_keys, 1) and count_items(c, count)
        elif text_is(&key, b"tokens", 6):
            ok = is_new_key(&seen_keys, 2) and count_items(c, &tokens)
        else:
            ok = skip_value(c)
        step = next_key(c, &key, ok)
    if count[0] < 0:
        count[0] = tokens
    return step == AT_END


cdef inline bint is_no_reason(Text *reason) noexcept nogil:
    """Whether a finish reason may be the word null or none, which a real parser must read."""
    return reason.n == 4 and (reason.p[0] | 32) == b"n"


cdef inline bint scan_choice(Cursor *c, Delta *out) noexcept nogil:
    """Scan one choice: its delta or text, finish reason and token counts."""
    cdef Text key
    cdef Text reason
    cdef bint ok
    cdef int step, seen_keys = 0
    cdef int64_t ids = -1, logprobs = -1, index = 0
    out.says |= CHOICE
    step = first_key(c, &key)
    while step == AT_VALUE:
        if text_is(&key, b"delta", 5):
            ok = is_new_key(&seen_keys, 1) and scan_delta(c, out)
        elif text_is(&key, b"token_ids", 9):
            ok = is_new_key(&seen_keys, 8) and count_items(c, &ids)
        elif text_is(&key, b"logprobs", 8):
            ok = is_new_key(&seen_keys, 16) and scan_logprobs(c, &logprobs)
        elif text_is(&key, b"text", 4):
            ok = is_new_key(&seen_keys, 2) and scan_text(c, out, CONTENT, EMPTY, 0)
        elif text_is(&key, b"index", 5):
            ok = is_new_key(&seen_keys, 32) and take_integer(c, &index) and index == 0
        elif text_is(&key, b"matched_stop", 12) or text_is(&key, b"stop_reason", 11):
            ok = take_null(c)
        elif text_is(&key, b"finish_reason", 13):
            ok = is_new_key(&seen_keys, 4)
            if ok and not take_null(c):
                ok = take_string(c, &reason) and not has_escape(c, &reason)
                ok = ok and not is_no_reason(&reason)
                if ok and reason.n > 0:
                    out.finish = reason.p
                    out.finish_len = reason.n
                    out.says |= FINISH
        elif text_is(&key, b"error", 5) or text_is(&key, b"usage", 5):
            ok = take_null(c)
        else:
            ok = skip_value(c)
        step = next_key(c, &key, ok)
    if ids < 0:
        ids = logprobs
    if ids >= 0:
        out.tokens = max(out.tokens, 0) + ids
    return step == AT_END


cdef inline bint scan_choices(Cursor *c, Delta *out) noexcept nogil:
    """Scan the list of choices."""
    if not take_char(c, b"["):
        return False
    if take_char(c, b"]"):
        return True
    while True:
        if not scan_choice(c, out):
            return False
        if take_char(c, b","):
            continue
        return take_char(c, b"]")


cdef inline bint is_other_count(Text *key) noexcept nogil:
    """Whether a key of a usage object is one by which other servers name a count."""
    return (
        text_is(key, b"input_tokens", 12) or text_is(key, b"output_tokens", 13)
        or text_is(key, b"input_tokens_details", 20) or text_is(key, b"output_tokens_details", 21)
        or text_is(key, b"prompt_cache_hit_tokens", 23) or text_is(key, b"cached_tokens", 13)
    )


cdef inline void keep_times(Delta *out, int place, const char *p, Py_ssize_t n) noexcept nogil:
    """Store that the member of n bytes may say times of the server."""
    out.times[place].p = p
    out.times[place].n = n
    out.times_at |= 1 << place


cdef inline int place_of_times(Text *key) noexcept nogil:
    """Return the place of a member of an event that may say times of the server; -1: it does
    not.
    """
    if text_is(key, b"metrics", 7):
        return TIMES_METRICS
    if text_is(key, b"timings", 7):
        return TIMES_TIMINGS
    if text_is(key, b"stats", 5):
        return TIMES_STATS
    return TIMES_TIME_INFO if text_is(key, b"time_info", 9) else -1


cdef inline bint skip_member(Cursor *c, Delta *out, Text *key) noexcept nogil:
    """Step over a member that bears on no token."""
    cdef const char *start = c.p
    cdef int place = place_of_times(key)
    if place < 0:
        return skip_value(c)
    if out.times_at & (1 << place) or not skip_value(c):
        return False
    keep_times(out, place, start, c.p - start)
    return True


cdef inline bint scan_usage(Cursor *c, Delta *out, UsageObject which) noexcept nogil:
    """Scan the usage object, or one of the two objects inside it that hold details."""
    cdef Text key
    cdef bint ok
    cdef int step, seen_keys = 0
    cdef const char *start = c.p
    cdef bint says_more = False
    if take_null(c):
        return True
    if which == USAGE_TOTALS:
        out.says |= USAGE
    step = first_key(c, &key)
    while step == AT_VALUE:
        if which == PROMPT_DETAILS and text_is(&key, b"cached_tokens", 13):
            ok = is_new_key(&seen_keys, 1) and (take_null(c) or take_integer(c, &out.cached_tokens))
        elif which == COMPLETION_DETAILS and text_is(&key, b"reasoning_tokens", 16):
            ok = is_new_key(&seen_keys, 1) and (
                take_null(c) or take_integer(c, &out.reasoning_tokens))
        elif which != USAGE_TOTALS:
            ok = skip_value(c)
        elif text_is(&key, b"prompt_tokens", 13):
            ok = is_new_key(&seen_keys, 1) and take_integer(c, &out.prompt_tokens)
        elif text_is(&key, b"completion_tokens", 17):
            ok = is_new_key(&seen_keys, 2) and take_integer(c, &out.completion_tokens)
        elif text_is(&key, b"prompt_tokens_details", 21):
            ok = is_new_key(&seen_keys, 4) and scan_usage(c, out, PROMPT_DETAILS)
        elif text_is(&key, b"completion_tokens_details", 25):
            ok = is_new_key(&seen_keys, 8) and scan_usage(c, out, COMPLETION_DETAILS)
        elif text_is(&key, b"total_tokens", 12):
            ok = is_new_key(&seen_keys, 16) and take_integer(c, &out.total_tokens)
        elif is_other_count(&key):
            ok = take_null(c)
        else:
            says_more = True
            ok = skip_value(c)
        step = next_key(c, &key, ok)
    if says_more:
        keep_times(out, TIMES_USAGE, start, c.p - start)
    return step == AT_END


cdef inline bint scan_finish(Cursor *c, Delta *out) noexcept nogil:
    """Scan the finish reason of /generate: null, or an object whose `type` it is.

    One that names a stop, or an abort, is parsed.
    """
    cdef Text key
    cdef Text reason
    cdef bint ok
    cdef int step, seen_keys = 0
    if take_null(c):
        return True
    step = first_key(c, &key)
    while step == AT_VALUE:
        if text_is(&key, b"type", 4):
            ok = is_new_key(&seen_keys, 1) and take_string(c, &reason)
            ok = ok and not has_escape(c, &reason)
            ok = ok and not text_is(&reason, b"abort", 5) and not is_no_reason(&reason)
            if ok and reason.n > 0:
                out.finish = reason.p
                out.finish_len = reason.n
                out.says |= FINISH
        elif text_is(&key, b"matched", 7):
            ok = take_null(c)
        else:
            ok = skip_value(c)
        step = next_key(c, &key, ok)
    return step == AT_END


cdef inline bint skip_zero(Cursor *c) noexcept nogil:
    """Step over a 0: the index of the only answer."""
    cdef int64_t index
    return take_integer(c, &index) and index == 0


cdef inline bint scan_meta_info(Cursor *c, Delta *out) noexcept nogil:
    """Scan the `meta_info` of an event of /generate: the counts so far, and the finish reason."""
    cdef Text key
    cdef bint ok
    cdef int step, seen_keys = 0
    cdef const char *start = c.p
    out.says |= CHOICE | USAGE | CUMULATIVE
    step = first_key(c, &key)
    while step == AT_VALUE:
        if text_is(&key, b"completion_tokens", 17):
            ok = is_new_key(&seen_keys, 1) and take_integer(c, &out.completion_tokens)
        elif text_is(&key, b"prompt_tokens", 13):
            ok = is_new_key(&seen_keys, 2) and take_integer(c, &out.prompt_tokens)
        elif text_is(&key, b"cached_tokens", 13):
            ok = is_new_key(&seen_keys, 4) and (take_null(c) or take_integer(c, &out.cached_tokens))
        elif text_is(&key, b"finish_reason", 13):
            ok = is_new_key(&seen_keys, 8) and scan_finish(c, out)
        else:
            ok = skip_value(c)
        step = next_key(c, &key, ok)
    keep_times(out, TIMES_META_INFO, start, c.p - start)
    return step == AT_END


cdef inline void begin_event(Cursor *c, const char *p, Py_ssize_t n, Delta *out) noexcept nogil:
    """Begin to scan n bytes; `out` says nothing yet."""
    c.p = p
    c.end = p + n
    c.has_escapes = memchr(p, b"\\", n) != NULL
    out.kinds = out.says = out.times_at = 0
    out.finish = NULL
    out.finish_len = 0
    out.tokens = -1
    out.text = NULL
    out.text_len = 0
    out.prompt_tokens = out.completion_tokens = out.cached_tokens = out.reasoning_tokens = -1
    out.total_tokens = -1


cdef inline void keep_head(Head *head, Py_ssize_t n, const char *p, int seen_keys) noexcept nogil:
    """Keep the first n bytes of an event, if they say nothing of the answer and are few."""
    if n <= MAX_HEAD:
        memcpy(head.bytes, p, n)
        head.n = n
        head.seen_keys = seen_keys


cdef inline bint scan_event(const char *p, Py_ssize_t n, Delta *out, Head *head) noexcept nogil:
    """Fill `out` from one event's JSON object; return False if a real parser must read it.

    Args:
        head: What an event before began with; nearly all events of a stream begin with the same
            bytes, which are not scanned again.
    """
    cdef Cursor c
    cdef Text key
    cdef Text text
    cdef Text answer_text
    cdef bint ok
    cdef int step, seen_keys = 0
    cdef bint is_known = 0 < head.n < n and memcmp(p, head.bytes, head.n) == 0
    cdef Py_ssize_t known = head.n if is_known else 0
    if has_control_char(p + known, n - known):
        return False
    begin_event(&c, p, n, out)
    answer_text.n = -1
    if is_known:
        c.p = p + known
        seen_keys = head.seen_keys | 1
        step = next_key(&c, &key, scan_choices(&c, out))
    else:
        step = first_key(&c, &key)
    while step == AT_VALUE:
        if text_is(&key, b"choices", 7):
            if out.says == 0 and answer_text.n < 0:
                keep_head(head, c.p - p, p, seen_keys)
            ok = is_new_key(&seen_keys, 1) and scan_choices(&c, out)
        elif text_is(&key, b"usage", 5):
            ok = is_new_key(&seen_keys, 2) and scan_usage(&c, out, USAGE_TOTALS)
        elif text_is(&key, b"error", 5):
            ok = is_new_key(&seen_keys, 4) and take_null(&c)
        elif text_is(&key, b"object", 6):
            ok = is_new_key(&seen_keys, 8) and take_string(&c, &text) and not has_escape(&c, &text)
            ok = ok and not text_is(&text, b"error", 5)
        elif text_is(&key, b"text", 4):
            ok = is_new_key(&seen_keys, 16) and take_string(&c, &answer_text)
        elif text_is(&key, b"meta_info", 9):
            ok = is_new_key(&seen_keys, 32) and scan_meta_info(&c, out)
        elif text_is(&key, b"index", 5):
            ok = is_new_key(&seen_keys, 64) and skip_zero(&c)
        elif text_is(&key, b"x_groq", 6):
            ok = take_null(&c)
        else:
            ok = skip_member(&c, out, &key)
        step = next_key(&c, &key, ok)
    if out.kinds or (out.says & (EMPTY | FINISH) and not out.says & ROLE):
        out.says &= ~BARE
    if out.says == 0 and not seen_keys & 1:  # an event that may be unknown
        return False
    if out.says & CUMULATIVE:
        if seen_keys & 1:  # choices, too: two dialects in one event
            return False
        if answer_text.n > 0:
            out.kinds = CONTENT
            out.text = answer_text.p
            out.text_len = answer_text.n
        elif answer_text.n == 0:
            out.says |= EMPTY
    return step == AT_END and c.p == c.end
