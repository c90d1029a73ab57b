"""Write server-sent token events to many sockets, and count tokens, at C speed.

A test server that streams 200,000 tokens/s has 5 us for each, and send(2) alone takes most of them. So an event is
put together in one C buffer and goes straight to the socket; the event loop's transport is used only for what the
socket did not take, and until its buffer is empty again everything goes that way, so that the order holds.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.errno cimport EAGAIN, EINTR, ENOBUFS, ENOMEM, errno
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memmove
from loadgen.core.c.clock cimport now_ns
from loadgen.core.c.digits cimport PLACES, put_decimal
from loadgen.engines.sim.heap cimport pop, postpone, push
from loadgen.core.c.leak_count cimport (
    BYTES, COUNTING, STREAMS, VOCABULARIES, count_allocated, count_freed, count_objects, live_count,
)
from loadgen.core.c.sockets cimport MSG_DONTWAIT, MSG_NOSIGNAL, send


cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL


cdef enum:
    CHUNK_OVERHEAD = 20  # a size line of at most 16 hex digits and CR LF, and the CR LF that ends the chunk
    TURN_NS = 1000000  # after writing for so long in one go, requests get to be read

cdef char *scratch = NULL
cdef Py_ssize_t scratch_size = 0


cdef int reserve(Py_ssize_t size) except -1:
    """Make the one output buffer at least `size` bytes."""
    global scratch, scratch_size
    cdef char *grown
    if size > scratch_size:
        grown = <char *>realloc(scratch, size)
        if grown == NULL:
            raise MemoryError
        scratch, scratch_size = grown, size
    return 0


cdef inline char *put(char *out, bytes data) noexcept:
    memcpy(out, PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
    return out + PyBytes_GET_SIZE(data)


cdef inline char *put_hex(char *out, Py_ssize_t value) noexcept:
    cdef int shift = 0
    while value >> (shift + 4):
        shift += 4
    while shift >= 0:
        out[0] = b"0123456789abcdef"[(value >> shift) & 15]
        out += 1
        shift -= 4
    return out


BLANK_TIME = b" " * PLACES  # JSON allows blanks before a number, not zeros


cdef inline void put_time(char *out, int64_t at_ns) noexcept:
    """Write a time, ns >= 0, over a BLANK_TIME."""
    cdef int i = PLACES
    while True:
        i -= 1
        out[i] = b"0"[0] + at_ns % 10
        at_ns //= 10
        if at_ns == 0:
            return


cdef inline uint64_t draw(uint64_t *state) noexcept:
    """Return the next 64 random bits (SplitMix64)."""
    cdef uint64_t bits
    state[0] += <uint64_t>0x9E3779B97F4A7C15
    bits = state[0]
    bits = (bits ^ (bits >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    bits = (bits ^ (bits >> 27)) * <uint64_t>0x94D049BB133111EB
    return bits ^ (bits >> 31)


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
        if not words or not all(word.isascii() and word.isalpha() for word in words):
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
        """Return what a `Stream` with this seed writes as its tokens `skip` to `skip + tokens`, joined."""
        cdef Py_ssize_t i, index
        cdef list parts = []
        for i in range(skip + tokens):
            index = (draw(&seed) >> 32) * self.count >> 32
            if i >= skip:
                parts.append(self._text[self._starts[index]:self._starts[index + 1]])
        return b"".join(parts)[1:].decode()


cdef class Outlet:
    """The way to one socket for one response: straight there, or by way of the transport while that holds anything.

    The transport must write nothing else until the response has ended.

    Args:
        transport: The asyncio or uvloop TCP transport to write to.
        limit: Bytes that may wait for a slow reader; above it the connection is cut.

    Attributes:
        cut: Whether the reader was too slow and the connection was cut.
        held_back: Pieces that the socket did not take when they were written, so that they waited in the transport.
    """

    def __cinit__(self):
        count_objects(STREAMS, 1)

    def __dealloc__(self):
        count_objects(STREAMS, -1)

    def __init__(self, transport, *, Py_ssize_t limit=4 << 20):
        self._transport, self._limit = transport, limit
        self._fd = transport.get_extra_info("socket").fileno()
        # An earlier response may still wait in the transport.
        self._buffered = True

    def send(self, bytes data not None):
        """Write `data` as it is: framing is the caller's."""
        if self._fd >= 0:
            self._send(PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))

    def close(self):
        """Write nothing more: the connection is gone or belongs to the next response."""
        self._fd = -1

    cdef int _send(self, const char *data, Py_ssize_t size) except -1:
        cdef Py_ssize_t sent
        if self._buffered:
            if self._transport.get_write_buffer_size():
                return self._hand_over(data, size)
            self._buffered = False
        sent = send(self._fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT)
        if sent == size:
            return 0
        if sent < 0:
            if errno not in (EAGAIN, EINTR, ENOBUFS, ENOMEM):
                self._fd = -1
                self._transport.abort()
                return 0
            sent = 0
        return self._hand_over(data + sent, size - sent)

    cdef int _hand_over(self, const char *data, Py_ssize_t size) except -1:
        """Let the transport write it when the socket has room, unless too much waits already."""
        if self._transport.get_write_buffer_size() + size > self._limit:
            self.cut = True
            self._fd = -1
            self._transport.abort()
            return 0
        self._buffered = True
        self.held_back += 1
        self._transport.write(PyBytes_FromStringAndSize(data, size))
        return 0


