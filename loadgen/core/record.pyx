# cython: language_level=3
"""Record: everything known about one scheduled request.

Budget per token-bearing event: two stores (its stamp, and the length of its run of events), and the counters. Its
arrays double; no Python object is made.
"""
cimport cython
from libc.stdint cimport int64_t
from libc.stdlib cimport free
from cpython.bytes cimport PyBytes_AS_STRING

from loadgen.core.c.buffer cimport append_bytes, free_buffer, resized
from loadgen.core.c.leak_count cimport BYTES, COUNTING, RECORDS, count_freed, count_objects, live_count
from loadgen.core.c.tpot cimport tokens_of_tpot, tokens_of_vllms_tpot
from loadgen.core.event_flags cimport CONTENT, REASONING, TOKENS

import json

cdef enum:
    MAX_RUNS = 1 << 16


def live():
    """Return the number of this module's live objects and their bytes; None unless it is a debug build."""
    return {"records": live_count(RECORDS), "bytes": live_count(BYTES)} if COUNTING else None


@cython.final
cdef class Record:
    """Everything known about one scheduled request. Stamps are CLOCK_MONOTONIC ns, 0 if it did not happen.

    Attributes:
        index: Number of the request in the schedule.
        target: Which of the run's targets it was sent to, from 0.
        due: When the schedule wanted it sent.
        ready: When a slot under the concurrency cap was free for it.
        sent: When its bytes were handed to the transport.
        connect_ns: How long opening a connection took; 0 if an open one was used.
        first_byte, first_token, first_answer, last_token, closed: When they came. `first_answer` is content, not
            reasoning; `closed` is the end of the response.
        input_tokens, output_tokens: Planned tokens; `input_tokens` may be UNPLANNED.
        server_tokens: Input tokens that the server is expected to count; -1: unknown.
        prompt_tokens, completion_tokens, cached_tokens: Counts by the server's usage; -1: it gave none.
        reasoning_tokens: Those of completion_tokens that are reasoning, streamed or not; -1: the usage gave none.
        events: Token-bearing events.
        content_events, reasoning_events, other_events: The same by kind.
        nan_events: Events that hold NaN or infinity.
        reads: Reads of the socket that brought token-bearing events.
        counted: Tokens of all token-bearing events: by the events themselves where they say it, else one each.
        counted_by: What said so: BY_EVENTS, BY_IDS or BY_USAGE.
        tokenized: Tokens of `text` by a tokenizer; -1: not counted.
        matched_stop: The stop word or token id that ended the answer, or None.
        keeps_text, keeps_answer: Whether to keep `text` or `answer`; set before the request.
        redaction: A function that takes credentials out of the text of the answer, or None.
    """

    def __cinit__(self):
        count_objects(RECORDS, 1)

    def __init__(self, index=0, input_tokens=0, output_tokens=0, due=0):
        self.index = index
        self.input_tokens, self.output_tokens = input_tokens, output_tokens
        self.due = due
        self.server_tokens = -1
        self.prompt_tokens = self.completion_tokens = self.cached_tokens = self.tokenized = self.reasoning_tokens = -1

    def __dealloc__(self):
        count_objects(RECORDS, -1)
        count_freed(self.stamps_ns)
        count_freed(self.tokens)
        count_freed(self.runs)
        free(self.stamps_ns)
        free(self.tokens)
        free(self.runs)
        free_buffer(&self.text_json)
        free_buffer(&self.answer_json)

    cdef int add_event(self, int64_t flags, int64_t tokens, int64_t completion, int64_t at_ns) except -1:
        """Add an event of any kind to the run-length list of events, and count its tokens if it bears any.

        Token-bearing events with equal flags extend the last run. After MAX_RUNS no more are listed.

        Args:
            flags: What the event says (event_flags); its kinds of tokens are the part within TOKENS.
            tokens: How many by its token ids or logprobs; -1: it does not say.
            completion: The completion tokens so far by its usage; -1: it does not say.
            at_ns: Its stamp.
        """
        cdef int64_t kinds = flags & TOKENS
        if kinds and self.n_runs and self.n_runs <= MAX_RUNS and self.runs[self.n_runs - 1].flags == flags:
            self.runs[self.n_runs - 1].count += 1
        elif self.n_runs <= MAX_RUNS:
            if self.n_runs == self.runs_capacity:
                self.runs_capacity = max(8, 2 * self.runs_capacity)
                self.runs = <EventRun *>resized(self.runs, self.runs_capacity * sizeof(EventRun))
            self.runs[self.n_runs] = EventRun(flags, 1, at_ns)
            self.n_runs += 1
        if not kinds:
            return 0
        # Usage that did not come with the first event sums up the events before: it says nothing about this one.
        if completion >= 0 and (self.events == 0 or self.counted_by == BY_USAGE):
            tokens = max(0, completion - self.counted)
            self.counted_by = BY_USAGE
        elif tokens >= 0:
            self.counted_by = BY_IDS
        else:
            tokens = 1
        if self.last_token != at_ns:
            self.reads += 1
        if self.first_token == 0:
            self.first_token = at_ns
        self.last_token = at_ns
        if kinds & CONTENT:
            self.content_events += 1
            if self.first_answer == 0:
                self.first_answer = at_ns
        elif kinds & REASONING:
            self.reasoning_events += 1
        else:
            self.other_events += 1
        if self.events == self.events_capacity:
            self._reserve(max(2 * self.events_capacity, min(max(self.output_tokens, 8), 512)))
        if tokens != 1 and self.tokens == NULL:
            self._store_counts()
        assert self.events < self.events_capacity
        self.stamps_ns[self.events] = at_ns
        if self.tokens != NULL:
            self.tokens[self.events] = tokens
        self.counted += tokens
        self.events += 1
        return 0

    cdef int _reserve(self, Py_ssize_t capacity) except -1:
        """Make room for the stamps and counts of this many token-bearing events."""
        self.stamps_ns = <int64_t *>resized(self.stamps_ns, capacity * sizeof(int64_t))
        if self.tokens != NULL:
            self.tokens = <int64_t *>resized(self.tokens, capacity * sizeof(int64_t))
        self.events_capacity = capacity
        return 0

    cdef int _store_counts(self) except -1:
        """Store how many tokens each event bears: until now each bore one, and no number was stored."""
        cdef Py_ssize_t i
        self.tokens = <int64_t *>resized(NULL, self.events_capacity * sizeof(int64_t))
        for i in range(self.events):
            self.tokens[i] = 1
        return 0

    cdef int set_usage(self, int64_t prompt, int64_t completion, int64_t cached, int64_t reasoning) except -1:
        """Store the server's token counts; -1: this event does not say."""
        if prompt >= 0:
            self.prompt_tokens = prompt
        if completion >= 0:
            self.completion_tokens = completion
        if cached >= 0:
            self.cached_tokens = cached
        if reasoning >= 0:
            self.reasoning_tokens = reasoning
        return 0

    cdef int append_text(self, const char *text, Py_ssize_t n) except -1:
        """Keep text of the answer, escaped as in JSON."""
        return append_bytes(&self.text_json, text, n)

    cdef int append_answer(self, const char *text, Py_ssize_t n) except -1:
        """Keep content of the answer, escaped as in JSON."""
        return append_bytes(&self.answer_json, text, n)

    cpdef end(self, outcome, detail, int64_t at_ns):
        """End the request, and take credentials that the server may have repeated out of what it said.

        Args:
            outcome: The `Outcome`.
            detail: What explains it, or None.
            at_ns: When it ended.
        """
        self.outcome, self.detail, self.closed = outcome, detail, at_ns
        if self.redaction is None:
            return
        if detail:
            self.detail = self.redaction(detail)
        if self.finish_reason:
            self.finish_reason = self.redaction(self.finish_reason)
        if isinstance(self.matched_stop, str):
            self.matched_stop = self.redaction(self.matched_stop)

    cdef int drop_implausible_counts(self) except -1:
        """Correct or drop the counts of an answer that has ended, where they cannot be true.

        Some servers send a count of 0 until the end, or the whole count with the first event, or falling counts. Then
        most events seem to bear no token, and all counts are dropped. So is a completion count of 0 if tokens came.
        Where the first event bears none and the total is larger, each count was that of the event before.
        """
        cdef Py_ssize_t i, empty_events = 0
        if self.events and self.completion_tokens == 0:
            self.completion_tokens = -1
        if self.counted_by == BY_USAGE and self.tokens != NULL and self.tokens[0] == 0:
            if self.completion_tokens > self.counted:
                for i in range(self.events - 1):
                    self.tokens[i] = self.tokens[i + 1]
                self.tokens[self.events - 1] = self.completion_tokens - self.counted
                self.counted = self.completion_tokens
        if self.tokens != NULL:
            for i in range(self.events):
                empty_events += self.tokens[i] == 0
            if 2 * empty_events > self.events:
                count_freed(self.tokens)
                free(self.tokens)
                self.tokens = NULL
                self.counted, self.counted_by = self.events, BY_EVENTS
        return 0

    def restore(self, stamps, tokens=None, stream=None, answer=""):
        """Add the events of a record from a file.

        Args:
            stamps: Stamps of the token-bearing events, ns.
            tokens: How many tokens each bears; None: one each.
            stream: As the property `stream`; None: unknown.
            answer: The text of the answer.
        """
        counts = [1] * len(stamps) if tokens is None else tokens
        self._reserve(self.events + max(len(stamps), 1))
        if self.tokens == NULL and any(k != 1 for k in counts):
            self._store_counts()
        for at_ns, k in zip(stamps, counts, strict=True):
            self.stamps_ns[self.events] = at_ns
            if self.tokens != NULL:
                self.tokens[self.events] = k
            self.counted += k
            self.events += 1
        self.runs_capacity = self.n_runs + len(stream or ()) + 1
        self.runs = <EventRun *>resized(self.runs, self.runs_capacity * sizeof(EventRun))
        for flags, value in stream or ():
            self.runs[self.n_runs] = EventRun(flags, value, 0) if flags & TOKENS else EventRun(flags, 1, value)
            self.n_runs += 1
        escaped = json.dumps(answer).encode()
        append_bytes(&self.answer_json, PyBytes_AS_STRING(escaped) + 1, len(escaped) - 2)

    @property
    def text(self):
        """All text of the answer, with reasoning and arguments of tools; empty if it was not kept."""
        # Half a surrogate pair is no UTF-8, but may well be what the server sent.
        if self.text_json.size == 0:
            return ""
        return json.loads(f'"{self.text_json.data[:self.text_json.size].decode("utf-8", "replace")}"', strict=False)

    @property
    def answer(self):
        """The content without reasoning, as bytes between the quotes of a JSON string; empty if it was not kept."""
        return self.answer_json.data[:self.answer_json.size] if self.answer_json.size else b""

    @property
    def generated_text(self):
        """`answer_text` without credentials, if the transport has set `redaction`: safe to keep and show."""
        return self.answer_text if self.redaction is None else self.redaction(self.answer_text)

    @property
    def answer_text(self):
        """`answer` as text; half a surrogate pair, which some servers send, becomes U+FFFD."""
        text = json.loads(f'"{self.answer.decode("utf-8", "replace")}"', strict=False)
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    @property
    def stream(self):
        """All events in order as pairs (flags, value); None if they were not kept, or not all.

        The value of token-bearing events is how many with these flags follow each other, else the stamp of the event.
        """
        if not self.has_all_runs():
            return None
        pairs = []
        for i in range(self.n_runs):
            run = self.runs[i]
            pairs.append((run.flags, run.count if run.flags & TOKENS else run.at_ns))
        return pairs

    cdef bint has_all_runs(self) noexcept:
        """Whether the logged runs hold every event of the stream."""
        cdef Py_ssize_t i
        cdef int64_t events = 0
        for i in range(self.n_runs):
            if self.runs[i].flags & TOKENS:
                events += self.runs[i].count
        return self.n_runs <= MAX_RUNS and events == self.events

    @property
    def first_tokens(self):
        """The number of tokens in the first token-bearing event; 0 if there is none."""
        return self.get_first_tokens()

    @property
    def expected_tokens(self):
        """The input tokens that the server should count: as predicted, else those of the prompt's text."""
        return self.get_expected_tokens()

    @property
    def answer_tokens(self):
        """The tokens of the answer: by usage, else by a tokenizer, else by its events."""
        return self.get_answer_tokens()

    @property
    def counts_tokens(self):
        """Whether the server or a tokenizer counted the tokens of the answer; else only its events are known."""
        return self.completion_tokens >= 0 or self.tokenized >= 0 or self.counted_by != BY_EVENTS

    @property
    def hidden_tokens(self):
        """The reasoning tokens that the usage counts and that were never streamed."""
        return self.get_hidden_tokens()

    @property
    def tpot_ns(self):
        """The time per streamed token, ns; None if the answer came in a single event."""
        cdef int64_t tokens = self.tokens_after_first_event()
        return (self.last_token - self.first_token) // tokens if tokens > 0 else None

    @property
    def tpot_n1_ns(self):
        """The time per output token as vLLM computes it, over all tokens but one, ns; None as for `tpot_ns`."""
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

    cdef int64_t get_first_tokens(self) noexcept:
        return (1 if self.tokens == NULL else self.tokens[0]) if self.events else 0

    cdef int64_t get_expected_tokens(self) noexcept:
        return self.server_tokens if self.server_tokens >= 0 else self.input_tokens

    cdef int64_t get_answer_tokens(self) noexcept:
        if self.completion_tokens >= 0:
            return self.completion_tokens
        return self.tokenized if self.tokenized >= 0 else self.counted

    cdef int64_t get_hidden_tokens(self) noexcept:
        """The reasoning tokens by usage that no event bore; 0 if any reasoning was streamed."""
        if self.reasoning_events or self.completion_tokens < 0:
            return 0
        return max(0, min(self.reasoning_tokens, self.completion_tokens - self.counted))

    cdef int64_t tokens_after_first_event(self) noexcept:
        """The streamed tokens that came after the first event; 0 if there was only one event."""
        return tokens_of_tpot(self.events, self.get_answer_tokens(), self.get_hidden_tokens(), self.get_first_tokens())

    cdef int64_t tokens_but_one(self) noexcept:
        """All tokens but one, streamed or not, as vLLM counts; 0 if there was only one event."""
        return tokens_of_vllms_tpot(self.events, self.get_answer_tokens())

    cdef int64_t get_lag_ns(self) noexcept:
        """The time from due to sent without the waits for a slot and a connection, ns; below 0 if sent early."""
        return self.sent - self.ready - self.connect_ns

    cdef int64_t stamped_span_ns(self) noexcept:
        """The time from the first stamp of an event to the last, ns."""
        return self.stamps_ns[self.events - 1] - self.stamps_ns[0] if self.events else 0

    cdef bint is_ordered(self) noexcept:
        cdef int64_t latest = self.due
        cdef int64_t[6] stamps
        stamps[:] = [self.ready, self.sent, self.first_byte, self.first_token, self.last_token, self.closed]
        for at_ns in stamps:
            if at_ns:
                if at_ns < latest:
                    return False
                latest = at_ns
        return True

    @property
    def stamps(self):
        """The stamps of the token-bearing events in order, ns."""
        return [self.stamps_ns[i] for i in range(self.events)]

    @property
    def marks(self):
        """`stamps` as the bytes of an array of int64."""
        return (<char *>self.stamps_ns)[:self.events * sizeof(int64_t)] if self.events else b""

    @property
    def token_counts(self):
        """The number of tokens in each token-bearing event; None if each counts as one."""
        return None if self.tokens == NULL else [self.tokens[i] for i in range(self.events)]

    def __repr__(self):
        return f"<Record {self.index} {self.outcome or 'open'} status={self.status} events={self.events}>"
