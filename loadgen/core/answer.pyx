# cython: language_level=3
"""Answer: the events of one answer, what they say, and which of them bear tokens.

Budget per token-bearing event: two stores (its stamp, and the length of its run of events), and the
counters. Its arrays double; no Python object is made.
"""
from libc.stdint cimport int64_t
from libc.stdlib cimport free
from cpython.bytes cimport PyBytes_AS_STRING

from loadgen.core.c.memory cimport (
    BYTES, COUNTING, append, append_bytes, count_freed, free_buffer, live_count,
)
from loadgen.core.c.events cimport (
    MAYBE, REORDERED, USER, append_event, append_run, bear_tokens, copy_of_stamps, count_inexact,
    count_late, count_tokens, drop_tokens, earliest, free_arrays, is_complete, keep_events,
    mark_last_run, mark_maybe_last, mark_silent_runs, may_bear_token, put, put_read, put_source,
    reserve,
)
from loadgen.core.event_flags cimport (
    BARE, CHOICE, CONTENT, CUMULATIVE, EMPTY, FINISH, OTHER, REASONING, ROLE, SILENT, TOKENS,
)

import json


cpdef str unread_name(str name, dict counts):
    """Return the name under which `counts` is to count what no rule took: its own, or "others" once
    there are MAX_UNREAD_NAMES.
    """
    return name if name in counts or len(counts) < MAX_UNREAD_NAMES else "others"


def live():
    """Return the bytes that this module has allocated; None unless it is a debug build."""
    return {"bytes": live_count(BYTES)} if COUNTING else None


