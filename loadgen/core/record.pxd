# cython: language_level=3
"""The C side of Record: its fields, and what fills and reads them on the hot path."""
cimport cython
from libc.stdint cimport int64_t

from loadgen.core.c.buffer cimport Buffer

cpdef enum:
    UNPLANNED = -1  # input tokens of a prompt that repeats answers, or that no tokenizer has counted

cpdef enum:
    # What tells how many tokens the events of an answer bear.
    BY_EVENTS = 0  # nothing does: each event counts as one token
    BY_IDS = 1     # token ids or logprobs
    BY_USAGE = 2   # usage in each event


cdef struct EventRun:
    int64_t flags  # what each event of the run says (event_flags)
    int64_t count  # token-bearing events with these flags that follow each other; 1 for any other event
    int64_t at_ns  # when the first of them came; 0 for token-bearing ones from a file


@cython.final
cdef class Record:
    cdef public object outcome, detail, finish_reason, matched_stop, redaction
    cdef public int64_t index, input_tokens, output_tokens, server_tokens
    cdef public int64_t due, ready, sent, connect_ns, first_byte, first_token, first_answer, last_token, closed
    cdef public int64_t prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens
    cdef public int64_t content_events, reasoning_events, other_events, nan_events
    cdef public int64_t reads, counted, tokenized
    cdef public int status, counted_by, target
    cdef public bint reused, done_seen, by_reader, keeps_text, keeps_answer
    cdef Buffer text_json, answer_json  # as between the quotes of a JSON string
    cdef readonly Py_ssize_t events
    cdef Py_ssize_t events_capacity
    cdef int64_t *stamps_ns  # one per token-bearing event
    cdef int64_t *tokens  # tokens in each of these events; NULL as long as each bears one
    cdef EventRun *runs
    cdef Py_ssize_t n_runs, runs_capacity
    # What fills it.
    cdef int add_event(self, int64_t flags, int64_t tokens, int64_t completion, int64_t at_ns) except -1
    cdef int set_usage(self, int64_t prompt, int64_t completion, int64_t cached, int64_t reasoning) except -1
    cdef int append_text(self, const char *text, Py_ssize_t n) except -1
    cdef int append_answer(self, const char *text, Py_ssize_t n) except -1
    cpdef end(self, outcome, detail, int64_t at_ns)
    cdef int drop_implausible_counts(self) except -1
    cdef int _reserve(self, Py_ssize_t capacity) except -1
    cdef int _store_counts(self) except -1
    # What reads it.
    cdef bint has_all_runs(self) noexcept
    cdef int64_t get_first_tokens(self) noexcept
    cdef int64_t get_expected_tokens(self) noexcept
    cdef int64_t get_answer_tokens(self) noexcept
    cdef int64_t get_hidden_tokens(self) noexcept
    cdef int64_t tokens_after_first_event(self) noexcept
    cdef int64_t tokens_but_one(self) noexcept
    cdef int64_t get_lag_ns(self) noexcept
    cdef int64_t stamped_span_ns(self) noexcept
    cdef bint is_ordered(self) noexcept
