# cython: language_level=3
"""A record as a line of JSON, as docs/records.md describes it.

It is written in C into one buffer: only texts and the list of flags go through Python.
"""
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport strlen
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

from loadgen.core.c.memory cimport BYTES, COUNTING, Buffer, append_bytes, free_buffer, live_count
from loadgen.core.c.network cimport UNKNOWN
from loadgen.core.c.digits cimport PLACES, put_signed
from loadgen.core.event_flags cimport TOKENS
from loadgen.core.c.events cimport EventRun
from loadgen.core.record cimport Record

import orjson

from loadgen.core.event_flags import names_json


cdef int put_int(Buffer *out, int64_t value) except -1:
    cdef char[PLACES + 1] text
    return append_bytes(out, text, put_signed(text, value) - text)


cdef int put_python_bytes(Buffer *out, bytes text) except -1:
    return append_bytes(out, PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text))


cdef int put_object(Buffer *out, const char *key, object value) except -1:
    """Write a member whose value is a string, an int, or null."""
    append_bytes(out, key, strlen(key))
    if value is None:
        return append_bytes(out, b"null", 4)
    return put_python_bytes(out, orjson.dumps(value))


cdef int put_number(Buffer *out, const char *key, int64_t value) except -1:
    append_bytes(out, key, strlen(key))
    return put_int(out, value)


cdef int put_optional(Buffer *out, const char *key, int64_t value, bint is_known) except -1:
    """Write a member whose value is a number, or null if it is not known."""
    append_bytes(out, key, strlen(key))
    return put_int(out, value) if is_known else append_bytes(out, b"null", 4)


cdef int put_bool(Buffer *out, const char *key, bint value) except -1:
    append_bytes(out, key, strlen(key))
    return append_bytes(out, b"true", 4) if value else append_bytes(out, b"false", 5)


cdef int put_stream(Buffer *out, Record record) except -1:
    """Write the runs of events with the names of their flags; null if they are not all known."""
    cdef Py_ssize_t i
    cdef EventRun run
    append_bytes(out, b',"stream":', 10)
    if not record.has_all_runs():
        return append_bytes(out, b"null", 4)
    append_bytes(out, b"[", 1)
    for i in range(record.runs.count):
        run = record.runs.list[i]
        append_bytes(out, b",[" if i else b"[", 2 if i else 1)
        put_python_bytes(out, names_json(run.flags))
        append_bytes(out, b",", 1)
        put_int(out, run.count if run.flags & TOKENS else run.at_ns - record.due)
        append_bytes(out, b"]", 1)
    return append_bytes(out, b"]", 1)


cdef int put_events(Buffer *out, Record record) except -1:
    """Write the tokens of each event, or null if each bears one, and the time of each event."""
    cdef Py_ssize_t i
    append_bytes(out, b',"tokens_per_event":', 20)
    if record.arrays.tokens == NULL:
        append_bytes(out, b"null", 4)
    else:
        append_bytes(out, b"[", 1)
        for i in range(record.events):
            if i:
                append_bytes(out, b",", 1)
            put_int(out, record.arrays.tokens[i])
        append_bytes(out, b"]", 1)
    put_stream(out, record)
    append_bytes(out, b',"token_times":[', 16)
    for i in range(record.events):
        if i:
            append_bytes(out, b",", 1)
        put_int(out, record.arrays.stamps_ns[i] - record.due)
    append_bytes(out, b"]", 1)
    put_number(out, b',"user_stamped":', record.user_stamped)
    if record.reordered:
        put_number(out, b',"reordered":', record.reordered)
    return put_bounds(out, record)


cdef int put_bounds(Buffer *out, Record record) except -1:
    """Write what is known of the events beside their stamps: how early they can have come, and
    when they were read.
    """
    cdef Py_ssize_t i
    cdef bint is_first = True
    if record.first_answer_earliest and record.first_answer_earliest != record.first_answer:
        put_number(out, b',"first_answer_earliest":', record.first_answer_earliest - record.due)
    if record.arrays.earliest_ns != NULL:
        append_bytes(out, b',"earliest":[', 13)
        for i in range(record.events):
            if record.arrays.earliest_ns[i] != record.arrays.stamps_ns[i]:
                append_bytes(out, b"[" if is_first else b",[", 1 if is_first else 2)
                put_int(out, i)
                append_bytes(out, b",", 1)
                put_int(out, record.arrays.earliest_ns[i] - record.due)
                append_bytes(out, b"]", 1)
                is_first = False
        append_bytes(out, b"]", 1)
    if record.arrays.reads_ns != NULL:
        append_bytes(out, b',"read_late":[', 14)
        for i in range(record.events):
            if i:
                append_bytes(out, b",", 1)
            put_int(out, record.arrays.reads_ns[i] - record.arrays.stamps_ns[i])
        append_bytes(out, b"]", 1)
    return 0


