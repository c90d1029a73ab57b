# A part of loadgen.engines.sim.emit: events of several tokens, or with the counts so far.

cdef class Grouped(Stream):
    """A `Stream` whose events hold several tokens each, or say how many there have been.

    Args:
        transport, words, seed, head, reasoning_head, reasoning_tokens, limit: As a `Stream`'s.
        tail: As a `Stream`'s; where there are counts, up to that of all tokens.
        group: Tokens that an event holds; the last of the reasoning and the last of all may hold fewer.
        prompt_tokens: What the count of all tokens begins with; -1: events say no counts.
        between: From that count to the one of the answer's tokens.
        end: The rest of the event.
    """

    def __init__(self, transport, Words words not None, uint64_t seed, bytes head not None, bytes tail not None, *,
                 Py_ssize_t group=1, Py_ssize_t prompt_tokens=-1, bytes between not None=b"", bytes end not None=b"",
                 bytes reasoning_head not None=b"", Py_ssize_t reasoning_tokens=0, Py_ssize_t limit=4 << 20):
        self._group, self._prompt_tokens, self._between, self._end = group, prompt_tokens, between, end
        Stream.__init__(self, transport, words, seed, head, tail,
                        reasoning_head=reasoning_head, reasoning_tokens=reasoning_tokens, limit=limit)

    cdef Py_ssize_t _room(self) noexcept:
        cdef Py_ssize_t counts = PyBytes_GET_SIZE(self._between) + PyBytes_GET_SIZE(self._end) + 2 * PLACES
        # The text of a whole group may be written with its last token, and its size is known only behind it.
        return Stream._room(self) + CHUNK_OVERHEAD + self._group * self._words.longest + counts

    cdef char *_put_token(self, char *out) noexcept:
        self.tokens += 1
        self._pending += 1
        if self._pending == self._group or self.tokens == self._reasoning_tokens:
            return self._put_rest(out)
        return out

    cdef char *_put_rest(self, char *out) noexcept:
        if self._pending == 0:
            return out
        cdef uint32_t *starts = self._words._starts
        cdef Py_ssize_t first = self.tokens - self._pending
        cdef bytes head = self._reasoning_head if first < self._reasoning_tokens else self._head
        cdef char *body = out + CHUNK_OVERHEAD
        cdef char *at = put(body, head)
        cdef Py_ssize_t index, begin, size
        while first < self.tokens:
            index = (draw(&self._random) >> 32) * self._words.count >> 32
            # A text begins with a word that has no space before it.
            begin = starts[index] + (first == 0 or first == self._reasoning_tokens)
            size = starts[index + 1] - begin
            memcpy(at, self._words._chars + begin, size)
            at += size
            first += 1
        self._pending = 0
        at = put(at, self._tail)
        if self._prompt_tokens >= 0:
            at = put_decimal(at, self._prompt_tokens + self.tokens)
            at = put(at, self._between)
            at = put_decimal(at, self.tokens)
            at = put(at, self._end)
        size = at - body
        out = put_hex(out, size)
        memcpy(out, b"\r\n", 2)
        memmove(out + 2, body, size)
        out += 2 + size
        memcpy(out, b"\r\n", 2)
        return out + 2
