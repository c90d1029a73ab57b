# cython: language_level=3
"""Tally: sums and histograms over the requests of a run, taken from each record once."""
from libc.stdint cimport int64_t
from loadgen.core.histogram cimport COARSE, Histogram, index_of, uint128
from loadgen.core.wire cimport Record

from array import array

from loadgen.core.outcome import Outcome
from loadgen.workload.prompt import UNPLANNED
from loadgen.core.timeline import COLUMNS, ROWS, SHORTEST_NS, Timeline, empty, width_for, widened
from loadgen.core.wire import BY_EVENTS, BY_IDS, BY_USAGE

cdef int64_t early_ns = 50_000, unplanned = UNPLANNED
cdef int by_events = BY_EVENTS, by_ids = BY_IDS, by_usage = BY_USAGE
cdef object OK = Outcome.OK
cdef Py_ssize_t GROWTH = 1_000  # bins added at a time
cdef int64_t columns = COLUMNS, rows = ROWS


cdef class Tally:
    """Counts records into its attributes, into `histograms`, and output tokens over time into `bins`.

    Args:
        start_ns: When the clock of the run starts.
        bin_ns: How long a bin is.
        histograms: By the names of `snapshot.DISTRIBUTIONS`.
        from_due: Whether TTFT on the timeline counts from due (else from sent).

    Attributes:
        bins: Output tokens per bin, as an array of int64 that may end in zeros.
    """

    cdef int64_t start_ns, bin_ns
    cdef int64_t[::1] into
    cdef readonly object bins
    cdef bint from_due
    cdef int64_t column_ns, end_ns  # how wide a column of the timeline is; where the last of them ends, from the start
    cdef int64_t[:, ::1] ttft_over_time, icl_over_time
    cdef Histogram lag, pool_wait, connect, ttft_due, ttft_sent, ttfo_due, ttfo_sent, e2el_due, e2el_sent
    cdef Histogram tpot, tpot_n1, icl, itl
    # `snapshot.COUNTERS` says what they are.
    cdef readonly uint128 sojourn_ns, stream_ns, decode_ns  # of all streams, side by side for days
    cdef readonly int64_t early, late_connections, by_reader, disordered, lost_token_events
    cdef readonly int64_t planned_input_tokens, predicted_server_input_tokens, input_predicted, input_tokens
    cdef readonly int64_t cached_tokens, cached_counted, input_as_planned, input_counted, unexpected_input_tokens
    cdef readonly int64_t unplanned_requests, unplanned_input_tokens, unknown_input
    cdef readonly int64_t planned_output_tokens, output_as_planned, output_tokens, unseen_tokens, surplus_events
    cdef readonly int64_t usage_requests, id_requests, tokenizer_requests, event_requests
    cdef readonly int64_t usage_per_event, ids_per_event, imputed_gaps, hidden_tokens, nan_events
    cdef readonly int64_t token_events, token_reads, content_events, reasoning_events, other_events
    cdef readonly int64_t decode_tokens, unequal

    def __init__(self, int64_t start_ns, int64_t bin_ns, dict histograms not None, bint from_due=True):
        self.start_ns, self.bin_ns, self.from_due = start_ns, bin_ns, from_due
        self.lag, self.pool_wait = histograms["lag"], histograms["pool_wait"]
        self.connect = histograms["connect"]
        self.ttft_due, self.ttft_sent = histograms["ttft_due"], histograms["ttft_sent"]
        self.ttfo_due, self.ttfo_sent = histograms["ttfo_due"], histograms["ttfo_sent"]
        self.e2el_due, self.e2el_sent = histograms["e2el_due"], histograms["e2el_sent"]
        self.tpot, self.tpot_n1 = histograms["tpot"], histograms["tpot_n1"]
        self.icl, self.itl = histograms["icl"], histograms["itl"]
        self._reach(GROWTH)
        self.column_ns, self.end_ns = SHORTEST_NS, SHORTEST_NS * columns
        self.ttft_over_time, self.icl_over_time = empty(), empty()

    @property
    def timeline(self):
        """The `Timeline` of what has been counted, which stays as it is."""
        return Timeline(self.column_ns, self.ttft_over_time.base.copy(), self.icl_over_time.base.copy())

    def add(self, Record record not None):
        """Count a record that has its outcome."""
        if record.sent:
            self._add_waits(record)
        if record.outcome is OK:
            self._add_input(record)
            self._add_output(record)
            self._add_events(record)
            self._add_latencies(record)
            self._add_over_time(record)
        else:
            self.lost_token_events += record.events

    cdef int _add_waits(self, Record record) except -1:
        cdef int64_t lag = record.lag()
        self.lag.add(max(lag, 0), 1)
        self.pool_wait.add(record.ready - record.due, 1)
        self.connect.add(record.connect_ns, 1)
        self.sojourn_ns += record.closed - record.sent
        self.early += lag < -early_ns
        self.late_connections += record.connect_ns != 0
        self.by_reader += record.by_reader
        if lag >= 0 and not record.is_ordered():  # one sent early is counted as that
            self.disordered += 1
        return 0

    cdef int _add_input(self, Record record) except -1:
        cdef int64_t expected = record.input_expected(), told = max(record.prompt_tokens, 0)
        if record.input_tokens == unplanned:
            self.unplanned_requests += 1
            self.unplanned_input_tokens += told
            self.unknown_input += record.prompt_tokens < 0
            self.input_tokens += told
        else:
            self.planned_input_tokens += record.input_tokens
            if record.server_tokens >= 0:
                self.input_predicted += 1
                self.predicted_server_input_tokens += record.server_tokens
            if record.prompt_tokens >= 0:
                self.input_counted += 1
                self.input_as_planned += record.prompt_tokens == expected
                self.unexpected_input_tokens += record.prompt_tokens - expected
            self.input_tokens += record.prompt_tokens if record.prompt_tokens >= 0 else expected
        if record.cached_tokens >= 0:
            self.cached_counted += 1
            self.cached_tokens += record.cached_tokens
        return 0

    cdef int _add_output(self, Record record) except -1:
        cdef int64_t tokens = record.output_confirmed()
        self.planned_output_tokens += record.output_tokens
        self.output_as_planned += tokens == record.output_tokens
        self.output_tokens += tokens
        if record.completion_tokens >= 0:
            self.usage_requests += 1
            self.unseen_tokens += max(tokens - record.counted, 0)
            self.surplus_events += max(record.counted - tokens, 0)
            self.hidden_tokens += record.hidden()
        elif record.tokenized >= 0:
            self.tokenizer_requests += 1
        elif record.counted_by == by_events:
            self.event_requests += 1
        else:
            self.id_requests += 1
        self.usage_per_event += record.counted_by == by_usage
        self.ids_per_event += record.counted_by == by_ids
        return 0

    cdef int _add_events(self, Record record) except -1:
        """Its events, the gaps between them and between tokens, and the tokens over time."""
        cdef int64_t last_bin = (record.last_token - self.start_ns) // self.bin_ns
        if last_bin >= self.into.shape[0]:
            self._reach(last_bin + GROWTH)
        self.token_events += record.events
        self.token_reads += record.reads
        self.content_events += record.content_events
        self.reasoning_events += record.reasoning_events
        self.other_events += record.other_events
        self.nan_events += record.nan_events
        self.imputed_gaps += record.fold(self.icl, self.itl, self.into, self.start_ns, self.bin_ns)
        return 0

    cdef int _add_latencies(self, Record record) except -1:
        cdef int64_t due = record.due, sent = record.sent, first = record.first_token, last = record.last_token
        cdef int64_t after_first = record.after_first(), after_one = record.after_one()
        self.ttft_due.add(first - due, 1)
        self.ttft_sent.add(first - sent, 1)
        self.e2el_due.add(last - due, 1)
        self.e2el_sent.add(last - sent, 1)
        if record.first_answer:
            self.ttfo_due.add(record.first_answer - due, 1)
            self.ttfo_sent.add(record.first_answer - sent, 1)
        self.stream_ns += last - first
        self.unequal += record.spans() != last - first
        if after_first <= 0:
            return 0
        self.tpot.add((last - first) // after_first, 1)
        self.decode_ns += last - first
        self.decode_tokens += after_first
        if after_one > 0:
            self.tpot_n1.add((last - first) // after_one, 1)
        return 0

    cdef int _add_over_time(self, Record record) except -1:
        cdef int64_t *stamps = record.stamps_ns
        cdef Py_ssize_t i
        if record.last_token - self.start_ns >= self.end_ns:
            self._widen(record.last_token - self.start_ns)
        self._count(self.ttft_over_time, record.first_token, record.due if self.from_due else record.sent)
        for i in range(1, record.events):
            self._count(self.icl_over_time, stamps[i], stamps[i - 1])
        return 0

    cdef inline void _count(self, int64_t[:, ::1] counts, int64_t at_ns, int64_t since_ns) noexcept:
        """Count what has taken from `since_ns` to `at_ns`, where it ended."""
        cdef int64_t column = (at_ns - self.start_ns) // self.column_ns, row
        if at_ns >= since_ns:
            row = index_of(at_ns - since_ns) // COARSE
            counts[max(0, min(column, columns - 1)), min(row, rows - 1)] += 1

    cdef int _widen(self, int64_t last_ns) except -1:
        """Have the columns of the timeline reach `last_ns` after the start."""
        width_ns = width_for(last_ns, self.column_ns)
        times = width_ns // self.column_ns
        self.ttft_over_time = widened(self.ttft_over_time.base, times)
        self.icl_over_time = widened(self.icl_over_time.base, times)
        self.column_ns, self.end_ns = width_ns, width_ns * columns
        return 0

    cdef int _reach(self, Py_ssize_t size) except -1:
        grown = array("q", bytes(8 * size))
        if self.bins is not None:
            grown[: len(self.bins)] = self.bins
        self.bins, self.into = grown, grown
        return 0
