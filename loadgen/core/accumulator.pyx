# cython: language_level=3
"""Tally: sums and histograms over the requests of a run, each record counted once when it has
ended.

Budget per gap between two token-bearing events whose arrival is known exactly: two histogram
counters, one in the timeline, and one bin; where it is not, six histogram counters. No Python
object.
"""
cimport cython
from libc.stdint cimport INT64_MAX, int64_t
from libc.stdlib cimport free
from libc.string cimport memset

from loadgen.core.answer cimport BY_EVENTS, BY_IDS, BY_USAGE
from loadgen.core.c.memory cimport (
    BYTES, COUNTING, count_freed, free_pages, live_count, resized, zero_pages,
)
from loadgen.core.histogram cimport COARSE, Histogram, index_of, uint128
from loadgen.core.record cimport UNBOUNDED, UNPLANNED, Record

from array import array

from loadgen.core.outcome import Outcome
from loadgen.core.sketch import COLUMNS, ROWS, MIN_WIDTH_NS, Sketch, Timeline, width_for

cdef enum:
    LATE_END_NS = 50000000  # a response that is open for longer after its last token counts
    EARLY_NS = 50000  # a request sent so long before it was due counts as early
    BIN_GROWTH = 1000  # bins added at a time

cdef object OK = Outcome.OK, CANCELLED = Outcome.CANCELLED, STREAM_ERROR = Outcome.STREAM_ERROR
cdef object NO_LIMIT = INT64_MAX
cdef int64_t columns = COLUMNS, rows = ROWS


@cython.final
cdef class Latency:
    """Counts the values of one latency, ns, each with the least and the greatest that it may
    truly have been.
    """

    def __init__(self):
        self.exact = Histogram()
        self.inexact = Histogram()
        self.inexact_least = Histogram()
        self.inexact_greatest = Histogram()

    @property
    def points(self):
        """A new histogram of the values."""
        return self.exact + self.inexact

    @property
    def sketch(self):
        """The `Sketch` of the values: no histogram is copied, so that reports of progress cost
        little.
        """
        counts = self.exact.coarse()
        for lowest, count in self.inexact.coarse().items():
            counts[lowest] = counts.get(lowest, 0) + count
        return Sketch(dict(sorted(counts.items())), self.exact.total + self.inexact.total)

    @property
    def lower(self):
        """A new histogram of the least that each value may truly have been; it has as many
        values as `points`.
        """
        return self.exact + self.inexact_least

    @property
    def upper(self):
        """A new histogram of the greatest that each value may truly have been; it has as many
        values as `points`.
        """
        return self.exact + self.inexact_greatest

    cdef void add_inexact(self, int64_t value, int64_t least, int64_t greatest,
                          int64_t count) noexcept:
        self.inexact.add(value, count)
        self.inexact_least.add(max(0, least), count)
        self.inexact_greatest.add(greatest, count)


