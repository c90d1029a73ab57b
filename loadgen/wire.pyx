# cython: language_level=3
"""The wire: HTTP/1.1 responses and server-sent events in, stamps and an Outcome out.

`Response` is a bytes-in seam without I/O: it is fed what a socket gave and when, in any slices, and fills
one `Record`. `Connection` is the same thing as an asyncio protocol, which takes the stamp as the first
thing it does with the bytes.
"""
from libc.stdint cimport int64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memchr, memcmp, memcpy
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from loadgen.clock cimport now_ns
from loadgen.histogram cimport Histogram
from loadgen.live cimport BYTES, COUNTED, RECORDS, RESPONSES, allocated, count, freed, living
from loadgen.scan cimport CONTENT, REASONING, Delta, scan_event

import json

from loadgen import deltas
from loadgen.outcomes import Outcome

cdef extern from "strings.h" nogil:
    int strncasecmp(const char *, const char *, size_t)

cdef extern from "string.h" nogil:
    void *memmem(const void *, size_t, const void *, size_t)

MAX_HEAD = 64 * 1024
MAX_LINE = 64 * 1024 * 1024
MAX_SAMPLE = 1024
MAX_RESPONSE = 1 << 30
NEVER = (1 << 63) - 1
cdef Py_ssize_t max_head = MAX_HEAD, max_line = MAX_LINE, max_sample = MAX_SAMPLE
cdef int64_t max_chunk = 1 << 40, max_response = MAX_RESPONSE

cdef enum Phase:
    IDLE          # no request under way
    HEAD          # status line and headers
    LENGTH        # a body of known length
    UNTIL_CLOSE   # a body that ends with the connection
    CHUNK_SIZE    # the line before a chunk
    CHUNK         # inside a chunk
    CHUNK_END     # the line end after a chunk
    TRAILER       # header lines after the last chunk
    READER        # aiohttp's reader has taken over
    ENDED


cdef inline int append(Bytes *to, const char *p, Py_ssize_t n) except -1:
    cdef char *grown
    cdef Py_ssize_t room
    if n == 0:  # to.data and p may be NULL, which memcpy must not be given
        return 0
    if to.size + n > to.room:
        room = max(to.size + n, 2 * to.room, 256)
        freed(to.data)
        grown = <char *>realloc(to.data, room)
        if grown == NULL:
            raise MemoryError()
        allocated(grown)
        to.data, to.room = grown, room
    memcpy(to.data + to.size, p, n)
    to.size += n
    return 0


cdef inline void dispose(Bytes *of) noexcept:
    freed(of.data)
    free(of.data)


cdef inline bint is_name(const char *p, Py_ssize_t n, const char *name, Py_ssize_t name_len) noexcept nogil:
    return n == name_len and strncasecmp(p, name, n) == 0


cdef inline bint is_space(char c) noexcept nogil:
    return c == b" " or c == b"\t"


cdef inline bint is_blank(char c) noexcept nogil:
    """A space in a head, also in the place of what must not be there (RFC 9110, section 5.5)."""
    return is_space(c) or c == b"\r" or c == b"\n" or c == 0


cdef inline const char *line_end(const char *p, const char *end) noexcept nogil:
    """The end of a line of the head that ends at `end`; one that starts with a space belongs to the line before it."""
    while True:
        p = <const char *>memmem(p, end + 2 - p, b"\r\n", 2)
        if p == end or not is_space(p[2]):
            return p
        p += 2


cdef inline bint lists(const char *p, Py_ssize_t n, const char *word, Py_ssize_t word_len) noexcept nogil:
    """Whether one of the items between commas is `word`."""
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
        if is_name(p, n, word, word_len):
            return True
        p = last + 1
    return False


cdef inline bint mentions(const char *p, Py_ssize_t n, const char *word, Py_ssize_t word_len) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n - word_len + 1):
        if strncasecmp(p + i, word, word_len) == 0:
            return True
    return False


include "record.pxi"


def live():
    """What lives now of this module's objects: how many of each, and their bytes; None unless it is a debug build."""
    if not COUNTED:
        return None
    return {"records": living(RECORDS), "responses": living(RESPONSES), "bytes": living(BYTES)}


