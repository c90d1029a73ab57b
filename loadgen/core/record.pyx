# cython: language_level=3
"""Record: everything known about one scheduled request; its answer is an `Answer`."""
cimport cython
from libc.stdint cimport int64_t

from loadgen.core.answer cimport BY_EVENTS, Answer
from loadgen.core.c.network cimport UNKNOWN, Opening, TcpFacts
from loadgen.core.c.server_times cimport NOT_SAID, ServerTimes, clear_times, exceed, merge_times
from loadgen.core.c.memory cimport COUNTING, RECORDS, count_objects, live_count

from loadgen.core.finish_reasons import KNOWN
from loadgen.core.server_times import BY, QUANTITIES


cdef frozenset known = KNOWN


def live():
    """Count this module's live objects; None unless it is a debug build."""
    return {"records": live_count(RECORDS)} if COUNTING else None


@cython.final
cdef class Record(Answer):
    """Everything known about one request (record.pxd).

    Stamps are CLOCK_MONOTONIC ns, 0 if it did not happen.
    """

    def __cinit__(self):
        count_objects(RECORDS, 1)
        self.attempts = 1
        clear_times(&self.times)
        self.opening = Opening(UNKNOWN, UNKNOWN, UNKNOWN)
        self.tcp = TcpFacts(UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)
        self.server_tokens = self.turn = self.end_after_ns = self.tokenized = -1

    def __init__(self, index=0, input_tokens=0, output_tokens=0, due=0):
        self.index, self.due = index, due
        self.input_tokens, self.output_tokens = input_tokens, output_tokens

    def __dealloc__(self):
        count_objects(RECORDS, -1)

    cpdef end(self, outcome, detail, int64_t at_ns):
        """End the request, and take credentials that the server may have repeated out of what it
        said.

        Args:
            outcome: The `Outcome`.
            detail: What explains it, or None.
            at_ns: When it ended.
        """
        self.outcome, self.detail, self.closed = outcome, detail, at_ns
        self._settle_silent(0)
        if self.redaction is None:
            return
        if detail:
            self.detail = self.redaction(detail)
        if self.finish_reason and self.finish_reason not in known:
            self.finish_reason = self.redaction(self.finish_reason)
        if isinstance(self.matched_stop, str):
            self.matched_stop = self.redaction(self.matched_stop)
        if self.unread is not None:
            self.unread = {
                self.redaction(what): (count, self.redaction(sample))
                for what, (count, sample) in self.unread.items()
            }

    cpdef int add_times(self, dict times) except -1:
        """Add what the server has said of its time: `by`, and quantities in ns."""
        cdef ServerTimes said
        clear_times(&said)
        for name, value in times.items():
            if name == "by":
                said.by = BY.index(value) + 1
            else:
                said.ns[QUANTITIES.index(name)] = value
        merge_times(&self.times, &said)
        return 0

    @property
    def server_times(self):
        """What the server has said of its time: `by`, and quantities in ns; None: nothing."""
        if not self.times.by:
            return None
        said = {"by": BY[self.times.by - 1]}
        for i, name in enumerate(QUANTITIES):
            if self.times.ns[i] != NOT_SAID:
                said[name] = self.times.ns[i]
        return said

    @property
    def connect_parts(self):
        """How long the look-up, the connection and the TLS handshake took of the connection that
        was opened for it, ns, as `dns`, `tcp` and `tls`; None: none was.
        """
        if self.opening.tcp_ns == UNKNOWN:
            return None
        return {"dns": self.opening.dns_ns, "tcp": self.opening.tcp_ns, "tls": self.opening.tls_ns}

    @connect_parts.setter
    def connect_parts(self, parts):
        self.opening = Opening(parts["dns"], parts["tcp"], parts["tls"])

    @property
    def tcp_info(self):
        """The least and the smoothed round trip time of its connection, us; how many segments came
        before an earlier one, and were sent again, during the request (-1: not known); None: the
        kernel says nothing.
        """
        if self.tcp.rtt_us == UNKNOWN:
            return None
        return self.tcp.min_rtt_us, self.tcp.rtt_us, self.tcp.out_of_order, self.tcp.retransmits

    @tcp_info.setter
    def tcp_info(self, numbers):
        min_rtt_us, rtt_us, out_of_order, retransmits = numbers
        self.tcp = TcpFacts(min_rtt_us, rtt_us, out_of_order, retransmits)

    @property
    def generated_text(self):
        """`answer_text` without credentials, if the transport has set `redaction`: safe to keep
        and show.
        """
        return self.answer_text if self.redaction is None else self.redaction(self.answer_text)

    @property
    def expected_tokens(self):
        """The input tokens that the server should count: as predicted, else those of the
        prompt's text.
        """
        return self.get_expected_tokens()

    @property
    def answer_tokens(self):
        """The tokens of the answer: by usage, else by a tokenizer, else by its events."""
        return self.get_answer_tokens()

    @property
    def counts_tokens(self):
        """Whether the server or a tokenizer counted the tokens of the answer; else only its
        events are known.
        """
        return self.has_count()

    @property
    def hidden_tokens(self):
        """The reasoning tokens that the usage counts and that were never streamed."""
        return self.get_hidden_tokens()

    @property
    def silent_events(self):
        """The events that bear a token without text."""
        return self.get_silent_events()

    @property
    def span_bounds_ns(self):
        """The least and the greatest time that the first and the last token may truly have been
        apart, ns.
        """
        if not self.events:
            return 0, 0
        least_ns = max(0, self.earliest_at(self.events - 1) - self.first_token)
        return least_ns, self.last_token - self.earliest_at(0)

    @property
    def tpot_ns(self):
        """The time per streamed token, ns; None if the answer came in a single event."""
        cdef int64_t tokens = self.tokens_after_first_event()
        return (self.last_token - self.first_token) // tokens if tokens > 0 else None

    @property
    def tpot_bounds_ns(self):
        """The least and the greatest that `tpot_ns` may truly be; None as for it."""
        cdef int64_t tokens = self.tokens_after_first_event()
        if tokens <= 0:
            return None
        least_ns, greatest_ns = self.span_bounds_ns
        return least_ns // tokens, greatest_ns // tokens

    @property
    def tpot_n1_ns(self):
        """The time per output token as vLLM computes it, over all tokens but one, ns; None as
        for `tpot_ns`.
        """
        cdef int64_t tokens = self.tokens_but_one()
        return (self.last_token - self.first_token) // tokens if tokens > 0 else None

    @property
    def lag_ns(self):
        """How late the client sent it, ns; None if it did not."""
        return max(self.get_lag_ns(), 0) if self.sent else None

    @property
    def ordered(self):
        """Whether the stamps are in the order in which things must have happened."""
        return self.is_ordered()

    cdef bint has_count(self) noexcept:
        return (
            self.completion_tokens >= 0
            or self.tokenized >= 0
            or self.counted_by != BY_EVENTS
        )

    cdef int64_t get_expected_tokens(self) noexcept:
        return self.server_tokens if self.server_tokens >= 0 else self.input_tokens

    cdef int64_t get_answer_tokens(self) noexcept:
        if self.completion_tokens >= 0:
            return self.completion_tokens
        return max(self.tokenized, self.counted)  # each event bears a token

    cdef int64_t get_hidden_tokens(self) noexcept:
        """The reasoning tokens by usage that no event bore; 0 if any reasoning was streamed."""
        if self.reasoning_events or self.completion_tokens < 0:
            return 0
        return max(0, min(self.reasoning_tokens, self.completion_tokens - self.counted))

    cdef int64_t get_silent_events(self) noexcept:
        """The events that bear a token without text."""
        if self.results >= 0:
            return 0
        return self.events - self.content_events - self.reasoning_events - self.other_events

    cdef int64_t tokens_after_first_event(self) noexcept:
        """The tokens that TPOT is divided by: those that were streamed after the first event; 0:
        there is no TPOT.
        """
        if self.events <= 1:
            return 0
        return self.get_answer_tokens() - self.get_hidden_tokens() - self.get_first_tokens()

    cdef int64_t tokens_but_one(self) noexcept:
        """The tokens that vLLM divides by: all but one, whatever was streamed; 0 if there was
        only one event.
        """
        return self.get_answer_tokens() - 1 if self.events > 1 else 0

    cdef int64_t get_lag_ns(self) noexcept:
        """The time from due to sent without the waits for a slot, a retry and a connection, ns;
        below 0 if early.
        """
        return self.sent - self.ready - self.retried_ns - self.connect_ns

    cdef bint has_overlong_times(self) noexcept:
        """Whether the server says that it spent more time than passed here."""
        return exceed(
            &self.times, self.first_token - self.sent, self.closed - self.sent,
            self.first_byte - self.sent
        )

    cdef bint is_ordered(self) noexcept:
        cdef int64_t latest = self.due
        cdef int64_t[6] stamps
        stamps[:] = [self.ready, self.sent, self.first_byte, self.first_token, self.last_token,
                     self.closed]
        for at_ns in stamps:
            if at_ns:
                if at_ns < latest:
                    return False
                latest = at_ns
        return True

    @property
    def stamps(self):
        """The stamps of the token-bearing events in order, ns."""
        return self._listed(self.arrays.stamps_ns)

    @property
    def earliest(self):
        """When each token-bearing event can have come at the earliest, ns; None if all stamps
        are exact.
        """
        return None if self.arrays.earliest_ns == NULL else self._listed(self.arrays.earliest_ns)

    @property
    def read_times(self):
        """When each token-bearing event was read, ns."""
        return self.stamps if self.arrays.reads_ns == NULL else self._listed(self.arrays.reads_ns)

    @property
    def token_counts(self):
        """The number of tokens in each token-bearing event; None if each counts as one."""
        return None if self.arrays.tokens == NULL else self._listed(self.arrays.tokens)

    @property
    def marks(self):
        """`stamps` as the bytes of an array of int64."""
        return self._bytes(self.arrays.stamps_ns)

    @property
    def earliest_marks(self):
        """`earliest` as the bytes of an array of int64; those of the stamps if all are exact."""
        if self.arrays.earliest_ns == NULL:
            return self._bytes(self.arrays.stamps_ns)
        return self._bytes(self.arrays.earliest_ns)

    cdef list _listed(self, const int64_t *array):
        return [array[i] for i in range(self.events)]

    cdef bytes _bytes(self, const int64_t *array):
        return (<const char *>array)[:self.events * sizeof(int64_t)] if self.events else b""

    def __repr__(self):
        return (
            f"<Record {self.index} {self.outcome or 'open'} status={self.status} "
            f"events={self.events}>"
        )
