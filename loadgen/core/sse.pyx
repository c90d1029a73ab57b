# cython: language_level=3
"""SseReader: server-sent events in, tokens and their stamps into a Record.

Budget per event that bears a token: two memchr per line, one copy of its data, one pass over its
JSON, two stores in the record; no Python object and no allocation. That is 0.23 us for 190 bytes,
and 0.27 us with an HTTP chunk and a call of its own. An event that the scanner is not sure of costs
a JSON parser.
"""
cimport cython
from libc.stdint cimport int64_t
from libc.string cimport memchr, memcmp
from cpython.bytes cimport PyBytes_AS_STRING
from cpython.unicode cimport PyUnicode_AsUTF8AndSize

from loadgen.core.answer cimport BY_EVENTS, MAX_UNREAD
from loadgen.core.c.memory cimport BYTES, COUNTING, append_bytes, free_buffer, live_count
from loadgen.core.c.repeated_text cimport add_text
from loadgen.core.c.json_scan cimport Delta as ScannedDelta, scan_event
from loadgen.core.c.results_scan cimport scan_results
from loadgen.core.c.server_times cimport ServerTimes, merge_times
from loadgen.core.server_times_scan cimport scan_times
from loadgen.core.event_flags cimport CHOICE, CONTENT, CUMULATIVE, DONE, FINISH, RESULT, ROLE, USAGE
from loadgen.core.record cimport Record

import json

from loadgen.core import pooled_answer, reference_parser
from loadgen.core.outcome import Outcome
from loadgen.util.number_format import plural

MAX_LINE = 64 * 1024 * 1024
MAX_SAMPLE = 1024  # bytes of a message from the server that are kept
cdef Py_ssize_t max_line = MAX_LINE, max_sample = MAX_SAMPLE
cdef str last_word = ""


def live():
    """Return the bytes that this module has allocated; None unless it is a debug build."""
    return {"bytes": live_count(BYTES)} if COUNTING else None