cdef class Response:
    """Reads one response at a time into a Record.

    complete: the response has ended and the record has its outcome. keep_alive: the connection may carry
    another request, for `keep_alive_ns` from now where the server said so (0: it did not). wants_reader: the
    body is encoded in a way that is left to aiohttp's reader; feed it the bytes of `raw()`.
    """

    def __cinit__(self):
        count(RESPONSES, 1)

    def __dealloc__(self):
        count(RESPONSES, -1)
        dispose(&self.head)
        dispose(&self.line)
        dispose(&self.event)
        dispose(&self.body)

    def begin(self, Record record not None):
        """Expect the response to a request just sent, to be told in `record`."""
        self.record, self.received, self.at_end = record, 0, False
        self.phase = HEAD
        self.complete = self.skip_lf = self.has_data = False
        self.first_line = True
        self._forget_headers()
        self.head.size = self.line.size = self.event.size = self.body.size = 0

    cdef int _forget_headers(self) except -1:
        self.streamed = self.keep_alive = True
        self.wants_reader = self.chunked = self.closes = self.encoded_transfer = False
        self.keep_alive_ns = 0
        self.left = -1
        return 0

    def feed(self, bytes data not None, int64_t at_ns):
        """Take the next bytes of the connection, which arrived at `at_ns`."""
        self.feed_raw(PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data), at_ns)

    def feed_body(self, bytes data not None, int64_t at_ns):
        """Take the next bytes of a body whose framing and encoding aiohttp's reader has undone."""
        self.at_ns = at_ns
        if self._fits(PyBytes_GET_SIZE(data)):
            self._body(PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))

    def raw(self):
        """All bytes of a response that `wants_reader`, as they came."""
        return self.head.data[:self.head.size]

    def eof(self, int64_t at_ns, str error=None):
        """The connection has ended (`error`: by a reset), or aiohttp's reader has come to the end of the body."""
        self.at_ns = at_ns
        self.keep_alive = False
        if error is None and (self.phase == UNTIL_CLOSE or self.phase == READER):
            self._end()
        elif self.phase == HEAD and self.head.size == 0 and self.record.first_byte == 0:
            self._fail(Outcome.REFUSED, error or "connection closed before any byte of a response")
        elif self.phase == HEAD:
            self._fail(Outcome.PROTOCOL_ERROR, "connection closed inside the response head")
        elif self.phase != IDLE and self.phase != ENDED:
            self._fail(Outcome.TRUNCATED, error or "connection closed inside the stream")

    def abandon(self, outcome, detail, int64_t at_ns):
        """End the response from our side (a timeout, an interrupt)."""
        self.at_ns = at_ns
        self.keep_alive = False
        if self.phase != IDLE and self.phase != ENDED:
            self._fail(outcome, detail)

    cdef int feed_raw(self, const char *p, Py_ssize_t n, int64_t at_ns) except -1:
        cdef Py_ssize_t k
        cdef const char *q
        self.at_ns = at_ns
        if n > 0 and self.phase == HEAD and self.record.first_byte == 0:
            self.record.first_byte = at_ns
        if not self._fits(n):
            return 0
        while n > 0:
            if self.phase == CHUNK or self.phase == LENGTH:
                assert self.left > 0
                k = min(n, self.left)
                self.left -= k
                self._body(p, k)
                p += k
                n -= k
                if self.left == 0 and self.phase == CHUNK:
                    self.phase = CHUNK_END
                elif self.left == 0 and self.phase == LENGTH:
                    self._end()
            elif self.phase == CHUNK_SIZE or self.phase == CHUNK_END or self.phase == TRAILER:
                q = <const char *>memchr(p, b"\n", n)
                k = n if q == NULL else q + 1 - p
                if self.head.size + k > max_head:
                    return self._fail(Outcome.PROTOCOL_ERROR, "chunk header too long")
                append(&self.head, p, k)
                p += k
                n -= k
                if q != NULL:
                    self._chunk_line()
            elif self.phase == HEAD:
                k = self._head(p, n)
                p += k
                n -= k
            elif self.phase == UNTIL_CLOSE:
                self._body(p, n)
                return 0
            elif self.phase == READER:
                append(&self.head, p, n)
                return 0
            else:  # bytes that no request asked for: this connection cannot be trusted with another
                self.keep_alive = False
                return 0
        return 0

    cdef bint _fits(self, Py_ssize_t n) except -1:
        """Count n further bytes of a response, whatever they are; one without end fails."""
        self.received += n
        if self.received > max_response and self.phase != IDLE and self.phase != ENDED:
            self._fail(Outcome.PROTOCOL_ERROR, f"the response is larger than {max_response >> 20} MiB")
            return False
        return True

    cdef int _head(self, const char *p, Py_ssize_t n) except -1:
        """Collect the head; once it is whole, read it. Returns how many of the n bytes it took."""
        cdef Py_ssize_t before = self.head.size, seen = max(0, before - 3)
        cdef const char *end
        cdef const char *line
        cdef const char *eol
        cdef const char *colon
        cdef const char *value
        cdef const char *value_end
        cdef Py_ssize_t taken
        cdef int status
        append(&self.head, p, n)
        end = <const char *>memmem(self.head.data + seen, self.head.size - seen, b"\r\n\r\n", 4)
        taken = self.head.size if end == NULL else end + 4 - self.head.data
        if taken > max_head:
            self._fail(Outcome.PROTOCOL_ERROR, "response head too long")
            return n
        if end == NULL:
            return n
        taken -= before
        line = self.head.data
        eol = line_end(line, end)
        if eol - line < 12 or memcmp(line, b"HTTP/1.", 7) != 0 or not b"0" <= line[7] <= b"9" or not is_blank(line[8]):
            self._fail(Outcome.PROTOCOL_ERROR, "not an HTTP/1 response")
            return n
        if not (
            b"1" <= line[9] <= b"9" and b"0" <= line[10] <= b"9" and b"0" <= line[11] <= b"9"
            and (line + 12 == eol or is_blank(line[12]))
        ):
            self._fail(Outcome.PROTOCOL_ERROR, "not an HTTP status")
            return n
        status = (line[9] - 48) * 100 + (line[10] - 48) * 10 + (line[11] - 48)
        self.keep_alive = line[7] != b"0"
        while eol < end:
            line = eol + 2
            eol = line_end(line, end)
            colon = <const char *>memchr(line, b":", eol - line)
            if colon == NULL:
                self._fail(Outcome.PROTOCOL_ERROR, "a header line without a colon")
                return n
            value = colon + 1
            value_end = eol
            while value < value_end and is_blank(value[0]):
                value += 1
            while value < value_end and is_blank(value_end[-1]):
                value_end -= 1
            self._header(line, colon - line, value, value_end - value)
            if self.phase == ENDED:
                return n
        if status < 200:  # an interim response: the real one follows
            self.head.size = 0
            self._forget_headers()
            return taken
        self.record.status = status
        # HTTP/1.0 has no transfer encodings: such framing is not to be trusted further (RFC 9112, section 6.1).
        if self.closes or (self.encoded_transfer and self.head.data[7] == b"0"):
            self.keep_alive = False
        self._start_body()
        return n if self.phase == READER else taken

    cdef int _header(self, const char *name, Py_ssize_t name_len, const char *value, Py_ssize_t n) except -1:
        cdef int64_t number = 0
        cdef Py_ssize_t i, j
        cdef bint starts
        if is_name(name, name_len, b"content-length", 14):
            for i in range(n):
                if not b"0" <= value[i] <= b"9" or number > max_chunk:
                    return self._fail(Outcome.PROTOCOL_ERROR, "Content-Length is no number")
                number = number * 10 + (value[i] - 48)
            if n == 0 or number > max_chunk or (self.left >= 0 and self.left != number):
                return self._fail(Outcome.PROTOCOL_ERROR, "Content-Length is no number, or there are two")
            self.left = number
        elif is_name(name, name_len, b"transfer-encoding", 17):
            self.encoded_transfer = True
            if is_name(value, n, b"chunked", 7):
                self.chunked = True
            elif not is_name(value, n, b"identity", 8):
                self.wants_reader = True
        elif is_name(name, name_len, b"content-encoding", 16):
            self.wants_reader = self.wants_reader or not is_name(value, n, b"identity", 8)
        elif is_name(name, name_len, b"content-type", 12):
            self.streamed = not mentions(value, n, b"json", 4)
        elif is_name(name, name_len, b"connection", 10):
            if lists(value, n, b"close", 5):
                self.closes = True
            elif lists(value, n, b"keep-alive", 10):
                self.keep_alive = True
        elif is_name(name, name_len, b"keep-alive", 10):
            starts = True
            for i in range(n):
                if starts and i + 8 <= n and strncasecmp(value + i, b"timeout=", 8) == 0:
                    number = 0
                    for j in range(i + 8, n):
                        if not b"0" <= value[j] <= b"9":
                            break
                        number = min(number * 10 + (value[j] - 48), 1000000)
                    self.keep_alive_ns = number * 1000000000
                starts = value[i] == b"," or (starts and is_blank(value[i]))
        return 0

    cdef int _start_body(self) except -1:
        if self.record.status == 204 or self.record.status == 304 or (self.left == 0 and not self.chunked):
            self.head.size = 0
            return self._end()
        if self.wants_reader:
            self.phase = READER
            return 0
        self.head.size = 0
        if self.chunked:
            self.phase = CHUNK_SIZE
        elif self.left > 0:
            self.phase = LENGTH
        else:
            self.phase = UNTIL_CLOSE
            self.keep_alive = False
        return 0

    cdef int _chunk_line(self) except -1:
        cdef char *p = self.head.data
        cdef Py_ssize_t n = self.head.size - 1, i = 0
        cdef int64_t size = 0
        cdef int digit
        if n > 0 and p[n - 1] == b"\r":
            n -= 1
        self.head.size = 0
        if self.phase == TRAILER:
            return self._end() if n == 0 else 0
        if self.phase == CHUNK_END:
            if n > 0:
                return self._fail(Outcome.PROTOCOL_ERROR, "a chunk is longer than its size")
            self.phase = CHUNK_SIZE
            return 0
        while i < n and p[i] != b";" and not is_space(p[i]):
            if b"0" <= p[i] <= b"9":
                digit = p[i] - 48
            elif b"a" <= (p[i] | 32) <= b"f":
                digit = (p[i] | 32) - 87
            else:
                return self._fail(Outcome.PROTOCOL_ERROR, "a chunk size is no hexadecimal number")
            size = size * 16 + digit
            if size > max_chunk:
                return self._fail(Outcome.PROTOCOL_ERROR, "a chunk size is out of range")
            i += 1
        if i == 0:
            return self._fail(Outcome.PROTOCOL_ERROR, "a chunk without a size")
        while i < n and is_space(p[i]):
            i += 1
        if i < n and p[i] != b";":
            return self._fail(Outcome.PROTOCOL_ERROR, "a chunk size is no hexadecimal number")
        self.left = size
        self.phase = CHUNK if size > 0 else TRAILER
        return 0

    cdef int _body(self, const char *p, Py_ssize_t n) except -1:
        if self.phase == ENDED:
            return 0
        if self.record.status != 200:
            return append(&self.body, p, min(n, max_sample - self.body.size))
        if self.streamed:
            return self._lines(p, n)
        if self.body.size + n > max_line:
            return self._fail(Outcome.PROTOCOL_ERROR, "a JSON body without end")
        return append(&self.body, p, n)

    cdef int _lines(self, const char *p, Py_ssize_t n) except -1:
        """Cut the body into lines that end with LF, CR or CRLF."""
        cdef const char *lf
        cdef const char *cr
        cdef const char *eol
        while n > 0 and self.phase != ENDED:
            if self.skip_lf:
                self.skip_lf = False
                if p[0] == b"\n":
                    p += 1
                    n -= 1
                    continue
            lf = <const char *>memchr(p, b"\n", n)
            cr = <const char *>memchr(p, b"\r", n if lf == NULL else lf - p)
            eol = lf if cr == NULL else cr
            if eol == NULL:
                if self.line.size + n > max_line:
                    return self._fail(Outcome.PROTOCOL_ERROR, "an event line without end")
                return append(&self.line, p, n)
            if self.line.size:
                append(&self.line, p, eol - p)
                self._line(self.line.data, self.line.size)
                self.line.size = 0
            else:
                self._line(p, eol - p)
            self.skip_lf = eol == cr
            n -= eol + 1 - p
            p = eol + 1
        return 0

    cdef int _line(self, const char *p, Py_ssize_t n) except -1:
        cdef Py_ssize_t k
        if self.first_line:
            self.first_line = False
            if n >= 3 and p[:3] == b"\xef\xbb\xbf":
                p += 3
                n -= 3
        if n == 0:
            if self.has_data:
                self.has_data = False
                self._event(self.event.data, self.event.size)
                self.event.size = 0
            return 0
        if n < 4 or p[0] != b"d" or p[1] != b"a" or p[2] != b"t" or p[3] != b"a" or (n > 4 and p[4] != b":"):
            return 0  # a comment, a ping, or a field that carries no token
        k = min(n, 5)  # the field's name alone is an empty line of data
        p += k
        n -= k
        if n > 0 and p[0] == b" ":
            p += 1
            n -= 1
        if self.event.size + n > max_line:
            return self._fail(Outcome.PROTOCOL_ERROR, "an event without end")
        if self.has_data:
            append(&self.event, b"\n", 1)
        self.has_data = True
        return append(&self.event, p, n)

    cdef int _event(self, const char *p, Py_ssize_t n) except -1:
        cdef Delta delta
        cdef Record record = self.record
        if record.done_seen or n == 0:
            return 0
        if n == 6 and p[:6] == b"[DONE]":
            record.done_seen = True
            return 0
        if not scan_event(p, n, &delta):
            return self._event_slowly(p[:n])
        if delta.kinds:
            self._token(delta.kinds, delta.tokens, delta.completion_tokens)
            if record.keeps_text:
                append(&record.escaped, delta.text, delta.text_len)
            if record.keeps_answer and delta.kinds == CONTENT:
                append(&record.answered, delta.text, delta.text_len)
        if delta.finish != NULL:
            record.finish_reason = delta.finish[:delta.finish_len].decode("utf-8", "replace")
        return self._usage(delta.prompt_tokens, delta.completion_tokens, delta.cached_tokens)

    cdef int _event_slowly(self, bytes payload) except -1:
        cdef Record record = self.record
        try:
            # An event stream is UTF-8 in which what is none stands as U+FFFD.
            delta = deltas.parse(payload.decode("utf-8", "replace").encode())
        except ValueError as wrong:
            if self.at_end:
                return self._fail(Outcome.TRUNCATED, "the stream ended inside an event")
            sample = payload[:200].decode("utf-8", "replace")
            return self._fail(Outcome.PROTOCOL_ERROR, f"an event that is no chunk of an answer ({wrong}): {sample}")
        if delta.error is not None:
            return self._fail(Outcome.STREAM_ERROR, delta.error[:max_sample])
        if delta.kinds:
            self._token(delta.kinds, delta.tokens, delta.completion_tokens)
            if record.keeps_text:
                text = json.dumps(delta.text).encode()
                append(&record.escaped, PyBytes_AS_STRING(text) + 1, len(text) - 2)
            if record.keeps_answer:
                text = json.dumps(delta.answer).encode()
                append(&record.answered, PyBytes_AS_STRING(text) + 1, len(text) - 2)
        record.finish_reason = delta.finish_reason or record.finish_reason
        return self._usage(delta.prompt_tokens, delta.completion_tokens, delta.cached_tokens)

    cdef int _usage(self, int64_t prompt, int64_t completion, int64_t cached) except -1:
        if prompt >= 0:
            self.record.prompt_tokens = prompt
        if completion >= 0:
            self.record.completion_tokens = completion
        if cached >= 0:
            self.record.cached_tokens = cached
        return 0

    cdef int _token(self, int kinds, int64_t tokens, int64_t completion) except -1:
        """An event bears tokens: `tokens` of them by its ids, `completion` in all so far by its usage; -1: not told."""
        cdef Record record = self.record
        # Usage that comes with the last event alone sums up what came before: it says nothing of that event.
        if completion >= 0 and (record.events == 0 or record.completion_tokens >= 0):
            tokens = max(0, completion - record.counted)
            record.counted_by = BY_USAGE
        elif tokens >= 0:
            record.counted_by = BY_IDS
        else:
            tokens = 1
        if record.last_token != self.at_ns:
            record.reads += 1
        if record.first_token == 0:
            record.first_token = self.at_ns
        record.last_token = self.at_ns
        if kinds & CONTENT:
            record.content_events += 1
            if record.first_answer == 0:
                record.first_answer = self.at_ns
        elif kinds & REASONING:
            record.reasoning_events += 1
        else:
            record.other_events += 1
        return record.mark(self.at_ns, tokens)

    cdef int _fail(self, object outcome, object detail) except -1:
        self.keep_alive = False
        if self.record.status > 200 and self.phase != HEAD:
            return self._end()  # the status is the outcome, however its body ended
        self.record.outcome, self.record.detail = outcome, detail
        return self._finish()

    cdef int _end(self) except -1:
        """The response is whole: what has it been?"""
        cdef Record record = self.record
        if record.status != 200:
            sample = self.body.data[:self.body.size].decode("utf-8", "replace") if self.body.size else ""
            record.outcome, record.detail = Outcome.STATUS, sample
            return self._finish()
        if not self.streamed and self.body.size:
            return self._whole(self.body.data[:self.body.size])
        if self.line.size or self.has_data:  # a last event that no blank line ends
            self.at_end = True
            if self.line.size:
                self._line(self.line.data, self.line.size)
            self._line(NULL, 0)
        if self.phase == ENDED:
            return 0
        if record.events == 0:
            record.outcome, record.detail = Outcome.EMPTY, "the response has no token"
        elif record.finish_reason is None:
            record.outcome, record.detail = Outcome.TRUNCATED, "the stream ended without a finish reason"
        else:
            record.outcome = Outcome.OK
            record.settle()
        return self._finish()

    cdef int _whole(self, bytes body) except -1:
        """A body of JSON where a stream was asked: an error, or an answer whose tokens have no times."""
        try:
            error = deltas.parse(body).error
        except ValueError:
            error = None
        if error is not None:
            return self._fail(Outcome.STREAM_ERROR, error[:max_sample])
        return self._fail(Outcome.PROTOCOL_ERROR, "answered in one piece although a stream was asked")

    cdef int _finish(self) except -1:
        assert not self.complete and self.record.outcome is not None, "each response has one end, and that an outcome"
        self.phase = ENDED
        self.complete = True
        self.wants_reader = False
        self.record.closed = self.at_ns
        return 0