cdef class Answer:
    """What has come of one answer (answer.pxd); stamps are CLOCK_MONOTONIC ns, 0 if none came."""

    def __cinit__(self):
        self.results = self.first_answer_event = self.maybe_last = -1
        self.prompt_tokens = self.completion_tokens = self.cached_tokens = -1
        self.reasoning_tokens = self.total_tokens = -1

    def __dealloc__(self):
        count_freed(self.runs.list)
        free(self.runs.list)
        free_arrays(&self.arrays)
        free_buffer(&self.text_json)
        free_buffer(&self.answer_json)

    cdef int add_event(self, int64_t flags, int64_t tokens, int64_t completion,
                       int64_t at_ns) except -1:
        """Add an event of any kind to the list of events, and count its tokens if it bears any.

        Args:
            flags: What the event says (event_flags).
            tokens: How many by its token ids or logprobs; -1: it does not say.
            completion: The completion tokens so far by its usage; -1: it does not say.
            at_ns: Its stamp.
        """
        cdef int64_t kinds
        # the same text again, with a finish reason
        if flags & CUMULATIVE and 0 <= completion <= self.counted:
            flags &= ~<int64_t>TOKENS
        if not flags & TOKENS and self._is_silent(flags, tokens, completion):
            flags |= SILENT
        kinds = flags & TOKENS
        append_event(&self.runs, flags, at_ns)
        if not kinds:
            return self._add_maybe(flags, at_ns) if may_bear_token(flags) else 0
        # Usage that did not come with the first event sums up the events before: it says nothing
        # about this one.
        if completion >= 0 and (self.first_token == 0 or self.counted_by == BY_USAGE):
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
                self.first_answer = self.first_answer_earliest = at_ns
                self.first_answer_event = self.events
        elif kinds & REASONING:
            self.reasoning_events += 1
        elif kinds & OTHER:
            self.other_events += 1
        self._reserve_next()
        put(&self.arrays, self.events, at_ns, tokens)
        self.counted += tokens
        self.events += 1
        return 0

    cdef bint _is_silent(self, int64_t flags, int64_t tokens, int64_t completion) noexcept:
        """Return whether an event without text bears tokens by itself: by its token ids, or by a
        usage that has grown since the event before.
        """
        if not flags & CHOICE:
            return False
        if tokens > 0:
            return True
        if completion <= self.counted or flags & (ROLE | BARE) == ROLE:
            return False
        if flags & CUMULATIVE:
            return True
        if self.first_token == 0:  # the usage of a whole answer may come with its end
            return flags & (EMPTY | BARE) and not flags & FINISH
        return self.counted_by == BY_USAGE and self.get_first_tokens() > 0

    cdef int _add_maybe(self, int64_t flags, int64_t at_ns) except -1:
        """Keep the stamp of an event without text, until the count of the whole answer shows
        whether it bears a token.
        """
        cdef bint is_last = flags & FINISH and self.maybe_last < 0
        self._reserve_next()
        if is_last:
            self.maybe_last = self.events
        else:
            self.maybe_events += 1
        put(&self.arrays, self.events, at_ns, 1 if is_last else MAYBE)
        self.events += 1
        return 0

    cdef int _reserve_next(self) except -1:
        """Make room for one more event."""
        if self.events == self.arrays.capacity:
            reserve(&self.arrays, max(2 * self.events, min(max(self.output_tokens, 8), 512)))
        return 0

    cdef int set_read(self, Py_ssize_t first, int64_t read_ns) except -1:
        """Store when the events from number `first` on were read."""
        return put_read(&self.arrays, first, self.events, read_ns)

    cdef int set_source(self, Py_ssize_t first, int64_t source) except -1:
        """Store what the stamps of the events from number `first` on are: USER or REORDERED."""
        if source == USER:
            self.user_stamped += self.events - first
        else:
            self.reordered += self.events - first
        return put_source(&self.arrays, first, self.events, source)

    cdef int set_earliest(self, Py_ssize_t first, Py_ssize_t end, int64_t earliest_ns) except -1:
        """Store when the events from `first` to before `end` can have come at the earliest."""
        if self.arrays.earliest_ns == NULL and first < end:
            self.arrays.earliest_ns = copy_of_stamps(&self.arrays, self.events)
        for i in range(first, end):
            self.arrays.earliest_ns[i] = earliest_ns
        if first <= self.first_answer_event < end:
            self.first_answer_earliest = earliest_ns
        return 0

    cdef int set_usage(self, int64_t prompt, int64_t completion, int64_t cached,
                       int64_t reasoning, int64_t total) except -1:
        """Store the server's token counts; -1: this event does not say."""
        if prompt >= 0:
            self.prompt_tokens = prompt
        if completion >= 0:
            self.completion_tokens = completion
        if cached >= 0:
            self.cached_tokens = cached
        if reasoning >= 0:
            self.reasoning_tokens = reasoning
        if total >= 0:
            self.total_tokens = total
        return self._learn_finish()

    cdef int set_finish(self, str reason) except -1:
        """Store the finish reason."""
        self.finish_reason = reason
        return self._learn_finish()

    cdef int set_done(self) except -1:
        """Store that [DONE] came."""
        self.done_seen = True
        return self._learn_finish()

    cdef int _learn_finish(self) except -1:
        if self.done_seen or (self.finish_reason is not None and self.completion_tokens >= 0):
            self.finish = COMPLETE
        elif self.finish_reason is not None:
            self.finish = FINISHED
        return 0

    cdef int note_unread(self, str what, bytes sample) except -1:
        """Count what no rule took by its name, and keep the first bytes of an example of it."""
        if self.unread is None:
            self.unread = {}
        what = unread_name(what, self.unread)
        count, first = self.unread.get(what, (0, sample[:MAX_UNREAD].decode("utf-8", "replace")))
        self.unread[what] = (count + 1, first)
        return 0

    cdef int append_text(self, const char *text, Py_ssize_t n, bint cumulative) except -1:
        """Keep text, escaped as in JSON; with `cumulative` it may be all text until now."""
        return append(&self.text_json, text, n, cumulative)

    cdef int append_answer(self, const char *text, Py_ssize_t n, bint cumulative) except -1:
        """Keep content of the answer, as `append_text` does."""
        return append(&self.answer_json, text, n, cumulative)

    cdef int settle(self) except -1:
        """Hold the events of an answer that has ended against the counts of its usage."""
        self._settle_usage()
        cdef int64_t streamed = self.completion_tokens
        if not self.reasoning_events:
            streamed -= max(self.reasoning_tokens, 0)
        self._settle_silent(streamed - self.counted if self.counted_by == BY_EVENTS else 0)
        return self._drop_implausible_counts()

    cdef int _settle_usage(self) except -1:
        """Bring the counts of the usage to one form: a count of 0 is none, and the reasoning is
        among the completion tokens.

        xAI and Gemini count reasoning beside them, as the total shows.
        """
        cdef int64_t prompt = max(self.prompt_tokens, 0), completion = self.completion_tokens
        cdef int64_t reasoning = max(self.reasoning_tokens, 0)
        if completion > 0 and reasoning > 0:
            if self.total_tokens == prompt + completion + reasoning:
                self.completion_tokens += reasoning
        if self.prompt_tokens == 0:
            self.prompt_tokens = self.cached_tokens = -1
        return 0

    cdef int _settle_silent(self, int64_t missing) except -1:
        """Let events without text bear the tokens that are missing, and forget the others.

        Args:
            missing: How many tokens the usage counts beyond the events with text.
        """
        cdef Py_ssize_t i, last = self.maybe_last
        if self.maybe_events == 0 and last < 0:
            return 0
        self.maybe_last = -1
        if self.maybe_events == 0 and last == self.events - 1:  # nearly every stream
            if missing != 1 or last == 0:
                self._forget(last)
                self.events -= 1
                return 0
            mark_last_run(&self.runs)
            self.counted += 1
            return self._read_ends()
        if last >= 0:
            mark_maybe_last(&self.arrays, last, self.events)
        if missing > 0:
            self._promote(missing, last)
        mark_silent_runs(&self.runs, self.arrays.tokens, self.events)
        self.maybe_events = 0
        for i in range(self.events - 1, -1, -1):
            if self.arrays.tokens[i] < 0:
                self._forget(i)
        self.events = keep_events(&self.arrays, self.events, &self.first_answer_event)
        if self.counted_by == BY_EVENTS:
            drop_tokens(&self.arrays)
        return self._read_ends()

    cdef int _promote(self, int64_t missing, Py_ssize_t last) except -1:
        """Let so many events without text bear a token: those after the first text, in order, then
        the `last`, with the finish reason, if exactly one token is left. Those before the first
        text bear one only if all of them do: an opening chunk or a heartbeat has none.
        """
        cdef int64_t *tokens = self.arrays.tokens
        cdef int64_t before = missing, heads = 0
        cdef Py_ssize_t first = 0
        while first < self.events and tokens[first] < 0:
            if tokens[first] == MAYBE:
                heads += 1
            first += 1
        if first == self.events:
            first = heads = 0
        missing = bear_tokens(&self.arrays, first, self.events, missing)
        if last >= 0 and (missing == 1 or missing == heads + 1):
            tokens[last] = 1
            missing -= 1
        if missing == heads:
            missing = bear_tokens(&self.arrays, 0, first, missing)
        self.counted += before - missing
        return 0

    cdef void _forget(self, Py_ssize_t event) noexcept:
        """Take an event that bears no token out of the counts of events; the last one first."""
        if event < self.events_before:
            self.events_before -= 1
        if self.arrays.sources == NULL:
            return
        if self.arrays.sources[event] == USER:
            self.user_stamped -= 1
        elif self.arrays.sources[event] == REORDERED:
            self.reordered -= 1

    cdef int _read_ends(self) except -1:
        """Take the first and last token and the reads from the stamps of the events."""
        cdef int64_t at_ns = 0
        cdef Py_ssize_t i
        self.reads = 0
        self.first_token = self.last_token = 0
        for i in range(self.events):
            if at_ns != self.arrays.stamps_ns[i]:
                self.reads += 1
            at_ns = self.arrays.stamps_ns[i]
        if self.events:
            self.first_token, self.last_token = self.arrays.stamps_ns[0], at_ns
        return 0

    cdef int _drop_implausible_counts(self) except -1:
        """Correct or drop the counts of an answer that has ended, where they cannot be true.

        Some servers send a count of 0 until the end, or the whole count with the first event, or
        falling counts. Then most events seem to bear no token, and all counts are dropped. So is a
        completion count of 0 if tokens came. Where the first event bears none and the total is
        larger, each count was that of the event before.
        """
        cdef Py_ssize_t empty_events = 0
        cdef int64_t *tokens = self.arrays.tokens
        if self.events and self.completion_tokens == 0:
            self.completion_tokens = -1
        if tokens == NULL or not self.events:
            return 0
        if self.counted_by == BY_USAGE and tokens[0] == 0 and self.completion_tokens > self.counted:
            for i in range(self.events - 1):
                tokens[i] = tokens[i + 1]
            tokens[self.events - 1] = self.completion_tokens - self.counted
            self.counted = self.completion_tokens
        for i in range(self.events):
            if tokens[i] == 0:
                empty_events += 1
        if 2 * empty_events > self.events:
            drop_tokens(&self.arrays)
            self.counted, self.counted_by = self.events, BY_EVENTS
        return 0

    def restore(self, stamps, tokens=None, stream=(), answer="", earliest=None, read_late=None):
        """Add the events of a record from a file.

        Args:
            stamps: Stamps of the token-bearing events, ns.
            tokens: How many tokens each bears; None: one each.
            stream: As the property `stream`; None: unknown.
            answer: The text of the answer.
            earliest: Pairs (number of an event, its earliest time, ns); None: all stamps are exact.
            read_late: How long after its stamp each event was read, ns; None: at once.
        """
        counts = [1] * len(stamps) if tokens is None else tokens
        reserve(&self.arrays, self.events + max(len(stamps), 1))
        if tokens is not None:
            count_tokens(&self.arrays, self.events)
        for at_ns, k in zip(stamps, counts, strict=True):
            put(&self.arrays, self.events, at_ns, k)
            self.counted += k
            self.events += 1
        if earliest is not None and self.arrays.earliest_ns == NULL:
            self.arrays.earliest_ns = copy_of_stamps(&self.arrays, self.events)
        for number, at_ns in earliest or ():
            if not 0 <= number < self.events:
                raise ValueError(number)
            self.set_earliest(number, number + 1, at_ns)
        if read_late is not None:
            self.arrays.reads_ns = copy_of_stamps(&self.arrays, self.events)
            for i, late_ns in zip(range(self.events), read_late, strict=True):
                self.arrays.reads_ns[i] += late_ns
        self.runs.is_cut = stream is None
        for flags, value in stream or ():
            if flags & TOKENS:
                append_run(&self.runs, flags, value, 0)
            else:
                append_run(&self.runs, flags, 1, value)
        escaped = json.dumps(answer).encode()
        append_bytes(&self.answer_json, PyBytes_AS_STRING(escaped) + 1, len(escaped) - 2)

    @property
    def latest_event(self):
        """The stamp of the last event that bears a token, or may prove to; 0: there is none."""
        return self.arrays.stamps_ns[self.events - 1] if self.events else 0

    @property
    def text(self):
        """All text of the answer, with reasoning and arguments of tools; empty: not kept."""
        # Half a surrogate pair is no UTF-8, but may well be what the server sent.
        if self.text_json.size == 0:
            return ""
        text = self.text_json.data[:self.text_json.size].decode("utf-8", "replace")
        return json.loads(f'"{text}"', strict=False)

    @property
    def answer(self):
        """The content without reasoning, as bytes between the quotes of a JSON string; empty if
        it was not kept.
        """
        return self.answer_json.data[:self.answer_json.size] if self.answer_json.size else b""

    @property
    def answer_text(self):
        """`answer` as text; half a surrogate pair, which some servers send, becomes U+FFFD."""
        text = json.loads(f'"{self.answer.decode("utf-8", "replace")}"', strict=False)
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    @property
    def stream(self):
        """All events in order as pairs (flags, value); None if they were not kept, or not all.

        The value of token-bearing events is how many with these flags follow each other, else the
        stamp of the event.
        """
        if not self.has_all_runs():
            return None
        pairs = []
        for run in self.runs.list[:self.runs.count]:
            pairs.append((run.flags, run.count if run.flags & TOKENS else run.at_ns))
        return pairs

    cdef bint has_all_runs(self) noexcept:
        """Whether the list of events holds every event of the stream."""
        return is_complete(&self.runs, self.events)

    @property
    def first_tokens(self):
        """The number of tokens in the first token-bearing event; 0 if there is none."""
        return self.get_first_tokens()

    cdef int64_t get_first_tokens(self) noexcept:
        return (1 if self.arrays.tokens == NULL else self.arrays.tokens[0]) if self.events else 0

    cdef int64_t get_inexact(self) noexcept:
        """How many events may have come before their stamp."""
        return count_inexact(&self.arrays, self.events)

    cdef int64_t get_late(self) noexcept:
        """How many of the events that may have come before their stamp were read late."""
        return count_late(&self.arrays, self.events)

    cpdef int64_t earliest_at(self, Py_ssize_t event) noexcept:
        """When the event of this number can have come at the earliest, ns."""
        return earliest(&self.arrays, event)

    cdef int64_t stamped_span_ns(self) noexcept:
        """The time from the first stamp of an event to the last, ns."""
        if not self.events:
            return 0
        return self.arrays.stamps_ns[self.events - 1] - self.arrays.stamps_ns[0]
