# cython: language_level=3
"""The wire: HTTP/1.1 responses and server-sent events in, stamps and an Outcome out.

`Response` is a bytes-in seam without I/O: it is fed what a socket gave and when, in any slices, and fills
one `Record`. It undoes the framing itself; `Events` (events.pxi) reads the stream inside. `Connection` (connection.pxi)
is the same thing as an asyncio protocol, which takes the stamp as the first thing it does with the bytes; a `Poll`
(poll.pxi) reads it without the event loop between, where it can.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memchr, memcmp, memcpy, strlen
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from loadgen.core.c.clock cimport now_ns
from loadgen.core.c.digits cimport PLACES, put_decimal
from loadgen.core.histogram cimport Histogram
from loadgen.core.c.leak_count cimport BYTES, COUNTED, RECORDS, RESPONSES, allocated, count, freed, living
from loadgen.core.json_scan cimport CONTENT, DONE, REASONING, TOKENS, Delta, scan_event
from loadgen.core.c.sockets cimport MSG_DONTWAIT, MSG_NOSIGNAL, MSG_PEEK, recv, send

import json
import os

import orjson

from loadgen.core import sse_event
from loadgen.core.outcome import NO_FINISH_REASON, Outcome

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


include "bytes.pxi"
include "head.pxi"
include "record.pxi"
include "line.pxi"
include "events.pxi"


def live():
    """What lives now of this module's objects: how many of each, and their bytes; None unless it is a debug build."""
    if not COUNTED:
        return None
    return {"records": living(RECORDS), "responses": living(RESPONSES), "bytes": living(BYTES)}


cdef class Response(Events):
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
        dispose(&self.body)

    def begin(self, Record record not None):
        """Expect the response to a request just sent, to be told in `record`."""
        self._expect(record)
        self.received = 0
        self.phase = HEAD
        self._forget_headers()
        self.head.size = self.body.size = 0

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
        cdef Py_ssize_t before = self.head.size, seen = max(0, before - 2)
        cdef const char *end
        cdef const char *line
        cdef const char *eol
        cdef const char *colon
        cdef const char *value
        cdef const char *value_end
        cdef Py_ssize_t taken
        cdef int status
        append(&self.head, p, n)
        end = head_end(self.head.data + seen, self.head.data + self.head.size)
        taken = self.head.size if end == NULL else end + (2 if end[1] == b"\n" else 3) - self.head.data
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
            line = eol + 1
            eol = line_end(line, end)
            colon = <const char *>memchr(line, b":", eol - line)
            if colon == NULL:
                self._fail(Outcome.PROTOCOL_ERROR, "a header line without a colon")
                return n
            value = colon + 1
            value_end = eol
            while value < value_end and is_blank(value[0]):
                value += 1
            while value < value_end and is_blank((value_end - 1)[0]):
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
        cdef Py_ssize_t i
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
                if starts and i + 8 < n and strncasecmp(value + i, b"timeout=", 8) == 0:
                    number = decimal(value + i + 8, n - i - 8)
                    self.keep_alive_ns = max(number, 0) * 1000000000
                    self.closes = self.closes or number == 0
                elif starts and i + 4 < n and strncasecmp(value + i, b"max=", 4) == 0:
                    self.closes = self.closes or decimal(value + i + 4, n - i - 4) == 0  # so many more requests
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
        cdef Py_ssize_t n = self.head.size - 1
        cdef const char *wrong
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
        wrong = chunk_size(p, n, max_chunk, &self.left)
        if wrong != NULL:
            return self._fail(Outcome.PROTOCOL_ERROR, wrong.decode())
        self.phase = CHUNK if self.left > 0 else TRAILER
        return 0

    cdef int _body(self, const char *p, Py_ssize_t n) except -1:
        if self.phase == ENDED:
            return 0
        if self.record.status != 200:
            return append(&self.body, p, min(n, max_sample - self.body.size))
        if not self.streamed and self.body.size == 0:
            while n > 0 and (p[0] == b"\n" or p[0] == b"\r"):
                p += 1
                n -= 1
            # Gateways label a stream as JSON. None of the fields that may begin one begins a JSON value.
            self.streamed = n > 0 and memchr(b"deir:", p[0], 5) != NULL
        if self.streamed:
            return self._lines(p, n)
        if self.body.size + n > max_line:
            return self._fail(Outcome.PROTOCOL_ERROR, "a JSON body without end")
        return append(&self.body, p, n)

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
        self._last_event()
        if self.phase == ENDED:
            return 0
        if record.events == 0:
            record.outcome, record.detail = Outcome.EMPTY, "the response has no token"
        elif record.finish_reason is None:
            record.outcome, record.detail = Outcome.TRUNCATED, NO_FINISH_REASON
        else:
            record.outcome = Outcome.OK
            record.settle()
        return self._finish()

    cdef int _whole(self, bytes body) except -1:
        """A body of JSON where a stream was asked: an error, or an answer whose tokens have no times."""
        try:
            error = sse_event.parse(body).error
        except ValueError:
            error = None
        if error is not None:
            return self._fail(Outcome.STREAM_ERROR, error[:max_sample])
        return self._fail(Outcome.PROTOCOL_ERROR, "answered in one piece although a stream was asked")

    cdef int _finish(self) except -1:
        if COUNTED and (self.complete or self.record.outcome is None):  # an assert would leave unused variables
            raise AssertionError("each response has one end, and that an outcome")
        self.phase = ENDED
        self.complete = True
        self.wants_reader = False
        self.record.closed = self.at_ns
        return 0


include "connection.pxi"
include "poll.pxi"