cdef class Bell:
    """Something to do at a set time that must not wait for a long turn of the loop: `ring()` at `at_ns`.

    An engine that steps a large batch makes a thousand streams readable at once, and the loop reads them all
    before it looks at its timers. So every read looks whether the bell is due; it costs one comparison.
    """

    def __init__(self):
        self.at_ns, self.ring = NEVER, None


cdef class Connection(Response):
    """A connection as asyncio's protocol: stamps what arrives and tells its owner when a response has ended.

    The owner has `ended(connection)`, called once per response, `reader(connection)`, called when a response wants
    aiohttp's reader, and `dropped(connection, error)`, called when the peer or the network has ended the connection.
    tap: None, or who is told of what is sent and of all that comes, before it is read.
    """

    def __init__(self, owner, handle, transport, Bell bell not None):
        self.owner, self.handle, self.transport, self.bell = owner, handle, transport, bell
        self.keep_alive = True

    def send(self, bytes request not None, Record record not None):
        """Write a whole request and expect its response."""
        self.begin(record)
        record.sent = now_ns()
        self.transport.write(request)
        if self.tap is not None:
            self.tap.sent(record)

    def data_received(self, bytes data not None):
        cdef int64_t at_ns = now_ns()
        cdef bint was_complete = self.complete
        if self.tap is not None:
            self.tap.read(self.record, at_ns, data)
        self.feed_raw(PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data), at_ns)
        if self.wants_reader and self.phase == READER:
            self.owner.reader(self)
        elif self.complete and not was_complete:
            self.owner.ended(self)
        if at_ns >= self.bell.at_ns:  # last: what rings may send on this very connection
            self.bell.ring()

    def connection_made(self, transport):
        self.transport = transport

    def eof_received(self):
        return False

    def connection_lost(self, exc):
        cdef int64_t at_ns = now_ns()
        cdef bint was_open = self.phase != IDLE and not self.complete
        self.lost = True
        self.keep_alive = False
        if was_open:
            if self.tap is not None:
                self.tap.lost(self.record, at_ns, exc)
            self.eof(at_ns, None if exc is None else str(exc) or type(exc).__name__)
        self.owner.dropped(self, exc)
        if was_open:
            self.owner.ended(self)

    def pause_writing(self):
        pass

    def resume_writing(self):
        pass