cdef int put_network(Buffer *out, Record record) except -1:
    """Write how the connection was opened, and what TCP saw of it."""
    if record.opening.tcp_ns != UNKNOWN:
        put_number(out, b',"connect_parts":{"dns":', record.opening.dns_ns)
        put_number(out, b',"tcp":', record.opening.tcp_ns)
        put_number(out, b',"tls":', record.opening.tls_ns)
        append_bytes(out, b"}", 1)
    if record.tcp.rtt_us != UNKNOWN:
        put_number(out, b',"tcp":[', record.tcp.min_rtt_us)
        put_number(out, b",", record.tcp.rtt_us)
        put_number(out, b",", record.tcp.out_of_order)
        put_number(out, b",", record.tcp.retransmits)
        append_bytes(out, b"]", 1)
    return 0


cdef int put_attempts(Buffer *out, Record record) except -1:
    """Write how often a request was sent, and how the first attempt ended."""
    put_number(out, b',"attempts":', record.attempts)
    put_number(out, b',"retried":', record.retried_ns)
    put_number(out, b',"first_status":', record.first_status)
    put_number(out, b',"first_sent":', record.first_sent - record.due)
    return put_number(out, b',"first_closed":', record.first_closed - record.due)


def live():
    """Return the bytes that this module has allocated; None unless it is a debug build."""
    return {"bytes": live_count(BYTES)} if COUNTING else None


def record_line(Record record not None, int64_t start_ns, *, bint answer=False, class_name=None):
    """Return an ended record as a line of JSON.

    Args:
        record: The record.
        start_ns: When the clock of the run started; `due` is written from there, other times from
            `due`.
        answer: Whether to write the text of the answer too.
        class_name: The name of its class; None: the run has no classes.
    """
    cdef Buffer out
    cdef int64_t due = record.due
    out.data, out.size, out.capacity = NULL, 0, 0
    try:
        put_number(&out, b'{"index":', record.index)
        put_object(&out, b',"source":', record.source)
        put_object(&out, b',"outcome":', record.outcome)
        put_object(&out, b',"detail":', record.detail or None)
        put_object(&out, b',"finish_reason":', record.finish_reason)
        put_object(&out, b',"matched_stop":', record.matched_stop)
        put_optional(&out, b',"planned_input_tokens":', record.input_tokens,
                     record.input_tokens >= 0)
        put_number(&out, b',"planned_output_tokens":', record.output_tokens)
        put_optional(&out, b',"predicted_server_input_tokens":', record.server_tokens,
                     record.server_tokens >= 0)
        put_number(&out, b',"target":', record.target)
        if class_name is not None:
            put_object(&out, b',"class":', class_name)
        if record.turn >= 0:
            put_number(&out, b',"session":', record.index - record.turn)
            put_number(&out, b',"turn":', record.turn + 1)
        put_optional(&out, b',"status":', record.status, record.status != 0)
        put_optional(&out, b',"prompt_tokens":', record.prompt_tokens, record.prompt_tokens >= 0)
        put_optional(&out, b',"completion_tokens":', record.completion_tokens,
                     record.completion_tokens >= 0)
        put_optional(&out, b',"cached_tokens":', record.cached_tokens, record.cached_tokens >= 0)
        put_optional(&out, b',"reasoning_tokens":', record.reasoning_tokens,
                     record.reasoning_tokens >= 0)
        if record.total_tokens >= 0:
            put_number(&out, b',"total_tokens":', record.total_tokens)
        put_number(&out, b',"due":', due - start_ns)
        put_optional(&out, b',"ready":', record.ready - due, record.ready != 0)
        put_optional(&out, b',"sent":', record.sent - due, record.sent != 0)
        put_optional(&out, b',"written":', record.written - due, record.written != 0)
        put_number(&out, b',"connect":', record.connect_ns)
        put_optional(&out, b',"first_byte":', record.first_byte - due, record.first_byte != 0)
        put_optional(&out, b',"first_token":', record.first_token - due, record.first_token != 0)
        put_optional(&out, b',"first_answer":', record.first_answer - due, record.first_answer != 0)
        put_optional(&out, b',"last_token":', record.last_token - due, record.last_token != 0)
        put_optional(&out, b',"closed":', record.closed - due, record.closed != 0)
        put_bool(&out, b',"reused":', record.reused)
        put_bool(&out, b',"window_filled":', record.window_filled)
        put_number(&out, b',"reads":', record.reads)
        put_number(&out, b',"content_events":', record.content_events)
        put_number(&out, b',"reasoning_events":', record.reasoning_events)
        put_number(&out, b',"other_events":', record.other_events)
        put_number(&out, b',"nan_events":', record.nan_events)
        put_number(&out, b',"counted_by":', record.counted_by)
        if record.done_seen:
            put_number(&out, b',"done":', 1)
        if record.unread is not None:
            put_object(&out, b',"unread":', record.unread)
        if record.is_whole:
            put_number(&out, b',"whole":', 1)
        if record.results >= 0:
            put_number(&out, b',"results":', record.results)
        if record.end_after_tokens:
            put_number(&out, b',"disconnect_tokens":', record.end_after_tokens)
        if record.end_after_ns >= 0:
            put_number(&out, b',"disconnect_after":', record.end_after_ns)
        if record.times.by:
            put_object(&out, b',"server_times":', record.server_times)
        put_network(&out, record)
        if record.attempts > 1:
            put_attempts(&out, record)
        put_events(&out, record)
        if answer:
            put_object(&out, b',"answer":', record.generated_text)
        append_bytes(&out, b"}\n", 2)
        return out.data[:out.size]
    finally:
        free_buffer(&out)
