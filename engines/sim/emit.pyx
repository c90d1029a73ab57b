# cython: language_level=3
"""Streams of tokens: the simulator's answers as server-sent events, written to many sockets at C
speed.

Budget per token: one random draw, one event put together in the output buffer, one send(2); no
Python object. It also counts the tokens of a text.
"""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memmove

from loadgen.core.c.digits cimport PLACES, put_decimal
from loadgen.core.c.memory cimport (
    BYTES, COUNTING, VOCABULARIES, count_allocated, count_freed, count_objects, live_count,
)
from loadgen.engines.sim.outlet cimport (
    CHUNK_OVERHEAD, Outlet, put_bytes, put_hex, reserve, scratch, scratch_size,
)


cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL


cdef inline uint64_t draw(uint64_t *state) noexcept:
    """Return the next 64 random bits (SplitMix64)."""
    cdef uint64_t bits
    state[0] += <uint64_t>0x9E3779B97F4A7C15
    bits = state[0]
    bits = (bits ^ (bits >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    bits = (bits ^ (bits >> 27)) * <uint64_t>0x94D049BB133111EB
    return bits ^ (bits >> 31)


def live():
    """Return the number of this module's live objects and their bytes; None unless it is a debug
    build.
    """
    if not COUNTING:
        return None
    return {"vocabularies": live_count(VOCABULARIES), "bytes": live_count(BYTES)}


cdef class Words:
    """The words that answers are made of, ready to be written into JSON.

    Args:
        words: Each of ASCII letters only, so that nothing needs escaping.
    """

    def __cinit__(self):
        self._starts = NULL
        count_objects(VOCABULARIES, 1)

    def __init__(self, words):
        words = list(words)
        if not words or not all([word.isascii() and word.isalpha() for word in words]):
            raise ValueError("words: each must be ASCII letters only, and there must be one")
        self.count = len(words)
        self.longest = max(map(len, words)) + 1
        self._text = "".join([" " + word for word in words]).encode()
        self._chars = PyBytes_AS_STRING(self._text)
        count_freed(self._starts)
        free(self._starts)
        self._starts = <uint32_t *>malloc((self.count + 1) * sizeof(uint32_t))
        if self._starts == NULL:
            raise MemoryError
        count_allocated(self._starts)
        cdef uint32_t start = 0
        cdef Py_ssize_t i
        for i in range(self.count):
            self._starts[i] = start
            start += len(words[i]) + 1
        self._starts[self.count] = start

    def __dealloc__(self):
        count_objects(VOCABULARIES, -1)
        count_freed(self._starts)
        free(self._starts)

    def text(self, uint64_t seed, Py_ssize_t tokens, Py_ssize_t skip=0):
        """Return what a `Stream` with this seed writes as its tokens `skip` to `skip + tokens`,
        joined.
        """
        cdef Py_ssize_t i, index
        cdef list parts = []
        for i in range(skip + tokens):
            index = (draw(&seed) >> 32) * self.count >> 32
            if i >= skip:
                parts.append(self._text[self._starts[index]:self._starts[index + 1]])
        return b"".join(parts)[1:].decode()


cdef class Stream(Outlet):
    """One response body in HTTP chunks, each a server-sent event that holds one token.

    Args:
        transport: As an `Outlet`'s.
        words: What tokens are drawn from.
        seed: Of this answer's words.
        head: An event up to the token's text (within a JSON string).
        tail: The rest of the event, blank line included.
        reasoning_head: As `head`, for the first `reasoning_tokens` tokens.
        reasoning_tokens: How many tokens are reasoning.
        limit: As an `Outlet`'s.

    Attributes:
        tokens: Tokens written so far.
    """

    def __init__(self, transport, Words words not None, uint64_t seed, bytes head not None,
                 bytes tail not None, *,
                 bytes reasoning_head not None=b"", Py_ssize_t reasoning_tokens=0,
                 Py_ssize_t limit=4 << 20):
        Outlet.__init__(self, transport, limit=limit)
        self._words, self._random = words, seed
        self._head, self._tail, self._reasoning_head = head, tail, reasoning_head
        self._reasoning_tokens = reasoning_tokens
        reserve(self._room())

    def write(self, bytes before not None=b"", Py_ssize_t tokens=0, bytes after not None=b"",
              bytes tail=None):
        """Write `before`, then `tokens` events, then `after`, with one system call where the socket
        takes it.

        `before` and `after` go out as they are: framing them as HTTP chunks is the caller's. `tail`
        is that of these tokens and all that follow, in place of the one that there was.
        """
        if self._fd < 0:
            return
        if tail is not None:
            self._tail = tail
        reserve(len(before) + tokens * self._room() + len(after))
        cdef char *out = put_bytes(scratch, before)
        for _ in range(tokens):
            out = self._put_token(out)
        if PyBytes_GET_SIZE(after):
            out = self._put_rest(out)
        out = put_bytes(out, after)
        assert out - scratch <= scratch_size
        self._send(scratch, out - scratch)

    cdef Py_ssize_t _room(self) noexcept:
        """Most bytes that one token's event can take."""
        cdef Py_ssize_t head = max(PyBytes_GET_SIZE(self._head),
                                   PyBytes_GET_SIZE(self._reasoning_head))
        return CHUNK_OVERHEAD + head + self._words.longest + PyBytes_GET_SIZE(self._tail)

    cdef char *_put_rest(self, char *out) noexcept:
        """Write the tokens that wait for an event of their own, before what ends the response."""
        return out

    cdef char *_put_token(self, char *out) noexcept:
        cdef uint32_t *starts = self._words._starts
        cdef Py_ssize_t index = (draw(&self._random) >> 32) * self._words.count >> 32
        cdef uint32_t start = starts[index]
        cdef Py_ssize_t size = starts[index + 1] - start
        cdef bytes head = self._head
        if self.tokens < self._reasoning_tokens:
            head = self._reasoning_head
        if self.tokens == 0 or self.tokens == self._reasoning_tokens:
            # A text begins with a word that has no space before it.
            start += 1
            size -= 1
        self.tokens += 1
        out = put_hex(out, PyBytes_GET_SIZE(head) + size + PyBytes_GET_SIZE(self._tail))
        memcpy(out, b"\r\n", 2)
        out = put_bytes(out + 2, head)
        memcpy(out, self._words._chars + start, size)
        out = put_bytes(out + size, self._tail)
        memcpy(out, b"\r\n", 2)
        return out + 2


cdef class Grouped(Stream):
    """A `Stream` whose events hold several tokens each, or say how many there have been.

    Args:
        transport, words, seed, head, reasoning_head, reasoning_tokens, limit: As a `Stream`'s.
        tail: As a `Stream`'s; where there are counts, up to that of all tokens.
        group: Tokens that an event holds; the last of the reasoning and the last of all may hold
            fewer.
        prompt_tokens: What the count of all tokens begins with; -1: events say no counts.
        between: From that count to the one of the answer's tokens.
        end: The rest of the event.
    """

    def __init__(self, transport, Words words not None, uint64_t seed, bytes head not None,
                 bytes tail not None, *,
                 Py_ssize_t group=1, Py_ssize_t prompt_tokens=-1, bytes between not None=b"",
                 bytes end not None=b"",
                 bytes reasoning_head not None=b"", Py_ssize_t reasoning_tokens=0,
                 Py_ssize_t limit=4 << 20):
        self._group = group
        self._prompt_tokens = prompt_tokens
        self._between = between
        self._end = end
        Stream.__init__(self, transport, words, seed, head, tail,
                        reasoning_head=reasoning_head, reasoning_tokens=reasoning_tokens,
                        limit=limit)

    cdef Py_ssize_t _room(self) noexcept:
        cdef Py_ssize_t around = PyBytes_GET_SIZE(self._between) + PyBytes_GET_SIZE(self._end)
        cdef Py_ssize_t counts = around + 2 * PLACES
        # The text of a whole group may be written with its last token, and its size is known only
        # behind it.
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
        cdef char *at = put_bytes(body, head)
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
        at = put_bytes(at, self._tail)
        if self._prompt_tokens >= 0:
            at = put_decimal(at, self._prompt_tokens + self.tokens)
            at = put_bytes(at, self._between)
            at = put_decimal(at, self.tokens)
            at = put_bytes(at, self._end)
        size = at - body
        out = put_hex(out, size)
        memcpy(out, b"\r\n", 2)
        memmove(out + 2, body, size)
        out += 2 + size
        memcpy(out, b"\r\n", 2)
        return out + 2


def emit(list streams not None):
    """Write the next token to each of the streams, in this order; None stands for an answer that
    is not streamed.
    """
    cdef Stream stream
    cdef Py_ssize_t size
    for item in streams:
        if item is None:
            continue
        stream = <Stream?>item
        if stream._fd >= 0:
            size = stream._put_token(scratch) - scratch
            if size:
                stream._send(scratch, size)


cdef enum:
    OTHER = 0
    LETTER = 1
    DIGIT = 2
    CONTINUATION = 3  # of a UTF-8 sequence

cdef unsigned char[256] kinds
cdef int byte
for byte in range(256):
    if b"A"[0] <= byte <= b"Z"[0] or b"a"[0] <= byte <= b"z"[0]:
        kinds[byte] = LETTER
    elif b"0"[0] <= byte <= b"9"[0]:
        kinds[byte] = DIGIT
    else:
        kinds[byte] = CONTINUATION if 0x80 <= byte < 0xC0 else OTHER


def count_tokens(str text not None):
    """Return how many tokens the simulator's tokenizer makes of `text`, without making them.

    A token is a run of ASCII letters or up to three digits, either with one space before it, or
    else one character.
    """
    cdef Py_ssize_t size, i = 0, tokens = 0, end
    cdef const unsigned char *data = <const unsigned char *>PyUnicode_AsUTF8AndSize(text, &size)
    # The byte at `size` is NUL and of no run, so the loops need no bound of their own.
    while i < size:
        tokens += 1
        if data[i] == 0x20 and kinds[data[i + 1]] in (LETTER, DIGIT):
            i += 1
        if kinds[data[i]] == LETTER:
            while kinds[data[i]] == LETTER:
                i += 1
        elif kinds[data[i]] == DIGIT:
            end = i + 3
            while i < end and kinds[data[i]] == DIGIT:
                i += 1
        else:
            i += 1
            while kinds[data[i]] == CONTINUATION:
                i += 1
    return tokens
