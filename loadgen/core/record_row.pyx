# cython: language_level=3
"""A record as a row of a journal: its numbers as they are, the arrays of its events, its texts.

A row is `Head`, `Fields`, the arrays that the record has (stamps, earliest times, times of reading,
tokens), its runs of events, those that it has of the server's times, the opening of its connection
and what TCP saw, and a JSON array of its texts. Numbers are int64 of the machine; TCP's are int32.
"""
from libc.stdint cimport int64_t
from libc.string cimport memcpy
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

from loadgen.core.c.events cimport EventRun
from loadgen.core.c.network cimport UNKNOWN, Opening, TcpFacts
from loadgen.core.c.server_times cimport ServerTimes
from loadgen.core.c.memory cimport BYTES, COUNTING, Buffer, append_bytes, free_buffer, live_count
from loadgen.core.event_flags cimport TOKENS
from loadgen.core.record cimport Record
from loadgen.util.method cimport method_of

from array import array

import orjson

from loadgen.core.outcome import Outcome
from loadgen.core.server_times import BY

cdef enum:
    FULL = 1 << 16  # bytes that are handed to the system at once
    STAMPS = 0  # these are in every row
    EARLIEST = 1  # in Head.arrays
    READS = 2
    TOKENS_OF_EVENTS = 4
    SERVER_TIMES = 8
    OPENING = 16
    TCP = 32
    NOT_ALL = -1  # in Head.runs: some events are not listed


cdef struct Head:
    int64_t size  # of the row, in bytes
    int64_t events
    int64_t runs  # or NOT_ALL
    int64_t arrays  # which arrays follow the stamps, and what follows the runs


cdef struct Fields:
    # CLOCK_MONOTONIC ns, 0 if it did not happen; `first_closed` is the last of these.
    int64_t due, ready, sent, written, first_byte, first_token, first_answer
    int64_t first_answer_earliest, last_token, closed, first_sent, first_closed
    # As planned.
    int64_t index, target, class_number, turn, input_tokens, output_tokens, server_tokens
    int64_t end_after_tokens, end_after_ns
    # As measured.
    int64_t prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens, total_tokens
    int64_t content_events, reasoning_events, other_events, nan_events, reads
    int64_t user_stamped, reordered, counted_by, results, is_whole, done_seen
    # How it was delivered.
    int64_t status, attempts, retried_ns, first_status, connect_ns, reused, window_filled


cdef Fields no_fields
cdef object dumps = orjson.dumps
FIELDS = tuple(no_fields)  # their names, in the order of a row
TIMES = FIELDS[:FIELDS.index("first_closed") + 1]
SIZE_BYTES = sizeof(int64_t)  # a row begins with its size in so many bytes
ARRAYS = (STAMPS, EARLIEST, READS, TOKENS_OF_EVENTS)  # in the order of a row
HEAD = sizeof(Head) // sizeof(int64_t)
RUN = sizeof(EventRun) // sizeof(int64_t)


def live():
    """Return the bytes that this module has allocated; None unless it is a debug build."""
    return {"bytes": live_count(BYTES)} if COUNTING else None


