# cython: language_level=3
from libc.stdint cimport int64_t
from loadgen.core.histogram cimport Histogram

cdef struct Bytes:
    char *data
    Py_ssize_t size
    Py_ssize_t room


cdef class Record:
    cdef public object outcome, detail, finish_reason, matched_stop, redaction
    cdef public int64_t index, input_tokens, output_tokens, server_tokens
    cdef public int64_t due, ready, sent, connect_ns, first_byte, first_token, first_answer, last_token, closed
    cdef public int64_t prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens
    cdef public int64_t content_events, reasoning_events, other_events, nan_events
    cdef public int64_t reads, counted, tokenized
    cdef public int status, counted_by, target
    cdef public bint reused, done_seen, by_reader, keeps_text, keeps_answer
    cdef Bytes escaped  # the text, as inside a JSON string
    cdef Bytes answered  # that of the answer proper
    cdef int64_t *stamps_ns
    cdef int64_t *tokens  # of each event; NULL while each has borne one
    cdef readonly Py_ssize_t events
    cdef Py_ssize_t room
    cdef int64_t *told  # a pair for each run of events: what they say, and how many they are or when it came
    cdef Py_ssize_t tellings, told_room
    cdef int tell(self, int64_t what, int64_t at_ns) except -1
    cdef int mark(self, int64_t at_ns, int64_t tokens) except -1
    cdef int settle(self) except -1
    cpdef int64_t fold(self, Histogram icl, Histogram itl, int64_t[::1] bins, int64_t start_ns, int64_t bin_ns) except -1
    cdef bint knows_stream(self) noexcept
    cdef int64_t input_expected(self) noexcept
    cdef int64_t output_confirmed(self) noexcept
    cdef int64_t hidden(self) noexcept
    cdef int64_t after_first(self) noexcept
    cdef int64_t after_one(self) noexcept
    cdef int64_t lag(self) noexcept
    cdef int64_t spans(self) noexcept
    cdef bint is_ordered(self) noexcept


cdef class Events:
    cdef public Record record
    cdef readonly bint complete
    cdef bint skip_lf, has_data, first_line, at_end
    cdef int64_t at_ns
    cdef Bytes line, event
    cdef int _expect(self, Record record) except -1
    cdef int _lines(self, const char *p, Py_ssize_t n) except -1
    cdef int _line(self, const char *p, Py_ssize_t n) except -1
    cdef int _last_event(self) except -1
    cdef int _event(self, const char *p, Py_ssize_t n) except -1
    cdef int _event_slowly(self, bytes payload) except -1
    cdef int _usage(self, int64_t prompt, int64_t completion, int64_t cached, int64_t reasoning) except -1
    cdef int _token(self, int kinds, int64_t tokens, int64_t completion) except -1
    cdef int _fail(self, object outcome, object detail) except -1


cdef class Response(Events):
    cdef readonly bint keep_alive, wants_reader
    cdef readonly int64_t keep_alive_ns
    cdef int phase
    cdef bint streamed, chunked, encoded_transfer, closes
    cdef int64_t left, received
    cdef Bytes head, body
    cdef int feed_raw(self, const char *p, Py_ssize_t n, int64_t at_ns) except -1
    cdef bint _fits(self, Py_ssize_t n) except -1
    cdef int _forget_headers(self) except -1
    cdef int _head(self, const char *p, Py_ssize_t n) except -1
    cdef int _header(self, const char *name, Py_ssize_t name_len, const char *value, Py_ssize_t n) except -1
    cdef int _start_body(self) except -1
    cdef int _chunk_line(self) except -1
    cdef int _body(self, const char *p, Py_ssize_t n) except -1
    cdef int _end(self) except -1
    cdef int _whole(self, bytes body) except -1
    cdef int _finish(self) except -1


cdef class Bell:
    cdef public int64_t at_ns
    cdef public object ring
    cdef public bint beats
    cdef readonly int64_t reads, tokens, sends


cdef class Connection


cdef enum:
    AT_ONCE = 1024  # sockets of which the kernel tells
    READ_BYTES = 1 << 18


cdef class Poll(Bell):
    cdef int fd, users
    cdef readonly int64_t linger_ns
    cdef public int leaning
    cdef object loop
    cdef list watched  # by file descriptor
    cdef char[READ_BYTES] buffer
    cdef bint _watch(self, int fd, object what) except -1
    cdef int _forget(self, int fd) except -1
    cdef int _serve(self, int fd) except -1
    cdef int _read(self, Connection connection) except -1


cdef class Connection(Response):
    cdef public object transport, owner, handle, tap
    cdef Poll poll
    cdef int fd  # while the poll reads it, else -1
    cdef int socket_fd
    cdef bint plain, leans
    cdef object error
    cdef public int64_t idle_since
    cdef readonly int64_t requests  # that it has carried
    cdef public bint lost
    cdef int _watch(self) except -1
    cdef int _lean(self) except -1
    cdef int _received(self, const char *p, Py_ssize_t n, int64_t at_ns) except -1
