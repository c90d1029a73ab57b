# cython: language_level=3
"""The C side of Answer: its fields, and what fills and reads them on the hot path."""
from libc.stdint cimport int64_t

from loadgen.core.c.memory cimport Buffer
from loadgen.core.c.events cimport EventArrays, EventRuns
from loadgen.core.c.repeated_text cimport TextSoFar

cdef enum:
    MAX_UNREAD = 200  # bytes of an example of what no rule took
    MAX_UNREAD_NAMES = 8  # names of it; what has any other name is counted as "others"

cpdef enum:
    # What tells how many tokens the events of an answer bear.
    BY_EVENTS = 0  # nothing does: each event counts as one token
    BY_IDS = 1     # token ids or logprobs
    BY_USAGE = 2   # usage in each event


cpdef enum Finish:
    # What of the end of an answer has come.
    UNFINISHED
    FINISHED  # its finish reason: its usage may follow
    COMPLETE  # all of it: the finish reason and usage, or [DONE]


cdef class Answer:
    cdef public int64_t output_tokens  # planned
    # When they came: by the kernel's stamp where there is one, else when they were read.
    cdef public int64_t first_token, last_token
    cdef public int64_t first_answer  # the first token of content, not reasoning
    cdef public int64_t first_answer_earliest  # when it can have come at the earliest
    # By the server's usage; -1: it gave none.
    cdef public int64_t prompt_tokens, completion_tokens, cached_tokens
    # those of completion_tokens, streamed or not; -1: the usage gave none
    cdef public int64_t reasoning_tokens
    cdef public int64_t total_tokens  # of prompt and answer; -1: the usage gave none
    # with tokens; until the answer has ended also those that may prove to bear one
    cdef readonly Py_ssize_t events
    cdef Py_ssize_t events_before  # the read that is parsed now
    cdef public int64_t content_events, reasoning_events, other_events  # the same by kind
    cdef public int64_t nan_events  # that hold NaN or infinity
    # With tokens, and without a stamp of the kernel's; or UNBOUNDED.
    cdef public int64_t user_stamped
    # With tokens, and read only after segments came that were lost or overtaken on the way.
    cdef public int64_t reordered
    cdef public int64_t reads  # of the socket, that brought events with tokens
    # tokens of all events: by the events themselves where they say it, else one each
    cdef public int64_t counted
    cdef public int counted_by  # what said so: BY_EVENTS, BY_IDS or BY_USAGE
    # embeddings or scores, 0 before they came; -1: the answer has tokens
    cdef public int64_t results
    cdef public object finish_reason
    cdef public object matched_stop  # the stop word or token id that ended the answer, or None
    cdef public bint done_seen  # whether [DONE] came
    cdef readonly Finish finish  # what of its end has come
    # what of the answer no rule took: its name, how often it came, and an example; or None
    cdef public object unread
    cdef TextSoFar text_so_far
    cdef Buffer text_json, answer_json  # as between the quotes of a JSON string
    # the number of the event of `first_answer`; -1: there is none
    cdef Py_ssize_t first_answer_event
    cdef EventArrays arrays  # one entry for each of the `events`
    cdef Py_ssize_t maybe_events  # those that are marked MAYBE
    cdef Py_ssize_t maybe_last  # the number of the one with the finish reason; -1: there is none
    cdef EventRuns runs  # all events
    # What fills it.
    cdef int add_event(self, int64_t flags, int64_t tokens, int64_t completion,
                       int64_t at_ns) except -1
    cdef int set_read(self, Py_ssize_t first, int64_t read_ns) except -1
    cdef int set_source(self, Py_ssize_t first, int64_t source) except -1
    cdef int set_earliest(self, Py_ssize_t first, Py_ssize_t end, int64_t earliest_ns) except -1
    cdef int set_usage(self, int64_t prompt, int64_t completion, int64_t cached,
                       int64_t reasoning, int64_t total) except -1
    cdef int set_finish(self, str reason) except -1
    cdef int set_done(self) except -1
    cdef int note_unread(self, str what, bytes sample) except -1
    cdef int append_text(self, const char *text, Py_ssize_t n, bint cumulative) except -1
    cdef int append_answer(self, const char *text, Py_ssize_t n, bint cumulative) except -1
    cdef int settle(self) except -1
    cdef int _settle_usage(self) except -1
    cdef int _settle_silent(self, int64_t missing) except -1
    cdef int _promote(self, int64_t missing, Py_ssize_t last) except -1
    cdef void _forget(self, Py_ssize_t event) noexcept
    cdef int _read_ends(self) except -1
    cdef int _drop_implausible_counts(self) except -1
    cdef int _learn_finish(self) except -1
    cdef int _add_maybe(self, int64_t flags, int64_t at_ns) except -1
    cdef bint _is_silent(self, int64_t flags, int64_t tokens, int64_t completion) noexcept
    cdef int _reserve_next(self) except -1
    # What reads it.
    cdef bint has_all_runs(self) noexcept
    cdef int64_t get_first_tokens(self) noexcept
    cdef int64_t get_inexact(self) noexcept
    cdef int64_t get_late(self) noexcept
    cpdef int64_t earliest_at(self, Py_ssize_t event) noexcept
    cdef int64_t stamped_span_ns(self) noexcept