cdef int64_t fold_events(
    Record record, Latency icl, Latency itl, int64_t *bins, int64_t last, int64_t start_ns,
    int64_t bin_ns
) noexcept:
    """Add a record's gaps between events to `icl`, those between tokens to `itl`, and its tokens to
    `bins`.

    If an event brings k tokens, the gap since the last event that brought any counts as k gaps of a
    k-th of it. The tokens of the answer are spread over the events by how many each bears, in whole
    tokens; hidden reasoning tokens are spread evenly over the time from sent to the first event.

    Args:
        record: An ended record with outcome OK.
        icl, itl: What counts the gaps.
        bins: Tokens per `bin_ns` since `start_ns`; they reach to the last token.
        last: The number of the last one.

    Returns:
        How many gaps in `itl` are such k-ths.
    """
    cdef Py_ssize_t i, bin, first_bin, last_bin
    cdef int64_t least_ns, greatest_ns
    cdef int64_t earliest_since_ns = record.earliest_at(0) if record.events else 0
    cdef int64_t attributed, k = 1, borne = 0, spread = 0, imputed = 0
    cdef int64_t hidden = record.get_hidden_tokens()
    cdef int64_t tokens = record.get_answer_tokens() - hidden
    cdef int64_t *stamps_ns = record.arrays.stamps_ns
    cdef int64_t since_ns = stamps_ns[0] if record.events else 0
    if hidden:
        last_bin = max(0, min((stamps_ns[0] - start_ns) // bin_ns, last))
        first_bin = max(0, min((record.sent - start_ns) // bin_ns, last_bin))
        for bin in range(first_bin, last_bin + 1):
            attributed = hidden * (bin - first_bin + 1) // (last_bin - first_bin + 1)
            bins[bin] += attributed - spread
            spread = attributed
        spread = 0
    for i in range(record.events):
        if record.arrays.tokens != NULL:
            k = record.arrays.tokens[i]
        borne += k
        attributed = tokens * borne // max(record.counted, 1)
        bin = (stamps_ns[i] - start_ns) // bin_ns
        bins[max(0, min(bin, last))] += attributed - spread
        spread = attributed
        if i > 0:
            least_ns = record.earliest_at(i) - stamps_ns[i - 1]
            greatest_ns = stamps_ns[i] - record.earliest_at(i - 1)
            icl.add(stamps_ns[i] - stamps_ns[i - 1], least_ns, greatest_ns, 1)
        if i > 0 and k > 0:
            least_ns = record.earliest_at(i) - since_ns
            greatest_ns = stamps_ns[i] - earliest_since_ns
            itl.add((stamps_ns[i] - since_ns) // k, least_ns // k, greatest_ns // k, k)
            if k > 1:
                imputed += k
        if k > 0:
            since_ns, earliest_since_ns = stamps_ns[i], record.earliest_at(i)
    return imputed


cdef void widen(int64_t *cells, int64_t times) noexcept:
    """Add up the counts of each `times` columns: the sums are the first columns, and 0 stands in
    the rest.
    """
    cdef int64_t cell, count
    for cell in range(columns * rows):
        count, cells[cell] = cells[cell], 0
        cells[cell // rows // times * rows + cell % rows] += count


cdef dict above_zero(int64_t *cells, int64_t last_column):
    """Return the counts above 0, of the columns up to the last one, as `sketch.Cells`."""
    cdef int64_t cell, end = (min(last_column, columns - 1) + 1) * rows
    return {cell: cells[cell] for cell in range(end) if cells[cell]}


cdef object array_of(int64_t *counts, int64_t count):
    """Return the counts as an array('q'), without the zeros at its end."""
    while count and not counts[count - 1]:
        count -= 1
    return array("q", (<char *>counts)[: count * <int64_t>sizeof(int64_t)])


def live():
    """Return the bytes that this module has allocated; None unless it is a debug build."""
    return {"bytes": live_count(BYTES)} if COUNTING else None


@cython.final
cdef class Tally:
    """Counts records into its attributes and into histograms, and output tokens over time into
    `bins`.

    Args:
        start_ns: When the clock of the run starts.
        bin_ns: How long a bin is.
        latencies: What counts each latency, by the names in `metrics.snapshot.LATENCIES`.
        waits: Histograms of ns by the names in `metrics.snapshot.WAITS`.
        from_due: Whether TTFT on the timeline, and the limits, count from due; else from sent.
        limits: The --goodput limits, ns, by ttft, tpot or e2el.

    Attributes:
        bins: Output tokens per bin, a new array('q') that ends with the last token.

    The other attributes are the counters that `metrics.snapshot.COUNTERS` describes.
    """

    def __init__(self, int64_t start_ns, int64_t bin_ns, dict latencies not None,
                 dict waits not None,
                 bint from_due=True, dict limits=None):
        self.start_ns, self.bin_ns, self.from_due = start_ns, bin_ns, from_due
        self.has_limits = bool(limits)
        self.ttft_limit_ns, self.tpot_limit_ns, self.e2el_limit_ns = [
            min((limits or {}).get(name, NO_LIMIT), NO_LIMIT) for name in ("ttft", "tpot", "e2el")
        ]
        self.lag, self.pool_wait, self.connect = waits["lag"], waits["pool_wait"], waits["connect"]
        self.ttft_due, self.ttft_sent = latencies["ttft_due"], latencies["ttft_sent"]
        self.ttfo_due, self.ttfo_sent = latencies["ttfo_due"], latencies["ttfo_sent"]
        self.e2el_due, self.e2el_sent = latencies["e2el_due"], latencies["e2el_sent"]
        self.tpot, self.tpot_n1 = latencies["tpot"], latencies["tpot_n1"]
        self.icl, self.itl = latencies["icl"], latencies["itl"]
        self._reach(0)
        self.column_ns, self.end_ns = MIN_WIDTH_NS, MIN_WIDTH_NS * columns
        self.ttft_over_time = <int64_t *>zero_pages(columns * rows * sizeof(int64_t))
        self.icl_over_time = <int64_t *>zero_pages(columns * rows * sizeof(int64_t))

    def __dealloc__(self):
        count_freed(self.bin_counts)
        free(self.bin_counts)
        free_pages(self.ttft_over_time, columns * rows * sizeof(int64_t))
        free_pages(self.icl_over_time, columns * rows * sizeof(int64_t))

    @property
    def bins(self):
        return array_of(self.bin_counts, self.bin_count)

    @property
    def timeline(self):
        """A copy of the `Timeline` of the records counted so far."""
        cdef int64_t last_column = self.bin_count * self.bin_ns // self.column_ns
        return Timeline(self.column_ns, above_zero(self.ttft_over_time, last_column),
                        above_zero(self.icl_over_time, last_column))

    cpdef add(self, Record record):
        """Count an ended record."""
        if record.sent:
            self._add_waits(record)
        if record.outcome is OK:
            self._add_input(record)
            self._add_output(record)
            self._add_end(record)
            if record.times.by:
                self.overlong_times += record.has_overlong_times()
            self._reach((record.last_token - self.start_ns) // self.bin_ns)
            self.imputed_gaps += fold_events(
                record, self.icl, self.itl, self.bin_counts, self.bin_count - 1, self.start_ns,
                self.bin_ns
            )
            self._add_latencies(record)
            self._add_over_time(record)
            if self.has_limits:
                self._judge(record)
            self.results += max(record.results, 0)
        else:
            self._add_failure(record)

    cdef int _add_waits(self, Record record) except -1:
        cdef int64_t lag = record.get_lag_ns()
        self.lag.add(max(lag, 0), 1)
        self.pool_wait.add(record.ready - record.due, 1)
        self.connect.add(record.connect_ns, 1)
        self.sojourn_ns += record.closed - record.sent
        self.early += lag < -EARLY_NS
        self.late_connections += record.connect_ns != 0
        self.window_filled += record.window_filled
        if lag >= 0 and not record.is_ordered():  # one sent early is counted as that
            self.disordered += 1
        return 0

    cdef int _add_failure(self, Record record) except -1:
        self.lost_token_events += record.events
        if record.outcome is STREAM_ERROR and record.events > 0:
            self.broken_off += 1
        # Only the later turns of a failed session have a record and were given to no transport.
        if record.outcome is CANCELLED and not record.ready:
            self.never_due += 1
        return 0

    cdef int _add_input(self, Record record) except -1:
        cdef int64_t expected = record.get_expected_tokens(), counted = max(record.prompt_tokens, 0)
        if record.input_tokens == UNPLANNED:
            self.unplanned_requests += 1
            self.unplanned_input_tokens += counted
            self.unknown_input += record.prompt_tokens < 0
            self.input_tokens += counted
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
        cdef int64_t tokens = record.get_answer_tokens()
        cdef bint is_unbounded
        self.planned_output_tokens += record.output_tokens
        self.output_as_planned += tokens == record.output_tokens
        self.output_tokens += tokens
        if record.completion_tokens >= 0:
            self.usage_requests += 1
            self.unseen_tokens += max(tokens - record.counted, 0)
            self.surplus_events += max(record.counted - tokens, 0)
            self.hidden_tokens += record.get_hidden_tokens()
        elif record.tokenized >= 0:
            self.tokenizer_requests += 1
            self.surplus_events += max(record.counted - record.tokenized, 0)
        elif record.counted_by == BY_EVENTS:
            self.event_requests += 1
        else:
            self.id_requests += 1
        self.usage_per_event += record.counted_by == BY_USAGE
        self.ids_per_event += record.counted_by == BY_IDS
        self.token_events += record.events
        self.token_reads += record.reads
        self.inexact_events += record.get_inexact()
        self.late_events += record.get_late()
        is_unbounded = record.user_stamped == UNBOUNDED
        self.user_stamped_events += record.events if is_unbounded else record.user_stamped
        self.reordered_events += record.reordered
        self.unbounded_events += record.events if is_unbounded else 0
        self.content_events += record.content_events
        self.reasoning_events += record.reasoning_events
        self.other_events += record.other_events
        self.nan_events += record.nan_events
        return 0

    cdef int _add_end(self, Record record) except -1:
        """Count how an answer ended."""
        cdef int64_t tail_ns = record.closed - record.last_token, apart
        self.silent_events += record.get_silent_events()
        if record.results >= 0 or record.is_whole:
            return 0
        self.unnamed_ends += record.finish_reason is None
        if tail_ns > LATE_END_NS:
            self.late_ends += 1
            self.tail_ns += tail_ns
        if record.total_tokens >= 0 and record.prompt_tokens >= 0 and record.completion_tokens >= 0:
            apart = record.total_tokens - record.prompt_tokens - record.completion_tokens
            self.disagreeing_counts += apart != 0
            self.disagreeing_tokens += max(apart, -apart)
        return 0

    cdef int _add_latencies(self, Record record) except -1:
        cdef int64_t due = record.due, sent = record.sent, first = record.first_token
        cdef int64_t last = record.last_token
        cdef int64_t written = max(sent, record.written), least_ns, greatest_ns
        # The client's lag is no time of the server's: without it the latency from due is less.
        cdef int64_t due_late = due + max(record.get_lag_ns(), 0)
        cdef int64_t earliest_first = record.earliest_at(0)
        cdef int64_t earliest_last = record.earliest_at(record.events - 1)
        cdef int64_t after_first = record.tokens_after_first_event()
        cdef int64_t but_one = record.tokens_but_one()
        self.e2el_due.add(last - due, earliest_last - due_late, last - due, 1)
        self.e2el_sent.add(last - sent, earliest_last - written, last - sent, 1)
        if record.results >= 0 or record.is_whole:  # it has no tokens, or none with times
            return 0
        self.ttft_due.add(first - due, earliest_first - due_late, first - due, 1)
        self.ttft_sent.add(first - sent, earliest_first - written, first - sent, 1)
        if record.first_answer:
            least_ns = record.first_answer_earliest - due_late
            self.ttfo_due.add(record.first_answer - due, least_ns, record.first_answer - due, 1)
            least_ns = record.first_answer_earliest - written
            self.ttfo_sent.add(record.first_answer - sent, least_ns, record.first_answer - sent, 1)
        self.stream_ns += last - first
        self.unequal += record.stamped_span_ns() != last - first
        if after_first <= 0:
            return 0
        least_ns, greatest_ns = earliest_last - first, last - earliest_first
        self.tpot.add((last - first) // after_first, least_ns // after_first,
                      greatest_ns // after_first, 1)
        self.decode_ns += last - first
        self.decode_tokens += after_first
        if but_one > 0:
            self.tpot_n1.add((last - first) // but_one, least_ns // but_one,
                             greatest_ns // but_one, 1)
        return 0

    cdef int _add_over_time(self, Record record) except -1:
        cdef int64_t *stamps = record.arrays.stamps_ns
        cdef Py_ssize_t i
        if record.last_token - self.start_ns >= self.end_ns:
            self._widen_columns(record.last_token - self.start_ns)
        if record.results < 0 and not record.is_whole:
            since_ns = record.due if self.from_due else record.sent
            self._count_over_time(self.ttft_over_time, record.first_token, since_ns)
        for i in range(1, record.events):
            self._count_over_time(self.icl_over_time, stamps[i], stamps[i - 1])
        return 0

    cdef int _judge(self, Record record) except -1:
        """Count a request as good where it meets all limits."""
        cdef int64_t since_ns = record.due if self.from_due else record.sent
        if self._is_good(record, since_ns, record.tokens_after_first_event()):
            self.good += 1
        if self._is_good(record, record.sent, record.tokens_but_one()):
            self.good_sent += 1
        return 0

    cdef bint _is_good(self, Record record, int64_t since_ns, int64_t tokens) noexcept:
        """Return whether a request meets all limits, with a TPOT over so many tokens; if there are
        none, it has no TPOT and is judged on the rest.
        """
        cdef int64_t first_ns = record.first_token, last_ns = record.last_token
        return (
            first_ns - since_ns <= self.ttft_limit_ns
            and last_ns - since_ns <= self.e2el_limit_ns
            and (tokens <= 0 or (last_ns - first_ns) // tokens <= self.tpot_limit_ns)
        )

    cdef void _count_over_time(self, int64_t *cells, int64_t at_ns, int64_t since_ns) noexcept:
        """Count the time from `since_ns` to `at_ns`, in the column of its end."""
        cdef int64_t column = (at_ns - self.start_ns) // self.column_ns, row
        if at_ns >= since_ns:
            row = index_of(at_ns - since_ns) // COARSE
            cells[max(0, min(column, columns - 1)) * rows + min(row, rows - 1)] += 1

    cdef int _widen_columns(self, int64_t last_ns) except -1:
        """Make the columns of the timeline so wide that they reach `last_ns` after the start."""
        width_ns = width_for(last_ns, self.column_ns)
        widen(self.ttft_over_time, width_ns // self.column_ns)
        widen(self.icl_over_time, width_ns // self.column_ns)
        self.column_ns, self.end_ns = width_ns, width_ns * columns
        return 0

    cdef int _reach(self, int64_t last_bin) except -1:
        """Have `bins` reach this bin."""
        cdef int64_t more = last_bin + BIN_GROWTH - self.bin_count
        if last_bin >= self.bin_count:
            self.bin_counts = <int64_t *>resized(
                self.bin_counts, (self.bin_count + more) * sizeof(int64_t)
            )
            memset(self.bin_counts + self.bin_count, 0, more * sizeof(int64_t))
            self.bin_count += more
        return 0
