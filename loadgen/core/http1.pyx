# cython: language_level=3
"""Response: the bytes of an HTTP/1.1 response in, stamps and an Outcome out, without I/O.

It gets what a socket gave and when, in slices of any size, and fills one Record. It removes the
framing; an SseReader reads the stream inside. A body that is compressed fails.

Budget per read: one comparison with the size limit, and for each chunk one memchr and a parsed
size; no Python object.
"""
from libc.stdint cimport int64_t
from libc.string cimport memchr
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

from loadgen.core.answer cimport COMPLETE, FINISHED, Finish
from loadgen.core.c.events cimport USER
from loadgen.core.c.memory cimport (
    BYTES, COUNTING, RESPONSES, append_bytes, count_objects, free_buffer, live_count,
)
from loadgen.core.c.http_head cimport (
    clear_head, find_head_end, is_success, parse_chunk_size, parse_head,
)
from loadgen.core.dialect_scan cimport DialectScanner
from loadgen.core.record cimport Record
from loadgen.core.sse cimport SseReader

from loadgen.core import reference_parser, server_times
from loadgen.core.finish_reasons import ENDS, is_failed_answer
from loadgen.core.outcome import BROKEN_AFTER_END, NO_FINISH_REASON, Outcome
from loadgen.core.sse import MAX_LINE, MAX_SAMPLE
from loadgen.util.number_format import plural

MAX_HEAD = 64 * 1024
MAX_RESPONSE = 1 << 30
MAX_EVENTS = 1 << 18  # of an answer, and EVENTS_PER_TOKEN more for each token that was asked for
EVENTS_PER_TOKEN = 16
CUT_OFF = "connection closed mid-stream"
COMPRESSED = "the body is compressed (Content-Encoding), and --transport aiohttp alone reads it"
cdef Py_ssize_t max_head = MAX_HEAD, max_line = MAX_LINE, max_sample = MAX_SAMPLE
cdef int64_t max_response = MAX_RESPONSE, max_events = MAX_EVENTS
cdef int64_t events_per_token = EVENTS_PER_TOKEN
cdef tuple ANSWERED = (Outcome.OK, None)  # the outcome of most, and its detail
cdef frozenset ends = ENDS


def live():
    """Return the number of this module's live objects and their bytes; None unless it is a debug
    build.
    """
    return {"responses": live_count(RESPONSES), "bytes": live_count(BYTES)} if COUNTING else None


