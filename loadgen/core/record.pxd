# cython: language_level=3
"""The C side of Record: its fields, and what fills and reads them on the hot path."""
cimport cython
from libc.stdint cimport int64_t

from loadgen.core.c.memory cimport Buffer
from loadgen.core.c.events cimport EventArrays, EventRuns

cpdef enum:
    # input tokens of a prompt that repeats answers, or that no tokenizer has counted
    UNPLANNED = -1
    # user-stamped tokens of a record whose file does not say how late its stamps may be
    UNBOUNDED = -1

cpdef enum:
    # What tells how many tokens the events of an answer bear.
    BY_EVENTS = 0  # nothing does: each event counts as one token
    BY_IDS = 1     # token ids or logprobs
    BY_USAGE = 2   # usage in each event


cdef enum:
    TEXT_HEAD = 64  # bytes


cdef enum Finish:
    # What of the end of an answer has come.
    UNFINISHED
    FINISHED  # its finish reason: its usage may follow
    COMPLETE  # all of it: the finish reason and usage, or [DONE]


@cython.final
cdef class Record:
    cdef public int64_t index  # number of the request in the schedule
    cdef public int target  # which of the run's targets it was sent to, from 0
    cdef public int class_number  # which of the run's classes it is in, from 0
    cdef public int64_t input_tokens, output_tokens  # planned; input_tokens may be UNPLANNED
    # input tokens that the server is expected to count; -1: unknown
    cdef public int64_t server_tokens
    # Times.
    cdef public int64_t due  # when the schedule wanted it sent
    cdef public int64_t ready  # when a slot under the concurrency cap was free for it
    # when it left, by the kernel's stamp where there is one; else when its bytes were handed over
    cdef public int64_t sent
    cdef public int64_t written  # when it had left at the latest; 0: not known
    cdef public int64_t connect_ns  # how long opening a connection took; 0 if an open one was used
    # When they came: by the kernel's stamp where there is one, else when they were read.
    cdef public int64_t first_byte, first_token, last_token
    cdef public int64_t first_answer  # the first token of content, not reasoning
    cdef public int64_t first_answer_earliest  # when it can have come at the earliest
    cdef public int64_t closed  # the end of the response
    # Counts.
    # By the server's usage; -1: it gave none.
    cdef public int64_t prompt_tokens, completion_tokens, cached_tokens
    # those of completion_tokens, streamed or not; -1: the usage gave none
    cdef public int64_t reasoning_tokens
    cdef public int64_t total_tokens  # of prompt and answer; -1: the usage gave none
    # with tokens; until the answer has ended also those that may prove to bear one
    cdef readonly Py_ssize_t events
    cdef public int64_t content_events, reasoning_events, other_events  # the same by kind
    cdef public int64_t nan_events  # that hold NaN or infinity
    # With tokens, and without a stamp of the kernel's; or UNBOUNDED.
    cdef public int64_t user_stamped
    cdef public int64_t reads  # of the socket, that brought events with tokens
    # tokens of all events: by the events themselves where they say it, else one each
    cdef public int64_t counted
    cdef public int counted_by  # what said so: BY_EVENTS, BY_IDS or BY_USAGE
    cdef public int64_t turn  # its place in its session, from 0; -1: the run has no sessions
    # embeddings or scores, 0 before they came; -1: the answer has tokens
    cdef public int64_t results
    # the texts that were sent, each of which has a result; 0: unknown
    cdef public int64_t texts
    # whether the answer has tokens and comes in one piece: they have no times
    cdef public bint is_whole
    cdef public int64_t tokenized  # tokens of `text` by a tokenizer; -1: not counted
    # How it ended.
    cdef public object outcome, detail, finish_reason
    cdef public object matched_stop  # the stop word or token id that ended the answer, or None
    cdef public int status  # of HTTP
    cdef public bint reused  # whether its connection had carried a request before
    cdef public bint done_seen  # whether [DONE] came
    cdef Finish finish  # what of its end has come
    cdef public bint by_reader  # whether aiohttp's reader read it
    # whether so much was unread at once that the server may have had to wait
    cdef public bint window_filled
    # What to keep; set before the request.
    cdef public bint keeps_text, keeps_answer, keeps_head
    # a function that takes credentials out of the text of the answer, or None
    cdef public object redaction
    # what of the answer no rule took: its name, how often it came, and an example; or None
    cdef public object unread
    # To tell text that repeats all text before: the kind of the text, its size, its events, and
    # how it begins.
    cdef int text_kinds
    cdef Py_ssize_t text_size, text_events
    cdef char[TEXT_HEAD] text_head
    cdef Buffer text_json, answer_json  # as between the quotes of a JSON string
    # the number of the event of `first_answer`; -1: there is none
    cdef Py_ssize_t first_answer_event
    cdef EventArrays arrays  # one entry for each of the `events`
    cdef Py_ssize_t maybe_events  # those that are marked MAYBE
    cdef Py_ssize_t maybe_last  # the number of the one with the finish reason; -1: there is none
    cdef EventRuns runs  # all events
    # When its user leaves; set before the request.
    cdef public int64_t disconnect_tokens  # after so many tokens have come; 0: not for that
    cdef public int64_t disconnect_ns  # so long after it was sent; -1: not for that
    # How often it was sent.
    cdef public int64_t attempts  # 1, or more where the server refused it and it was sent again
    # from ready to when the last attempt was to be sent; 0: there was one
    cdef public int64_t retried_ns
    # of the first of several attempts; 0: there was one
    cdef public int64_t first_sent, first_closed
    cdef public int first_status  # the same
    cdef public object retry_after  # the value of Retry-After in an answer with an error, or None
    # header lines with the token of its session, to be sent, or None
    cdef public object session_token
    # the status line and fields of the answer, if `keeps_head`; else None
    cdef public object response_head
    # What fills it.
    cdef int add_event(self, int64_t flags, int64_t tokens, int64_t completion,
                       int64_t at_ns) except -1
    cdef int set_read(self, Py_ssize_t first, int64_t read_ns) except -1
    cdef int set_earliest(self, Py_ssize_t first, Py_ssize_t end, int64_t earliest_ns) except -1
    cdef int set_usage(self, int64_t prompt, int64_t completion, int64_t cached,
                       int64_t reasoning, int64_t total) except -1
    cdef int set_finish(self, str reason) except -1
    cdef int set_done(self) except -1
    cdef int note_unread(self, str what, bytes sample) except -1
    cdef Py_ssize_t find_repeated(self, int kinds, const char *text, Py_ssize_t n) except -1
    cdef int _learn_finish(self) except -1
    cdef int _settle_usage(self) except -1
    cdef int append_text(self, const char *text, Py_ssize_t n, bint cumulative) except -1
    cdef int append_answer(self, const char *text, Py_ssize_t n, bint cumulative) except -1
    cpdef end(self, outcome, detail, int64_t at_ns)
    cdef int settle(self) except -1
    cdef int _add_maybe(self, int64_t flags, int64_t at_ns) except -1
    cdef bint _is_silent(self, int64_t flags, int64_t tokens, int64_t completion) noexcept
    cdef int _settle_silent(self, int64_t missing) except -1
    cdef int _promote(self, int64_t missing) except -1
    cdef int _reserve_next(self) except -1
    cdef int _read_ends(self) except -1
    cdef int _drop_implausible_counts(self) except -1
    cdef inline Py_ssize_t add_text(self, int kinds, const char *text, Py_ssize_t n) except -1:
        """Count n bytes of text; return how many of its first bytes are all text before, again."""
        if n >= self.text_size or self.text_size < TEXT_HEAD or kinds != self.text_kinds:
            return self.find_repeated(kinds, text, n)
        self.text_size += n
        self.text_events += 1
        return 0
    # What reads it.
    cdef bint has_all_runs(self) noexcept
    cdef int64_t get_first_tokens(self) noexcept
    cdef int64_t get_expected_tokens(self) noexcept
    cdef int64_t get_answer_tokens(self) noexcept
    cdef int64_t get_hidden_tokens(self) noexcept
    cdef int64_t get_silent_events(self) noexcept
    cdef int64_t tokens_after_first_event(self) noexcept
    cdef int64_t tokens_but_one(self) noexcept
    cdef int64_t get_lag_ns(self) noexcept
    cdef int64_t get_inexact(self) noexcept
    cpdef int64_t earliest_at(self, Py_ssize_t event) noexcept
    cdef int64_t stamped_span_ns(self) noexcept
    cdef bint is_ordered(self) noexcept
    cdef list _listed(self, const int64_t *array)
    cdef bytes _bytes(self, const int64_t *array)
