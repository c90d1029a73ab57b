# cython: language_level=3
"""The C side of what counts the requests of a run."""
cimport cython
from libc.stdint cimport int64_t

from loadgen.core.histogram cimport Histogram, uint128
from loadgen.core.record cimport Record


@cython.final
cdef class Latency:
    cdef Histogram exact  # of values that are known exactly
    cdef Histogram inexact, inexact_least, inexact_greatest  # of all others

    cdef inline void add(self, int64_t value, int64_t least, int64_t greatest,
                         int64_t count) noexcept:
        """Count a value `count` times; a latency is never less than 0."""
        if least == value == greatest:
            self.exact.add(value, count)
        else:
            self.add_inexact(value, least, greatest, count)

    cdef void add_inexact(self, int64_t value, int64_t least, int64_t greatest,
                          int64_t count) noexcept


@cython.final
cdef class Tally:
    cdef int64_t start_ns, bin_ns
    cdef int64_t *bin_counts
    cdef int64_t bin_count
    cdef bint from_due
    cdef bint has_limits
    cdef int64_t ttft_limit_ns, tpot_limit_ns, e2el_limit_ns
    cdef int64_t column_ns  # the width of a column of the timeline
    cdef int64_t end_ns  # when its last column ends, from the start
    cdef int64_t *ttft_over_time  # by column * rows + row, as `sketch.Cells`
    cdef int64_t *icl_over_time
    cdef Histogram lag, pool_wait, connect
    cdef Latency ttft_due, ttft_sent, ttfo_due, ttfo_sent, e2el_due, e2el_sent, tpot, tpot_n1, icl
    cdef Latency itl
    # sums over many streams for days exceed 64 bits
    cdef readonly uint128 sojourn_ns, stream_ns, decode_ns
    cdef readonly int64_t early, late_connections, window_filled, disordered, overlong_times
    cdef readonly int64_t lost_token_events, broken_off, never_due
    cdef readonly int64_t planned_input_tokens, predicted_server_input_tokens, input_predicted
    cdef readonly int64_t input_tokens
    cdef readonly int64_t cached_tokens, cached_counted, input_as_planned, input_counted
    cdef readonly int64_t unexpected_input_tokens
    cdef readonly int64_t unplanned_requests, unplanned_input_tokens, unknown_input
    cdef readonly int64_t planned_output_tokens, output_as_planned, output_tokens, unseen_tokens
    cdef readonly int64_t surplus_events
    cdef readonly int64_t usage_requests, id_requests, tokenizer_requests, event_requests
    cdef readonly int64_t usage_per_event, ids_per_event, imputed_gaps, hidden_tokens, nan_events
    cdef readonly int64_t inexact_events, user_stamped_events, unbounded_events
    cdef readonly int64_t reordered_events, late_events
    cdef readonly int64_t token_events, token_reads, content_events, reasoning_events, other_events
    cdef readonly int64_t decode_tokens, unequal, results
    cdef readonly int64_t silent_events, late_ends, tail_ns, unnamed_ends
    cdef readonly int64_t disagreeing_counts, disagreeing_tokens
    cdef readonly int64_t good, good_sent
    cpdef add(self, Record record)
    cdef int _add_waits(self, Record record) except -1
    cdef int _add_failure(self, Record record) except -1
    cdef int _add_input(self, Record record) except -1
    cdef int _add_output(self, Record record) except -1
    cdef int _add_end(self, Record record) except -1
    cdef int _add_latencies(self, Record record) except -1
    cdef int _add_over_time(self, Record record) except -1
    cdef int _judge(self, Record record) except -1
    cdef bint _is_good(self, Record record, int64_t since_ns, int64_t tokens) noexcept
    cdef void _count_over_time(self, int64_t *cells, int64_t at_ns, int64_t since_ns) noexcept
    cdef int _widen_columns(self, int64_t last_ns) except -1
    cdef int _reach(self, int64_t last_bin) except -1