cdef bytes _escaped(str text):
    """Return a text as a JSON string, escaped no more than servers do; half a surrogate pair
    stands as its escape.
    """
    try:
        return json.dumps(text, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(text).encode()


cdef str word_of(const char *p, Py_ssize_t n):
    """Return n bytes as text, which is the same object again where they are those of before."""
    global last_word
    cdef Py_ssize_t size
    cdef const char *last = PyUnicode_AsUTF8AndSize(last_word, &size)
    if size != n or memcmp(last, p, n) != 0:
        last_word = p[:n].decode("utf-8", "replace")
    return last_word


cdef inline int put_delta(Record record, ScannedDelta *delta, int64_t at_ns) except -1:
    """Write what one event says into the record."""
    cdef Py_ssize_t again
    if delta.kinds and not delta.says & CUMULATIVE:
        again = add_text(&record.text_so_far, delta.kinds, delta.text, delta.text_len)
        if again:
            delta.text += again
            delta.text_len -= again
            if delta.text_len == 0:
                delta.kinds = 0
    record.add_event(delta.kinds | delta.says, delta.tokens, delta.completion_tokens, at_ns)
    if delta.kinds:
        if record.keeps_text:
            record.append_text(delta.text, delta.text_len, delta.says & CUMULATIVE)
        if record.keeps_answer and delta.kinds == CONTENT:
            record.append_answer(delta.text, delta.text_len, delta.says & CUMULATIVE)
    if delta.finish != NULL:
        record.set_finish(word_of(delta.finish, delta.finish_len))
    if delta.says & USAGE:
        record.set_usage(delta.prompt_tokens, delta.completion_tokens, delta.cached_tokens,
                         delta.reasoning_tokens, delta.total_tokens)
    return 0


@cython.final
cdef class SseReader:
    """Cuts the body of a stream into lines and events, and writes into a Record which tokens they
    bear, and when.

    It follows the WHATWG HTML standard: lines end with LF, CR or CRLF, a byte order mark is
    skipped, and only `data` fields count.

    Attributes:
        scanner: Reads the events of an API with a dialect of its own; None: they are those of chat.
        record: What it writes to.
        failed: Whether the stream broke the protocol; then it reads no further.
        outcome, detail: Those of a stream that has failed.
    """

    def __dealloc__(self):
        free_buffer(&self.partial_line)
        free_buffer(&self.event)
        free_buffer(&self.unread)

    cdef int begin(self, Record record) except -1:
        """Expect a new stream, to be written into `record`."""
        self.record, self.outcome, self.detail = record, None, None
        self.failed = self.skips_lf = self.has_data = self.at_end = False
        self.at_first_line = True
        self._set_name(False)
        self.partial_line.size = self.event.size = self.unread.size = 0
        return 0

    cdef int feed(self, const char *p, Py_ssize_t n, int64_t at_ns) except -1:
        """Read the next n bytes of the body, which arrived at `at_ns`."""
        cdef const char *lf
        cdef const char *cr
        cdef const char *eol
        cdef Py_ssize_t events = self.record.events
        self.at_ns = at_ns
        self.tail += n
        while n > 0 and not self.failed:
            if self.skips_lf:
                self.skips_lf = False
                if p[0] == b"\n":
                    p += 1
                    n -= 1
                    self.tail -= 1
                    continue
            lf = <const char *>memchr(p, b"\n", n)
            cr = <const char *>memchr(p, b"\r", n if lf == NULL else lf - p)
            eol = lf if cr == NULL else cr
            if eol == NULL:
                if self.partial_line.size + n > max_line:
                    return self._fail(Outcome.PROTOCOL_ERROR, "an event line without end")
                return append_bytes(&self.partial_line, p, n)
            if self.partial_line.size:
                append_bytes(&self.partial_line, p, eol - p)
                self._read_line(self.partial_line.data, self.partial_line.size)
                self.partial_line.size = 0
            elif self._is_event(p, eol, n):  # most events: nothing is copied
                self._read_event(p + 6, eol - p - 6)
                eol += 1
            else:
                self._read_line(p, eol - p)
            self.skips_lf = eol == cr
            n -= eol + 1 - p
            p = eol + 1
            if self.record.events > events:
                events, self.tail = self.record.events, n
        return 0

    cdef inline bint _is_event(self, const char *p, const char *eol, Py_ssize_t n) noexcept:
        """Whether the line of the n bytes at `p` that ends at `eol` is a whole event: its only
        line, of data, and the empty line has come, too.
        """
        return (
            n > eol + 1 - p and eol[0] == b"\n" and eol[1] == b"\n"
            and 6 < eol - p <= max_line and memcmp(p, b"data: ", 6) == 0
            and not self.has_data and not self.at_first_line
        )

    cdef int finish(self, int64_t at_ns) except -1:
        """The body has ended: read an event that no blank line ends."""
        self.at_ns = at_ns
        if self.partial_line.size or self.has_data:
            self.at_end = True
            if self.partial_line.size:
                self._read_line(self.partial_line.data, self.partial_line.size)
            if not self.failed:
                self._read_line(NULL, 0)
        return 0

    cdef int _read_line(self, const char *p, Py_ssize_t n) except -1:
        """Collect the data of an event; at an empty line, read the event."""
        cdef Py_ssize_t k
        if self.at_first_line:
            self.at_first_line = False
            if n >= 3 and memcmp(p, b"\xef\xbb\xbf", 3) == 0:
                p += 3
                n -= 3
        if n == 0:
            if self.has_data:
                self.has_data = False
                self._read_event(self.event.data, self.event.size)
                self.event.size = 0
            elif self.names_error:
                self._set_name(False)
            return 0
        cdef bint is_data = n >= 4 and memcmp(p, b"data", 4) == 0
        if not is_data or (n > 4 and p[4] != b":"):
            return self._read_other_line(p, n)
        k = min(n, 5)  # the field's name alone is an empty line of data
        p += k
        n -= k
        if n > 0 and p[0] == b" ":
            p += 1
            n -= 1
        if self.event.size + n > max_line:
            return self._fail(Outcome.PROTOCOL_ERROR, "an event without end")
        if self.has_data:
            append_bytes(&self.event, b"\n", 1)
        self.has_data = True
        return append_bytes(&self.event, p, n)

    cdef int _read_other_line(self, const char *p, Py_ssize_t n) except -1:
        """Read a line that is no data: an error, the name of an event, or what no rule takes."""
        cdef const char *colon = <const char *>memchr(p, b":", n)
        cdef Py_ssize_t k = n if colon == NULL else colon - p
        cdef const char *value = p + min(n, k + 1)
        if k == 5 and memcmp(p, b"event", 5) == 0:  # of each token in some dialects
            if p + n > value and value[0] == b" ":
                value += 1
            self._set_name(p + n - value == 5 and memcmp(value, b"error", 5) == 0)
            return 0
        if k == 0 or (k == 2 and p[:2] == b"id") or (k == 5 and p[:5] == b"retry"):
            return 0
        if k == 5 and p[:5] == b"error":
            message = value[:min(p + n - value, max_sample)].strip()
            return self._fail(Outcome.STREAM_ERROR, message.decode("utf-8", "replace"))
        return self._leave_unread("line", p, n)

    cdef void _set_name(self, bint is_error) noexcept:
        """Store whether the event that comes next is named an error, and which path reads it."""
        self.names_error = is_error
        self.is_no_chat = is_error or self.scanner is not None or self.record.done_seen

    cdef int _leave_unread(self, str what, const char *p, Py_ssize_t n) except -1:
        """Keep the first bytes of what no rule takes, and count it."""
        cdef Py_ssize_t k = min(n, MAX_UNREAD - self.unread.size)
        if k > 0:
            append_bytes(&self.unread, p, k)
        return self.record.note_unread(what, p[:min(n, MAX_UNREAD)])

    cdef int forget_rest(self) except -1:
        """Read no event that has not come to its end."""
        self.partial_line.size = self.event.size = 0
        self.has_data = False
        return 0

    cdef str quote(self):
        """Return the end of a message, with the first bytes of what no rule has taken; empty:
        there is none.
        """
        if self.unread.size == 0:
            return ""
        sample = self.unread.data[:self.unread.size].decode("utf-8", "replace")
        return f"; the server sent: {sample}"

    cdef int _read_event(self, const char *p, Py_ssize_t n) except -1:
        """Read the data of one event with the scanner.

        One test leaves the path of chat, whatever the reason.
        """
        cdef ScannedDelta delta
        cdef ServerTimes times
        if self.is_no_chat or n == 0:
            return self._read_aside(p, n)
        if n == 6 and memcmp(p, b"[DONE]", 6) == 0:
            return self._read_done()
        if not scan_event(p, n, &delta, &self.head):
            return self._parse_event(p[:n])
        if delta.times_at and (delta.says & FINISH or not delta.says & CHOICE):
            if not scan_times(&delta, &times):
                return self._parse_event(p[:n])
            merge_times(&self.record.times, &times)
        if delta.kinds == 0:
            self._keep_empty(delta.says, p, n)
        return put_delta(self.record, &delta, self.at_ns)

    cdef int _keep_empty(self, int says, const char *p, Py_ssize_t n) except -1:
        """Keep the first bytes of an event that says nothing, in case that none says more."""
        if says & (ROLE | FINISH | USAGE):
            return 0
        if self.unread.size == 0 and self.record.events == 0:
            append_bytes(&self.unread, p, min(n, MAX_UNREAD))
        return 0

    cdef int _read_aside(self, const char *p, Py_ssize_t n) except -1:
        """Read the data of one event of a dialect; after [DONE], nothing."""
        cdef ScannedDelta delta
        if self.record.done_seen:
            return 0
        if n == 0:
            self._set_name(False)
            return 0
        if n == 6 and memcmp(p, b"[DONE]", 6) == 0:
            return self._read_done()
        if self.names_error:
            return self._parse_event(p[:n])
        if not self.scanner.scan(p, n, &delta):
            return self._parse_event(p[:n])
        return put_delta(self.record, &delta, self.at_ns)

    cdef int _read_done(self) except -1:
        self.is_no_chat = True
        self.record.set_done()
        return self.record.add_event(DONE, -1, -1, self.at_ns)

    cdef int _parse_event(self, bytes payload) except -1:
        """Read the data of one event with the JSON parser."""
        try:
            # An event stream is UTF-8, and bytes that are not stand as U+FFFD.
            payload_utf8 = payload.decode("utf-8", "replace").encode()
            dialect = None if self.scanner is None else self.scanner.dialect
            delta = reference_parser.parse(payload_utf8, dialect)
        except ValueError as wrong:
            sample = payload[:MAX_UNREAD].decode("utf-8", "replace")
            if self.names_error:
                return self._fail(Outcome.STREAM_ERROR,
                                  payload[:max_sample].decode("utf-8", "replace"))
            if self.at_end:
                return self._fail(Outcome.TRUNCATED, f"the stream ended inside an event: {sample}")
            return self._fail(Outcome.PROTOCOL_ERROR,
                              f"an event that is no chunk of an answer ({wrong}): {sample}")
        if self.names_error and delta.error is None:
            return self._fail(Outcome.STREAM_ERROR,
                              payload[:max_sample].decode("utf-8", "replace"))
        for name in delta.unknown:
            self.record.note_unread(name, payload)
        if delta.kinds == 0:
            self._keep_empty(delta.says, payload, len(payload))
        return self._add(delta)

    cdef int read_whole(self, bytes payload, int64_t at_ns) except -1:
        """Read an answer in one piece, which came at `at_ns`, as one event."""
        self.at_ns, self.tail = at_ns, 0
        try:
            delta = reference_parser.parse_text(payload.decode("utf-8", "replace").encode())
        except ValueError as wrong:
            sample = payload[:200].decode("utf-8", "replace")
            return self._fail(Outcome.PROTOCOL_ERROR, f"no answer in one piece ({wrong}): {sample}")
        return self._add(delta)

    cdef int read_results(self, const char *p, Py_ssize_t n, int64_t at_ns) except -1:
        """Read n bytes of embeddings or scores, which came at `at_ns`, as one event."""
        cdef Record record = self.record
        cdef ScannedDelta delta
        cdef int64_t results = 0
        cdef bint has_nan = False
        if scan_results(p, n, &delta, &results):
            prompt_tokens, cached_tokens = delta.prompt_tokens, delta.cached_tokens
        else:
            try:
                answer = pooled_answer.parse_pooled(p[:n] if n else b"")
            except ValueError as wrong:
                return self._fail(Outcome.PROTOCOL_ERROR,
                                  f"no JSON of an answer in one piece ({wrong})")
            if answer.error is not None:
                return self._fail(Outcome.STREAM_ERROR, answer.error[:max_sample])
            results, has_nan = answer.results, answer.has_nan
            prompt_tokens, cached_tokens = answer.prompt_tokens, answer.cached_tokens
        if results == 0:
            return self._fail(Outcome.EMPTY, "the answer has no embedding or score")
        if record.texts > 0 and results != record.texts:
            return self._fail(Outcome.PROTOCOL_ERROR,
                              f"{plural(results, 'result')} for {plural(record.texts, 'text')}")
        record.results = results
        record.add_event(RESULT, 0, -1, at_ns)
        record.counted_by = BY_EVENTS
        record.nan_events += has_nan
        record.set_usage(prompt_tokens if prompt_tokens > 0 else -1, 0, cached_tokens, -1, -1)
        self.tail = 0
        return 0

    cdef int _add(self, object delta) except -1:
        """Write into the record what the JSON parser has found."""
        cdef Record record = self.record
        if delta.error is not None:
            return self._fail(Outcome.STREAM_ERROR, delta.error[:max_sample])
        cdef int kinds = delta.kinds
        cdef bytes escaped = _escaped(delta.text)
        cdef Py_ssize_t size = len(escaped) - 2, again = 0
        if kinds and not delta.says & CUMULATIVE:
            again = add_text(&record.text_so_far, kinds, PyBytes_AS_STRING(escaped) + 1, size)
            if again and again == size:
                kinds = 0
        record.add_event(kinds | delta.says, delta.tokens, delta.completion_tokens, self.at_ns)
        if kinds:
            if record.keeps_text:
                record.append_text(PyBytes_AS_STRING(escaped) + 1 + again, size - again,
                                   delta.says & CUMULATIVE)
            if record.keeps_answer:
                escaped = _escaped(delta.answer)
                if kinds != CONTENT or len(escaped) - 2 != size:
                    again = 0
                record.append_answer(PyBytes_AS_STRING(escaped) + 1 + again,
                                     len(escaped) - 2 - again, delta.says & CUMULATIVE)
        if delta.finish_reason is not None:
            record.set_finish(delta.finish_reason)
        if delta.matched_stop is not None:
            record.matched_stop = delta.matched_stop
        record.nan_events += delta.has_nan
        if delta.times is not None:
            record.add_times(delta.times)
        return record.set_usage(
            delta.prompt_tokens, delta.completion_tokens, delta.cached_tokens,
            delta.reasoning_tokens, delta.total_tokens
        )

    cdef int _fail(self, object outcome, object detail) except -1:
        self.failed, self.outcome, self.detail = True, outcome, detail
        return 0
