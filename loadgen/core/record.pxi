# cython: language_level=3
"""Record: everything known about one scheduled request. Part of `loadgen.core.wire`, which fills it."""
BY_EVENTS, BY_IDS, BY_USAGE = range(3)
cdef Py_ssize_t most_tellings = 1 << 16


cdef int64_t *resized(int64_t *array, Py_ssize_t room) except NULL:
    cdef int64_t *grown
    freed(array)
    grown = <int64_t *>realloc(array, room * sizeof(int64_t))
    if grown == NULL:
        raise MemoryError()
    allocated(grown)
    return grown


cdef class Record:
    """Everything known about one scheduled request. Stamps are CLOCK_MONOTONIC ns, 0 where it did not happen.

    due: when the schedule wanted it sent. ready: when a slot under the concurrency cap was free for it.
    sent: when its bytes were handed to the transport. connect_ns: how long opening a connection took, 0 when
    one was at hand. first_byte, first_token, first_answer (content, not reasoning), last_token, closed (the
    end of the response). events: token-bearing events; reads: reads of the socket that brought any. Token counts are
    the server's, -1 where not told; input_tokens and output_tokens are what was planned, server_tokens what the server
    is expected to count of the input, -1 where that is not known.

    counted: tokens of all token-bearing events, as far as the events themselves say how many they bear, and else one
    each; counted_by: what said so (BY_EVENTS, BY_IDS: token ids or logprobs, BY_USAGE: usage in each event). tokenized:
    the tokens of `text`, which is kept where `keeps_text` was set before the request; -1 where nobody has counted.
    `answer` is kept where `keeps_answer` was; `redaction` takes credentials out of its text. reasoning_tokens: those of
    completion_tokens that are reasoning, streamed or not. matched_stop: the stop word or token id that ended the answer,
    or None. nan_events: events that hold NaN or infinity. target: which of the run's targets it was sent to, from 0.
    """

    def __cinit__(self):
        self.stamps_ns = NULL
        self.tokens = self.told = NULL
        count(RECORDS, 1)

    def __init__(self, index=0, input_tokens=0, output_tokens=0, due=0):
        self.index = index
        self.input_tokens, self.output_tokens = input_tokens, output_tokens
        self.due = due
        self.server_tokens = -1
        self.prompt_tokens = self.completion_tokens = self.cached_tokens = self.tokenized = self.reasoning_tokens = -1

    def __dealloc__(self):
        count(RECORDS, -1)
        freed(self.stamps_ns)
        freed(self.tokens)
        freed(self.told)
        free(self.stamps_ns)
        free(self.tokens)
        free(self.told)
        dispose(&self.escaped)
        dispose(&self.answered)

    cdef int mark(self, int64_t at_ns, int64_t tokens) except -1:
        """A token-bearing event: when it came, and how many tokens it bears."""
        cdef Py_ssize_t room = self.room
        if self.events == room:
            room = max(2 * room, min(max(self.output_tokens, 8), 512))
            self.stamps_ns = <int64_t *>resized(self.stamps_ns, room)
            if self.tokens != NULL:
                self.tokens = <int64_t *>resized(self.tokens, room)
            self.room = room
        if tokens != 1 and self.tokens == NULL:  # until now each has borne one, and none was written down
            self.tokens = <int64_t *>resized(NULL, room)
            for i in range(self.events):
                self.tokens[i] = 1
        assert self.events < self.room
        self.stamps_ns[self.events] = at_ns
        if self.tokens != NULL:
            self.tokens[self.events] = tokens
        self.counted += tokens
        self.events += 1
        return 0

    cdef int tell(self, int64_t what, int64_t at_ns) except -1:
        """An event of the stream, whatever it says: a set of the flags of `sse_event`."""
        cdef Py_ssize_t room
        if self.tellings > most_tellings:
            return 0
        if self.tellings and what & TOKENS and self.told[2 * self.tellings - 2] == what:
            self.told[2 * self.tellings - 1] += 1
            return 0
        if self.tellings == self.told_room:
            room = max(8, 2 * self.told_room)
            self.told = <int64_t *>resized(self.told, 2 * room)
            self.told_room = room
        self.told[2 * self.tellings] = what
        self.told[2 * self.tellings + 1] = 1 if what & TOKENS else at_ns
        self.tellings += 1
        return 0

    cdef int settle(self) except -1:
        """The answer is whole: keep what its counts say only where they can be true.

        Servers have been seen that tell no tokens until the end, or all from the start, or ever fewer. Of such counts
        most events bear none, and then none is believed. Nor is a sum of none beside tokens that were seen. Where the
        first event bears none and the sum tells of more, each count was that of the event before.
        """
        cdef Py_ssize_t i, without = 0
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
                without += self.tokens[i] == 0
            if 2 * without > self.events:
                freed(self.tokens)
                free(self.tokens)
                self.tokens = NULL
                self.counted, self.counted_by = self.events, BY_EVENTS
        return 0

    cpdef int64_t fold(self, Histogram icl, Histogram itl, int64_t[::1] bins, int64_t start_ns, int64_t bin_ns) except -1:
        """Add the gaps between token-bearing events to `icl`, those between tokens to `itl`, and the tokens to `bins`.

        Where an event brings k tokens, the gap since the last event that brought any counts as k gaps of a k-th of
        it. bins: tokens per `bin_ns` since `start_ns`, reaching to the last token. The tokens of the answer are spread
        over the events by how many each bears, in whole tokens; those that were hidden, evenly over the time from sent to
        the first event. Returns how many gaps of `itl` were imputed in this way.
        """
        cdef Py_ssize_t i, bin, first, last
        cdef int64_t due, k = 1, so_far = 0, given = 0, imputed = 0, hidden = self.hidden()
        cdef int64_t tokens = self.output_confirmed() - hidden
        cdef int64_t since_ns = self.stamps_ns[0] if self.events else 0
        if hidden:
            last = max(0, min((self.stamps_ns[0] - start_ns) // bin_ns, bins.shape[0] - 1))
            first = max(0, min((self.sent - start_ns) // bin_ns, last))
            for bin in range(first, last + 1):
                due = hidden * (bin - first + 1) // (last - first + 1)
                bins[bin] += due - given
                given = due
            given = 0
        for i in range(self.events):
            if self.tokens != NULL:
                k = self.tokens[i]
            so_far += k
            due = tokens * so_far // max(self.counted, 1)
            bin = (self.stamps_ns[i] - start_ns) // bin_ns
            bins[max(0, min(bin, bins.shape[0] - 1))] += due - given
            given = due
            if i > 0:
                icl.add(self.stamps_ns[i] - self.stamps_ns[i - 1], 1)
            if i > 0 and k > 0:
                itl.add((self.stamps_ns[i] - since_ns) // k, k)
                if k > 1:
                    imputed += k
            if k > 0:
                since_ns = self.stamps_ns[i]
        return imputed

    def restore(self, stamps, tokens=None, stream=None, answer=""):
        """Take events from a file: stamps of those that bear tokens, how many each bears, and `stream` and the text of the
        answer, if they are known."""
        for at_ns, k in zip(stamps, tokens or [1] * len(stamps), strict=True):
            self.mark(at_ns, k)
        for what, value in stream or ():
            self.tell(what, value)
            self.told[2 * self.tellings - 1] = value
        escaped = json.dumps(answer).encode()
        append(&self.answered, PyBytes_AS_STRING(escaped) + 1, len(escaped) - 2)

    @property
    def text(self):
        """All text of the answer, reasoning and arguments of tools included; empty where it was not kept."""
        # Half a surrogate pair is no UTF-8, but may well be what the server sent.
        if self.escaped.size == 0:
            return ""
        return json.loads(f'"{self.escaped.data[:self.escaped.size].decode("utf-8", "replace")}"', strict=False)

    @property
    def answer(self):
        """The content alone, no reasoning, as the bytes between the quotes of a JSON string; empty where none was kept."""
        return self.answered.data[:self.answered.size] if self.answered.size else b""

    @property
    def generated_text(self):
        """`answer_text` as it may be kept and shown: without credentials, where the transport has set `redaction`."""
        return self.answer_text if self.redaction is None else self.redaction(self.answer_text)

    @property
    def answer_text(self):
        """`answer` as text; half a surrogate pair, which some servers send, stands as U+FFFD."""
        text = json.loads(f'"{self.answer.decode("utf-8", "replace")}"', strict=False)
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    @property
    def stream(self):
        """The events of the stream in order, as pairs: what they say (flags of `sse_event`), and for those that bear tokens
        how many alike follow each other, else the stamp of the one. None where they were not kept, or not all."""
        if not self.knows_stream():
            return None
        return [(self.told[2 * i], self.told[2 * i + 1]) for i in range(self.tellings)]

    cdef bint knows_stream(self) noexcept:
        cdef Py_ssize_t i
        cdef int64_t events = 0
        for i in range(self.tellings):
            if self.told[2 * i] & TOKENS:
                events += self.told[2 * i + 1]
        return self.tellings <= most_tellings and events == self.events

    @property
    def first_tokens(self):
        """How many tokens the first token-bearing event brought; 0 where there is none."""
        return (1 if self.tokens == NULL else self.tokens[0]) if self.events else 0

    @property
    def expected_tokens(self):
        """The tokens that the server should count of the prompt: as predicted, else those of its text."""
        return self.input_expected()

    @property
    def answer_tokens(self):
        """The tokens of the answer: by its usage, else by ids, else by a tokenizer, else one for each event."""
        return self.output_confirmed()

    @property
    def counts_tokens(self):
        """Whether the tokens of the answer are counted, by the server or by a tokenizer, and not only its events."""
        return self.completion_tokens >= 0 or self.tokenized >= 0 or self.counted_by != BY_EVENTS

    @property
    def hidden_tokens(self):
        """The reasoning tokens of the answer that were never streamed, as its usage tells."""
        return self.hidden()

    @property
    def tpot_ns(self):
        """The time per streamed token, ns; None of an answer in a single event, which shows no pace."""
        cdef int64_t after_first = self.after_first()
        return (self.last_token - self.first_token) // after_first if after_first > 0 else None

    @property
    def tpot_n1_ns(self):
        """The time per output token as vLLM divides, by all tokens but one, ns; None of an answer in a single event."""
        cdef int64_t after_one = self.after_one()
        return (self.last_token - self.first_token) // after_one if after_one > 0 else None

    @property
    def lag_ns(self):
        """How late the client sent it, ns; None where it never did."""
        return max(self.lag(), 0) if self.sent else None

    @property
    def ordered(self):
        """Whether the stamps of what happened stand in the order in which it must have happened."""
        return self.is_ordered()

    cdef int64_t input_expected(self) noexcept:
        return self.server_tokens if self.server_tokens >= 0 else self.input_tokens

    cdef int64_t output_confirmed(self) noexcept:
        if self.completion_tokens >= 0:
            return self.completion_tokens
        return self.tokenized if self.tokenized >= 0 else self.counted

    cdef int64_t hidden(self) noexcept:
        """The reasoning tokens that usage counts and no event bore: of what was seen, none was hidden."""
        if self.reasoning_events or self.completion_tokens < 0:
            return 0
        return max(0, min(self.reasoning_tokens, self.completion_tokens - self.counted))

    cdef int64_t after_first(self) noexcept:
        """The tokens that came after those of the first event; none where there was but that one."""
        if self.events < 2:
            return 0
        return self.output_confirmed() - self.hidden() - (1 if self.tokens == NULL else self.tokens[0])

    cdef int64_t after_one(self) noexcept:
        """All tokens but one, streamed or not, as vLLM counts; none where there was but one event."""
        return self.output_confirmed() - 1 if self.events > 1 else 0

    cdef int64_t lag(self) noexcept:
        """What is left of due to sent without the wait for a slot and the connecting, ns; below 0 of one sent early."""
        return self.sent - self.ready - self.connect_ns

    cdef int64_t spans(self) noexcept:
        """From the first stamp of an event to the last, ns."""
        return self.stamps_ns[self.events - 1] - self.stamps_ns[0] if self.events else 0

    cdef bint is_ordered(self) noexcept:
        cdef int64_t latest = self.due
        cdef int64_t[6] stamps = [self.ready, self.sent, self.first_byte, self.first_token, self.last_token, self.closed]
        for at_ns in stamps:
            if at_ns:
                if at_ns < latest:
                    return False
                latest = at_ns
        return True

    @property
    def stamps(self):
        """The stamps of the token-bearing events, ns, in order."""
        return [self.stamps_ns[i] for i in range(self.events)]

    @property
    def marks(self):
        """`stamps` as the bytes of an array of int64."""
        return (<char *>self.stamps_ns)[:self.events * sizeof(int64_t)] if self.events else b""

    @property
    def token_counts(self):
        """How many tokens each token-bearing event brought; None where each counts as one."""
        return None if self.tokens == NULL else [self.tokens[i] for i in range(self.events)]

    def __repr__(self):
        return f"<Record {self.index} {self.outcome or 'open'} status={self.status} events={self.events}>"
