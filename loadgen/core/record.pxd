# cython: language_level=3
"""The C side of Record: its fields, and what fills and reads them on the hot path."""
cimport cython
from libc.stdint cimport int64_t

from loadgen.core.answer cimport Answer
from loadgen.core.c.network cimport Opening, TcpFacts
from loadgen.core.c.server_times cimport ServerTimes

cpdef enum:
    # input tokens of a prompt that repeats answers, or that no tokenizer has counted
    UNPLANNED = -1
    # user-stamped tokens of a record whose file does not say how late its stamps may be
    UNBOUNDED = -1

@cython.final
cdef class Record(Answer):
    # The plan: written before it is sent.
    cdef public int64_t index  # number of the request in the schedule
    cdef public int target  # which of the run's targets it is sent to, from 0
    cdef public int class_number  # which of the run's classes it is in, from 0
    cdef public int64_t input_tokens  # planned, or UNPLANNED
    # input tokens that the server is expected to count; -1: unknown
    cdef public int64_t server_tokens
    # the texts that are sent, each of which has a result; 0: unknown
    cdef public int64_t texts
    cdef public int64_t turn  # its place in its session, from 0; -1: the run has no sessions
    # whether the answer has tokens and comes in one piece: they have no times
    cdef public bint is_whole
    cdef public int64_t due  # when the schedule wants it sent
    cdef public int64_t ready  # when a slot under the concurrency cap was free for it
    cdef public object source  # where its prompt comes from; None: only a file of records says it
    # header lines with the token of its session, to be sent, or None
    cdef public object session_token
    # the client itself ends it once so many tokens have come; 0: not for that
    cdef public int64_t end_after_tokens
    cdef public int64_t end_after_ns  # so long after it was sent; -1: not for that
    cdef public object ends_as  # its outcome and detail then, or None
    cdef public bint keeps_text, keeps_answer, keeps_head
    # a function that takes credentials out of the text of the answer, or None
    cdef public object redaction
    # The measurement: written by what sends and reads it.
    cdef public int64_t connect_ns  # how long it waited for a connection; 0 if one was ready
    # when it left, by the kernel's stamp where there is one; else when its bytes were handed over
    cdef public int64_t sent
    cdef public int64_t written  # when it had left at the latest; 0: not known
    # when it came: by the kernel's stamp where there is one, else when it was read
    cdef public int64_t first_byte
    cdef public int64_t closed  # the end of the response
    cdef public bint reused  # whether its connection had carried a request before
    # whether so much was unread at once that the server may have had to wait
    cdef public bint window_filled
    cdef public int status  # of HTTP
    cdef public object retry_after  # the value of Retry-After in an answer with an error, or None
    # the status line and fields of the answer, if `keeps_head`; else None
    cdef public object response_head
    cdef ServerTimes times  # what the server has said of its time
    cdef Opening opening  # of the connection that was opened for it
    cdef TcpFacts tcp  # of its connection, at its end
    # The delivery: written by what ends it, sends it again or counts it.
    cdef public object outcome, detail
    cdef public int64_t attempts  # 1, or more where the server refused it and it was sent again
    # from ready to when the last attempt was to be sent; 0: there was one
    cdef public int64_t retried_ns
    # of the first of several attempts; 0: there was one
    cdef public int64_t first_sent, first_closed
    cdef public int first_status  # the same
    cdef public int64_t tokenized  # tokens of `text` by a tokenizer; -1: not counted
    cpdef int add_times(self, dict times) except -1
    cpdef end(self, outcome, detail, int64_t at_ns)
    # What reads it.
    cdef bint has_count(self) noexcept
    cdef int64_t get_expected_tokens(self) noexcept
    cdef int64_t get_answer_tokens(self) noexcept
    cdef int64_t get_hidden_tokens(self) noexcept
    cdef int64_t get_silent_events(self) noexcept
    cdef int64_t tokens_after_first_event(self) noexcept
    cdef int64_t tokens_but_one(self) noexcept
    cdef int64_t get_lag_ns(self) noexcept
    cdef bint is_ordered(self) noexcept
    cdef bint has_overlong_times(self) noexcept
    cdef list _listed(self, const int64_t *array)
    cdef bytes _bytes(self, const int64_t *array)