cdef class RowWriter:
    """Writes the row of each record that ends; the file never grows beyond `limit` bytes.

    Args:
        file: Open for writing bytes.
        limit: Its maximum size, bytes.

    Attributes:
        sources: The source of each prompt, which rows name; empty: they name none.
        keeps_answers: Whether rows have the texts of answers.
        error: Why nothing more is written, or None: a full disk does not end the run.
    """

    cdef object file
    cdef Buffer rows  # not yet handed to the system
    cdef double left
    cdef tuple last_texts  # of the record before
    cdef bytes last_json  # the same as JSON
    cdef public list sources
    cdef public bint keeps_answers
    cdef public object error

    def __init__(self, file, double limit=float("inf")):
        self.file, self.left, self.sources = file, limit, []

    def __dealloc__(self):
        free_buffer(&self.rows)

    @property
    def write(self):
        """Writes the row of a request that has ended."""
        return method_of(self, write_row)

    cdef int _write(self, Record record) except -1:
        cdef Py_ssize_t begin = self.rows.size
        if self.error is None:
            put_row(&self.rows, record, self._texts(record))
            self._take(begin)
        return 0

    def append(self, bytes data not None):
        """Write what is no row."""
        cdef Py_ssize_t begin = self.rows.size
        if self.error is None:
            append_bytes(&self.rows, PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
            self._take(begin)

    def flush(self):
        """Hand all rows to the system: from then on they outlive this process."""
        try:
            if self.rows.size:
                self.file.write(self.rows.data[:self.rows.size])
            self.file.flush()
        except OSError as error:
            self._failed(error)
        self.rows.size = 0

    def close(self):
        """Hand all rows to the system, and close the file."""
        if not self.file.closed:
            self.flush()
        try:
            self.file.close()
        except OSError as error:
            self._failed(error)

    cdef _take(self, Py_ssize_t begin):
        """Keep what was appended from `begin` on, if it is within the limit."""
        self.left -= self.rows.size - begin
        if self.left < 0:
            self.error = "the file has reached its limit"
            self.rows.size = begin
        elif self.rows.size >= FULL:
            self.flush()

    cdef _failed(self, error):
        self.error = self.error or error.strerror or str(error)

    cdef bytes _texts(self, Record record):
        source = self.sources[record.index % len(self.sources)] if self.sources else None
        cdef tuple last = self.last_texts
        if not (  # those of most records are the same
            last is not None and not self.keeps_answers and last[0] is source
            and last[1] is record.outcome and last[2] is record.detail
            and last[3] is record.finish_reason and last[4] is record.matched_stop
            and last[5] is record.unread
        ):
            self.last_texts = last = (
                source, record.outcome, record.detail, record.finish_reason,
                record.matched_stop, record.unread,
                record.generated_text if self.keeps_answers else None,
            )
            self.last_json = dumps((*last[:2], last[2] or None, *last[3:]))
        return self.last_json


cdef int write_row(object target, object record) except -1:
    """Have the row of a request written that has ended."""
    return (<RowWriter>target)._write(<Record?>record)


cdef int put_row(Buffer *out, Record record, bytes texts) except -1:
    cdef Py_ssize_t begin = out.size, array_bytes = record.events * sizeof(int64_t)
    cdef Head head = Head(0, record.events, NOT_ALL if record.runs.is_cut else record.runs.count, 0)
    cdef Fields fields = Fields(
        due=record.due, ready=record.ready, sent=record.sent, written=record.written,
        first_byte=record.first_byte, first_token=record.first_token,
        first_answer=record.first_answer, first_answer_earliest=record.first_answer_earliest,
        last_token=record.last_token, closed=record.closed, first_sent=record.first_sent,
        first_closed=record.first_closed,
        index=record.index, target=record.target, class_number=record.class_number,
        turn=record.turn, input_tokens=record.input_tokens, output_tokens=record.output_tokens,
        server_tokens=record.server_tokens, end_after_tokens=record.end_after_tokens,
        end_after_ns=record.end_after_ns,
        prompt_tokens=record.prompt_tokens, completion_tokens=record.completion_tokens,
        cached_tokens=record.cached_tokens, reasoning_tokens=record.reasoning_tokens,
        total_tokens=record.total_tokens, content_events=record.content_events,
        reasoning_events=record.reasoning_events, other_events=record.other_events,
        nan_events=record.nan_events, reads=record.reads, user_stamped=record.user_stamped,
        reordered=record.reordered, counted_by=record.counted_by, results=record.results,
        is_whole=record.is_whole, done_seen=record.done_seen,
        status=record.status, attempts=record.attempts, retried_ns=record.retried_ns,
        first_status=record.first_status, connect_ns=record.connect_ns, reused=record.reused,
        window_filled=record.window_filled,
    )
    append_bytes(out, <char *>&head, sizeof(Head))
    append_bytes(out, <char *>&fields, sizeof(Fields))
    append_bytes(out, <char *>record.arrays.stamps_ns, array_bytes)
    if record.arrays.earliest_ns != NULL:
        head.arrays |= EARLIEST
        append_bytes(out, <char *>record.arrays.earliest_ns, array_bytes)
    if record.arrays.reads_ns != NULL:
        head.arrays |= READS
        append_bytes(out, <char *>record.arrays.reads_ns, array_bytes)
    if record.arrays.tokens != NULL:
        head.arrays |= TOKENS_OF_EVENTS
        append_bytes(out, <char *>record.arrays.tokens, array_bytes)
    if head.runs > 0:
        append_bytes(out, <char *>record.runs.list, head.runs * sizeof(EventRun))
    if record.times.by:
        head.arrays |= SERVER_TIMES
        append_bytes(out, <char *>&record.times, sizeof(ServerTimes))
    if record.opening.tcp_ns != UNKNOWN:
        head.arrays |= OPENING
        append_bytes(out, <char *>&record.opening, sizeof(Opening))
    if record.tcp.rtt_us != UNKNOWN:
        head.arrays |= TCP
        append_bytes(out, <char *>&record.tcp, sizeof(TcpFacts))
    append_bytes(out, PyBytes_AS_STRING(texts), PyBytes_GET_SIZE(texts))
    head.size = out.size - begin
    memcpy(out.data + begin, &head, sizeof(Head))
    return 0


cdef Py_ssize_t restore_facts(Record record, bytes row, int64_t present, Py_ssize_t at) except -1:
    """Take what stands behind the runs of a row, from byte `at` on; return where it ends."""
    cdef const char *p = PyBytes_AS_STRING(row)
    cdef Py_ssize_t size = 0
    if present & SERVER_TIMES:
        size += sizeof(ServerTimes)
    if present & OPENING:
        size += sizeof(Opening)
    if present & TCP:
        size += sizeof(TcpFacts)
    if at + size > PyBytes_GET_SIZE(row):
        raise ValueError("a row is longer")
    if present & SERVER_TIMES:
        memcpy(&record.times, p + at, sizeof(ServerTimes))
        if not 0 < record.times.by <= len(BY):
            raise ValueError("no row has such times")
        at += sizeof(ServerTimes)
    if present & OPENING:
        memcpy(&record.opening, p + at, sizeof(Opening))
        at += sizeof(Opening)
    if present & TCP:
        memcpy(&record.tcp, p + at, sizeof(TcpFacts))
        at += sizeof(TcpFacts)
    return at


def record_from_row(bytes row not None, int64_t later_ns=0):
    """Make a Record from its row.

    Args:
        row: The whole row.
        later_ns: By how much its times are moved, ns: clocks of machines differ.

    Raises:
        IndexError, OverflowError, TypeError, ValueError: It is no row.
    """
    cdef Py_ssize_t begin = HEAD + len(FIELDS), i, events, runs
    numbers = array("q", row[:len(row) // SIZE_BYTES * SIZE_BYTES])
    if len(numbers) < begin:
        raise ValueError("a row is longer")
    events, runs, arrays = numbers[1], numbers[2], numbers[3]
    if not 0 <= events <= len(numbers) or not NOT_ALL <= runs <= len(numbers):
        raise ValueError("no row has such counts")
    record = Record()
    for name, value in zip(FIELDS, numbers[HEAD:begin].tolist()):
        setattr(record, name, value)
    for name in TIMES if later_ns else ():
        at_ns = getattr(record, name)
        setattr(record, name, at_ns + later_ns if at_ns else 0)
    columns = {}
    for kind in ARRAYS:
        columns[kind] = None
        if kind == STAMPS or arrays & kind:
            columns[kind] = numbers[begin:begin + events].tolist()
            begin += events
    stamps, earliest, reads = columns[STAMPS], columns[EARLIEST], columns[READS]
    stream = None
    if runs >= 0:
        stream = []
        for i in range(begin, begin + RUN * runs, RUN):
            flags, at_ns = numbers[i], numbers[i + 2] + later_ns
            stream.append((flags, numbers[i + 1] if flags & TOKENS else at_ns))
        begin += RUN * runs
    begin = restore_facts(record, row, arrays, begin * SIZE_BYTES)
    source, outcome, detail, finish_reason, matched_stop, unread, answer = orjson.loads(
        row[begin:]
    )
    record.source, record.outcome, record.detail = source, Outcome(outcome), detail
    record.finish_reason, record.matched_stop = finish_reason, matched_stop
    record.unread = unread and {name: tuple(facts) for name, facts in unread.items()}
    record.restore(
        [at_ns + later_ns for at_ns in stamps],
        columns[TOKENS_OF_EVENTS],
        stream,
        answer or "",
        None if earliest is None else [(i, at_ns + later_ns) for i, at_ns in enumerate(earliest)],
        None if reads is None else [read_ns - at_ns for read_ns, at_ns in zip(reads, stamps)],
    )
    return record