cdef class Response:
    """Reads one response at a time into a Record.

    Args:
        scanner: Reads the events of an API with a dialect of its own; None: they are those of chat.

    Attributes:
        record: What it writes to; None before the first request.
        complete: Whether the response has ended and the record has its outcome.
        keep_alive: Whether the connection may carry another request.
        keep_alive_ns: For how long it may be idle, if the server says so; else 0.
    """

    def __cinit__(self):
        self.events = SseReader()
        clear_head(&self.head)
        count_objects(RESPONSES, 1)

    def __init__(self, DialectScanner scanner=None):
        self.events.scanner = scanner

    def __dealloc__(self):
        count_objects(RESPONSES, -1)
        free_buffer(&self.undecoded)
        free_buffer(&self.body)

    cpdef int begin(self, Record record) except -1:
        """Expect the response to a request just sent, to be written into `record`."""
        self.record, self.complete = record, False
        self.events.begin(record)
        self.received = 0
        self.max_events = max_events + events_per_token * max(record.output_tokens, 0)
        self.free_events = 0 if record.end_after_tokens else self.max_events
        self.phase = HEAD
        self._clear_head()
        self.undecoded.size = self.body.size = 0
        return 0

    def feed(self, bytes data not None, int64_t at_ns):
        """Read the next bytes of the connection, which arrived at `at_ns`."""
        self.feed_raw(PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data), at_ns)

    def feed_unstamped(
        self, bytes data, int64_t earliest_ns, int64_t read_ns, str error=None
    ):
        """Read the next bytes of the connection, which have no stamp of the kernel.

        Args:
            data: The bytes; None: it has ended, as by `eof`.
            earliest_ns: When they can have come at the earliest.
            read_ns: When they were read.
            error: As of `eof`.
        """
        cdef Record record = self.record
        record.events_before = record.events
        if data is None:
            self.eof(read_ns, error)
        else:
            self.feed(data, read_ns)
        if record.events > record.events_before:
            record.set_source(record.events_before, USER)
            record.set_earliest(record.events_before, record.events, earliest_ns)

    def eof(self, int64_t at_ns, str error=None):
        """End the response with its connection.

        Args:
            at_ns: When it ended.
            error: What reset the connection; None: it was closed.
        """
        self.at_ns = at_ns
        self.keep_alive = False
        if error is None and self.phase == UNTIL_CLOSE:
            self._end()
        elif self.phase == HEAD and self.undecoded.size == 0 and self.record.first_byte == 0:
            self._fail(Outcome.REFUSED, error or "connection closed without a response")
        elif self.phase == HEAD:
            self._fail(Outcome.PROTOCOL_ERROR, "connection closed inside the response head")
        elif self.phase != IDLE and self.phase != ENDED:
            self._fail(Outcome.TRUNCATED, error or CUT_OFF)

    def abandon(self, outcome, detail, int64_t at_ns):
        """End the response from the client's side: a timeout, an interrupt. If its answer is
        complete, that is the outcome.
        """
        self.at_ns = at_ns
        self.keep_alive = False
        if self._has_answer(FINISHED):
            self._end_answer()
        elif self.phase != IDLE and self.phase != ENDED:
            self._fail(outcome, detail)

    cdef bint _has_answer(self, Finish least) except -1:
        """Whether a response is open and at least this much of the end of its answer has come."""
        return (
            self.phase != IDLE and self.phase != ENDED and self.record.finish >= least
            and is_success(self.record.status)
        )

    cdef int _end_answer(self) except -1:
        """End a response that is still open with its answer, which is complete."""
        self.events.forget_rest()
        return self._end()

    cdef int feed_raw(self, const char *p, Py_ssize_t n, int64_t at_ns) except -1:
        """Read the next n bytes of the connection, which arrived at `at_ns`."""
        cdef Py_ssize_t k
        cdef const char *lf
        self.at_ns = at_ns
        if n > 0 and self.phase == HEAD and self.record.first_byte == 0:
            self.record.first_byte = at_ns
        self.received += n
        if self.received > max_response and self.phase != IDLE and self.phase != ENDED:
            return self._fail(Outcome.PROTOCOL_ERROR,
                              f"the response is larger than {max_response >> 20} MiB")
        while n > 0:
            if self.phase == CHUNK or self.phase == LENGTH:
                assert self.body_left > 0
                k = min(n, self.body_left)
                self.body_left -= k
                self._read_body(p, k)
                p += k
                n -= k
                if self.body_left == 0 and self.phase == CHUNK:
                    self.phase = CHUNK_END
                elif self.body_left == 0 and self.phase == LENGTH:
                    self._end()
            elif self.phase == CHUNK_SIZE or self.phase == CHUNK_END or self.phase == TRAILER:
                lf = <const char *>memchr(p, b"\n", n)
                k = n if lf == NULL else lf + 1 - p
                if self.undecoded.size + k > max_head:
                    return self._fail(Outcome.PROTOCOL_ERROR, "chunk header too long")
                if self.phase != CHUNK_END:
                    self.events.tail += k
                if lf != NULL and self.undecoded.size == 0:
                    self._read_chunk_line(p, k)
                else:
                    append_bytes(&self.undecoded, p, k)
                    if lf != NULL:
                        self._read_chunk_line(self.undecoded.data, self.undecoded.size)
                p += k
                n -= k
            elif self.phase == HEAD:
                k = self._read_head(p, n)
                p += k
                n -= k
            elif self.phase == UNTIL_CLOSE:
                self._read_body(p, n)
                return 0
            else:  # bytes that no request asked for: this connection cannot be trusted with another
                self.keep_alive = False
                return 0
        return 0

    cdef int _clear_head(self) except -1:
        clear_head(&self.head)
        self.keep_alive, self.keep_alive_ns = True, 0
        self.body_left = -1
        self.is_stream = True
        return 0

    cdef Py_ssize_t _read_head(self, const char *p, Py_ssize_t n) except -1:
        """Collect the head, and read it once it is whole; return how many of the n bytes it
        took.
        """
        cdef Py_ssize_t before = self.undecoded.size, searched = max(0, before - 2), size
        cdef const char *head
        cdef const char *end
        cdef const char *wrong
        append_bytes(&self.undecoded, p, n)
        head = self.undecoded.data
        end = find_head_end(head + searched, head + self.undecoded.size)
        size = self.undecoded.size
        if end != NULL:
            size = end + (2 if end[1] == b"\n" else 3) - head
        if size > max_head:
            self._fail(Outcome.PROTOCOL_ERROR, "response head too long")
            return n
        if end == NULL:
            return n
        wrong = parse_head(self.undecoded.data, end, &self.head)
        self.keep_alive, self.keep_alive_ns = self.head.keep_alive, self.head.keep_alive_ns
        if wrong != NULL:
            self._fail(Outcome.PROTOCOL_ERROR, wrong.decode())
            return n
        if self.head.status < 200:  # an interim response: the real one follows
            self.undecoded.size = 0
            self._clear_head()
            return size - before
        self.record.status = self.head.status
        if self.head.status >= 400:
            self.record.retry_after = _retry_after(self.undecoded.data[:end - self.undecoded.data])
        if self.head.may_say_times:
            times = server_times.in_head(self.undecoded.data[:end - self.undecoded.data])
            if times is not None:
                self.record.add_times(times)
        if self.record.keeps_head:
            self.record.response_head = self.undecoded.data[:end - self.undecoded.data]
        self._start_body()
        return size - before

    cdef int _start_body(self) except -1:
        """Choose how the body is read, by the head."""
        self.is_stream = not self.head.is_json and not self._in_one_piece()
        self.body_left = self.head.content_length
        cdef bint is_empty = self.body_left == 0 and not self.head.is_chunked
        if self.head.status == 204 or self.head.status == 304 or is_empty:
            self.undecoded.size = 0
            return self._end()
        self.undecoded.size = 0
        if self.head.is_encoded:
            self.keep_alive = False
            is_status = not is_success(self.head.status)
            return self._end(Outcome.STATUS if is_status else Outcome.PROTOCOL_ERROR, COMPRESSED)
        if self.head.is_chunked:
            self.phase = CHUNK_SIZE
        elif self.body_left > 0:
            self.phase = LENGTH
        else:
            self.phase = UNTIL_CLOSE
            self.keep_alive = False
        return 0

    cdef int _read_chunk_line(self, const char *p, Py_ssize_t n) except -1:
        """Read the n bytes of a line before or after a chunk, or of a field after the last one."""
        cdef const char *wrong
        n -= 1
        if n > 0 and p[n - 1] == b"\r":
            n -= 1
        self.undecoded.size = 0
        if self.phase == TRAILER:
            return self._end() if n == 0 else 0
        if self.phase == CHUNK_END:
            if n > 0:
                return self._fail(Outcome.PROTOCOL_ERROR, "a chunk is longer than its size")
            self.phase = CHUNK_SIZE
            return 0
        wrong = parse_chunk_size(p, n, &self.body_left)
        if wrong != NULL:
            return self._fail(Outcome.PROTOCOL_ERROR, wrong.decode())
        self.phase = CHUNK if self.body_left > 0 else TRAILER
        return 0

    cdef int _read_body(self, const char *p, Py_ssize_t n) except -1:
        """Read n bytes of the body, without framing: a stream, or what is kept of anything else."""
        if self.phase == ENDED:
            return 0
        if not is_success(self.record.status):
            return append_bytes(&self.body, p, min(n, max_sample - self.body.size))
        if not self.is_stream:
            if self.body.size == 0 and not self._in_one_piece():
                while n > 0 and (p[0] == b"\n" or p[0] == b"\r"):
                    p += 1
                    n -= 1
                # Gateways label a stream as JSON. None of the fields that may begin one begins a
                # JSON value.
                self.is_stream = n > 0 and memchr(b"deir:", p[0], 5) != NULL
        if self.is_stream:
            return self._read_events(p, n)
        if self.record.results < 0 and self.body.size + n > max_line:
            return self._fail(Outcome.PROTOCOL_ERROR, "a JSON body without end")
        return append_bytes(&self.body, p, n)

    cdef int _read_events(self, const char *p, Py_ssize_t n) except -1:
        """Read n bytes of a stream."""
        self.events.feed(p, n, self.at_ns)
        if self.events.failed:
            return self._fail(self.events.outcome, self.events.detail)
        if self.record.events > self.free_events:
            return self._limit_events()
        return 0

    cdef int _limit_events(self) except -1:
        """End a stream of too many events, or of the tokens after which the client itself ends
        it unless its answer is whole.
        """
        cdef Record record = self.record
        if record.events > self.max_events:
            return self._fail(Outcome.PROTOCOL_ERROR, f"more than {self.max_events} events")
        if record.counted >= record.end_after_tokens and record.finish_reason is None:
            outcome, detail = record.ends_as
            return self._fail(outcome, f"{detail} after {plural(record.counted, 'token')}")
        return 0

    cdef int _end(self, object outcome=None, object detail=None) except -1:
        """End the response and its record: with this failure, or with the outcome that its body
        shows.
        """
        cdef Record record = self.record
        cdef Py_ssize_t events = record.events
        if COUNTING and self.complete:  # an assert would leave unused variables
            raise AssertionError("each response has one end")
        if outcome is None and not is_success(record.status):
            outcome, detail = Outcome.STATUS, ""
            if self.body.size:
                detail = self.body.data[:self.body.size].decode("utf-8", "replace")
        elif outcome is None and record.results >= 0:
            self.events.read_results(self.body.data, self.body.size, self.at_ns)
            outcome, detail = self.events.outcome or Outcome.OK, self.events.detail
        elif outcome is None and not self.is_stream and self.body.size and not record.is_whole:
            outcome, detail = _json_outcome(self.body.data[:self.body.size])
            self.keep_alive = False
        elif outcome is None:
            if record.is_whole:
                body = self.body.data[:self.body.size] if self.body.size else b""
                self.events.read_whole(body, self.at_ns)
            else:
                self.events.finish(self.at_ns)
            if self.events.failed:
                outcome, detail = self.events.outcome, self.events.detail
                self.keep_alive = False
            else:
                outcome, detail = self._read_outcome()
        self.phase = ENDED
        self.complete = True
        record.end(outcome, detail, self.at_ns)
        if record.events < events:  # an event that proved to bear no token came behind the last
            self.events.tail += 1
        return 0

    cdef tuple _read_outcome(self):
        """Return the outcome and its detail of an answer that has ended without an error."""
        cdef Record record = self.record
        record.settle()
        reason = record.finish_reason
        if reason not in ends and is_failed_answer(reason, record.events > 0):
            return Outcome.STREAM_ERROR, f"the finish reason is {reason}"
        if record.events == 0:
            return Outcome.EMPTY, "the response has no token" + self.events.quote()
        if reason is None and not record.done_seen:
            return Outcome.TRUNCATED, NO_FINISH_REASON + self.events.quote()
        return ANSWERED

    cdef bint _in_one_piece(self) except -1:
        """Return whether no stream was asked for."""
        return self.record.results >= 0 or self.record.is_whole

    cdef int _fail(self, object outcome, object detail) except -1:
        """End the response with a failure; a status of a failure remains the outcome."""
        self.keep_alive = False
        if self._has_answer(COMPLETE) and not self.events.failed:
            self._end_answer()
            if self.record.detail is None:  # tools that wait for the end of a body fail it
                self.record.detail = BROKEN_AFTER_END
            return 0
        if self.record.status > 0 and not is_success(self.record.status) and self.phase != HEAD:
            return self._end()
        return self._end(outcome, detail)


def _retry_after(bytes head):
    """Return the value of Retry-After in a response head, or None."""
    for line in head.split(b"\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"retry-after":
            return value.strip().decode("latin-1")
    return None


def _json_outcome(bytes body):
    """Return the outcome and detail of a JSON body where a stream was asked for: an error, or
    tokens without times.
    """
    try:
        error = reference_parser.parse(body).error
    except ValueError:
        error = None
    if error is not None:
        return Outcome.STREAM_ERROR, error[:max_sample]
    return Outcome.PROTOCOL_ERROR, "answered in one piece although a stream was asked"
