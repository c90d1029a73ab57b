# Events: the part of `wire` that reads server-sent events and tells the Record what they bring; included there.


cdef class Events:
    """Cuts the body of a stream into lines and events, and writes into the Record which tokens they bear, and when.

    complete: nothing more is read. How a response ends is not told here but by `_fail`, of the class that knows it.
    """

    def __dealloc__(self):
        dispose(&self.line)
        dispose(&self.event)

    cdef int _expect(self, Record record) except -1:
        """The stream that comes next is told in `record`."""
        self.record, self.complete, self.at_end = record, False, False
        self.skip_lf = self.has_data = False
        self.first_line = True
        self.line.size = self.event.size = 0
        return 0

    cdef int _fail(self, object outcome, object detail) except -1:
        raise NotImplementedError

    cdef int _last_event(self) except -1:
        """The stream has ended: take an event that no blank line ends."""
        if self.line.size or self.has_data:
            self.at_end = True
            if self.line.size:
                self._line(self.line.data, self.line.size)
            self._line(NULL, 0)
        return 0

    cdef int _lines(self, const char *p, Py_ssize_t n) except -1:
        """Cut the body into lines that end with LF, CR or CRLF."""
        cdef const char *lf
        cdef const char *cr
        cdef const char *eol
        while n > 0 and not self.complete:
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
            return record.tell(DONE, self.at_ns)
        if not scan_event(p, n, &delta):
            return self._event_slowly(p[:n])
        record.tell(delta.kinds | delta.says, self.at_ns)
        if delta.kinds:
            self._token(delta.kinds, delta.tokens, delta.completion_tokens)
            if record.keeps_text:
                append(&record.escaped, delta.text, delta.text_len)
            if record.keeps_answer and delta.kinds == CONTENT:
                append(&record.answered, delta.text, delta.text_len)
        if delta.finish != NULL:
            record.finish_reason = delta.finish[:delta.finish_len].decode("utf-8", "replace")
        return self._usage(delta.prompt_tokens, delta.completion_tokens, delta.cached_tokens, delta.reasoning_tokens)

    cdef int _event_slowly(self, bytes payload) except -1:
        cdef Record record = self.record
        try:
            # An event stream is UTF-8 in which what is none stands as U+FFFD.
            delta = sse_event.parse(payload.decode("utf-8", "replace").encode())
        except ValueError as wrong:
            if self.at_end:
                return self._fail(Outcome.TRUNCATED, "the stream ended inside an event")
            sample = payload[:200].decode("utf-8", "replace")
            return self._fail(Outcome.PROTOCOL_ERROR, f"an event that is no chunk of an answer ({wrong}): {sample}")
        if delta.error is not None:
            return self._fail(Outcome.STREAM_ERROR, delta.error[:max_sample])
        record.tell(delta.kinds | delta.says, self.at_ns)
        if delta.kinds:
            self._token(delta.kinds, delta.tokens, delta.completion_tokens)
            if record.keeps_text:
                text = json.dumps(delta.text).encode()
                append(&record.escaped, PyBytes_AS_STRING(text) + 1, len(text) - 2)
            if record.keeps_answer:
                text = json.dumps(delta.answer).encode()
                append(&record.answered, PyBytes_AS_STRING(text) + 1, len(text) - 2)
        record.finish_reason = delta.finish_reason or record.finish_reason
        if delta.matched_stop is not None:
            record.matched_stop = delta.matched_stop
        record.nan_events += delta.has_nan
        return self._usage(delta.prompt_tokens, delta.completion_tokens, delta.cached_tokens, delta.reasoning_tokens)

    cdef int _usage(self, int64_t prompt, int64_t completion, int64_t cached, int64_t reasoning) except -1:
        if prompt >= 0:
            self.record.prompt_tokens = prompt
        if completion >= 0:
            self.record.completion_tokens = completion
        if cached >= 0:
            self.record.cached_tokens = cached
        if reasoning >= 0:
            self.record.reasoning_tokens = reasoning
        return 0

    cdef int _token(self, int kinds, int64_t tokens, int64_t completion) except -1:
        """An event bears tokens: `tokens` of them by its ids, `completion` in all so far by its usage; -1: not told."""
        cdef Record record = self.record
        # Usage that did not come with the first event sums up what came before: it says nothing of this one.
        if completion >= 0 and (record.events == 0 or record.counted_by == BY_USAGE):
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