def live():
    """What lives now of this module's objects: how many of each, and their bytes; None unless it is a debug build.

    The one output buffer is not among them: it lives as long as the process.
    """
    if not COUNTING:
        return None
    return {"vocabularies": live_count(VOCABULARIES), "streams": live_count(STREAMS), "bytes": live_count(BYTES)}


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

    def __init__(self, transport, Words words not None, uint64_t seed, bytes head not None, bytes tail not None, *,
                 bytes reasoning_head not None=b"", Py_ssize_t reasoning_tokens=0, Py_ssize_t limit=4 << 20):
        Outlet.__init__(self, transport, limit=limit)
        self._words, self._random = words, seed
        self._head, self._tail, self._reasoning_head = head, tail, reasoning_head
        self._reasoning_tokens = reasoning_tokens
        reserve(self._room())

    def write(self, bytes before not None=b"", Py_ssize_t tokens=0, bytes after not None=b"", bytes tail=None):
        """Write `before`, then `tokens` events, then `after`, with one system call where the socket takes it.

        `before` and `after` go out as they are: framing them as HTTP chunks is the caller's. `tail` is that of these
        tokens and all that follow, in place of the one that there was.
        """
        if self._fd < 0:
            return
        if tail is not None:
            self._tail = tail
        reserve(len(before) + tokens * self._room() + len(after))
        cdef char *out = put(scratch, before)
        for _ in range(tokens):
            out = self._put_token(out)
        if PyBytes_GET_SIZE(after):
            out = self._put_rest(out)
        out = put(out, after)
        assert out - scratch <= scratch_size
        self._send(scratch, out - scratch)

    cdef Py_ssize_t _room(self) noexcept:
        """Most bytes that one token's event can take."""
        cdef Py_ssize_t head = max(PyBytes_GET_SIZE(self._head), PyBytes_GET_SIZE(self._reasoning_head))
        return CHUNK_OVERHEAD + head + self._words.longest + PyBytes_GET_SIZE(self._tail)

    cdef char *_put_rest(self, char *out) noexcept:
        """Write the tokens that wait for an event of their own, before what ends the response."""
        return out

    cdef char *_put_token(self, char *out) noexcept:
        cdef uint32_t *starts = self._words._starts
        cdef Py_ssize_t index = (draw(&self._random) >> 32) * self._words.count >> 32
        cdef uint32_t start = starts[index]
        cdef Py_ssize_t size = starts[index + 1] - start
        cdef bytes head = self._reasoning_head if self.tokens < self._reasoning_tokens else self._head
        if self.tokens == 0 or self.tokens == self._reasoning_tokens:
            # A text begins with a word that has no space before it.
            start += 1
            size -= 1
        self.tokens += 1
        out = put_hex(out, PyBytes_GET_SIZE(head) + size + PyBytes_GET_SIZE(self._tail))
        memcpy(out, b"\r\n", 2)
        out = put(out + 2, head)
        memcpy(out, self._words._chars + start, size)
        out = put(out + size, self._tail)
        memcpy(out, b"\r\n", 2)
        return out + 2


def emit(list streams not None):
    """Write the next token to each of the streams, in this order; None stands for an answer that is not streamed."""
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


include "grouped.pxi"
include "planned.pxi"


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

    A token is a run of ASCII letters or up to three digits, either with one space before it, or else one character.
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
