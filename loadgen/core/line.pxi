# Line: a record as a line of JSON, for `wire`; included there.

cdef int put_int(Bytes *to, int64_t value) except -1:
    cdef char[PLACES + 1] text
    cdef char *end = &text[0]
    if value < 0:
        end[0] = b"-"
        end += 1
    end = put_decimal(end, -<uint64_t>value if value < 0 else <uint64_t>value)
    return append(to, &text[0], end - &text[0])


cdef int put_bytes(Bytes *to, bytes text) except -1:
    return append(to, PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text))


cdef int put_text(Bytes *to, const char *key, object text) except -1:
    """A member whose value is a string (or a number, of what may be either), or null."""
    append(to, key, strlen(key))
    return append(to, b"null", 4) if text is None else put_bytes(to, orjson.dumps(text))


cdef int put_number(Bytes *to, const char *key, int64_t value) except -1:
    append(to, key, strlen(key))
    return put_int(to, value)


cdef int put_told(Bytes *to, const char *key, int64_t value, bint is_told) except -1:
    """A member whose value is a number, or null where nobody told it."""
    append(to, key, strlen(key))
    return put_int(to, value) if is_told else append(to, b"null", 4)


cdef int put_truth(Bytes *to, const char *key, bint value) except -1:
    append(to, key, strlen(key))
    return append(to, b"true", 4) if value else append(to, b"false", 5)


cdef int put_stream(Bytes *to, Record record) except -1:
    """The runs of its events, with names for flags; null where they are not known."""
    cdef Py_ssize_t i
    cdef int64_t says, value
    append(to, b',"stream":', 10)
    if not record.knows_stream():
        return append(to, b"null", 4)
    append(to, b"[", 1)
    for i in range(record.tellings):
        says, value = record.told[2 * i], record.told[2 * i + 1]
        append(to, b",[" if i else b"[", 2 if i else 1)
        put_bytes(to, sse_event.named(says))
        append(to, b",", 1)
        put_int(to, value if says & TOKENS else value - record.due)
        append(to, b"]", 1)
    return append(to, b"]", 1)


cdef int put_events(Bytes *to, Record record) except -1:
    """How many tokens each event bears, or null; when each came."""
    cdef Py_ssize_t i
    append(to, b',"tokens_per_event":', 20)
    if record.tokens == NULL:
        append(to, b"null", 4)
    else:
        append(to, b"[", 1)
        for i in range(record.events):
            if i:
                append(to, b",", 1)
            put_int(to, record.tokens[i])
        append(to, b"]", 1)
    put_stream(to, record)
    append(to, b',"token_times":[', 16)
    for i in range(record.events):
        if i:
            append(to, b",", 1)
        put_int(to, record.stamps_ns[i] - record.due)
    return append(to, b"]", 1)


def line(Record record not None, int64_t start_ns, source, *, bint answer=False):
    """The JSON of an ended record, as docs/records.md describes it; of `source`, where its prompt comes from, or None.

    A stamp is null where the thing did not happen, a count where it was not told. answer: whether its text stands there too.
    """
    cdef Bytes to
    cdef int64_t due = record.due
    to.data, to.size, to.room = NULL, 0, 0
    try:
        put_number(&to, b'{"index":', record.index)
        put_text(&to, b',"source":', source)
        put_text(&to, b',"outcome":', record.outcome)
        put_text(&to, b',"detail":', record.detail or None)
        put_text(&to, b',"finish_reason":', record.finish_reason)
        put_text(&to, b',"matched_stop":', record.matched_stop)
        put_told(&to, b',"planned_input_tokens":', record.input_tokens, record.input_tokens >= 0)
        put_number(&to, b',"planned_output_tokens":', record.output_tokens)
        put_told(&to, b',"predicted_server_input_tokens":', record.server_tokens, record.server_tokens >= 0)
        put_number(&to, b',"target":', record.target)
        put_told(&to, b',"status":', record.status, record.status != 0)
        put_told(&to, b',"prompt_tokens":', record.prompt_tokens, record.prompt_tokens >= 0)
        put_told(&to, b',"completion_tokens":', record.completion_tokens, record.completion_tokens >= 0)
        put_told(&to, b',"cached_tokens":', record.cached_tokens, record.cached_tokens >= 0)
        put_told(&to, b',"reasoning_tokens":', record.reasoning_tokens, record.reasoning_tokens >= 0)
        put_number(&to, b',"due":', due - start_ns)
        put_told(&to, b',"ready":', record.ready - due, record.ready != 0)
        put_told(&to, b',"sent":', record.sent - due, record.sent != 0)
        put_number(&to, b',"connect":', record.connect_ns)
        put_told(&to, b',"first_byte":', record.first_byte - due, record.first_byte != 0)
        put_told(&to, b',"first_token":', record.first_token - due, record.first_token != 0)
        put_told(&to, b',"first_answer":', record.first_answer - due, record.first_answer != 0)
        put_told(&to, b',"last_token":', record.last_token - due, record.last_token != 0)
        put_told(&to, b',"closed":', record.closed - due, record.closed != 0)
        put_truth(&to, b',"reused":', record.reused)
        put_truth(&to, b',"by_reader":', record.by_reader)
        put_number(&to, b',"reads":', record.reads)
        put_number(&to, b',"content_events":', record.content_events)
        put_number(&to, b',"reasoning_events":', record.reasoning_events)
        put_number(&to, b',"other_events":', record.other_events)
        put_number(&to, b',"nan_events":', record.nan_events)
        put_number(&to, b',"counted_by":', record.counted_by)
        put_events(&to, record)
        if answer:
            put_text(&to, b',"answer":', record.generated_text)
        append(&to, b"}\n", 2)
        return to.data[:to.size]
    finally:
        dispose(&to)
