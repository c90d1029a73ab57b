# cython: language_level=3
"""Counter: counts the requests of a run, each when it has ended.

Budget per request that ended as most do: no call of a Python function.
"""
cimport cython
from libc.stdint cimport int64_t

from loadgen.core.accumulator cimport Tally
from loadgen.core.record cimport Record
from loadgen.core.request_rows cimport RequestRows

import json

from loadgen.core.outcome import Outcome

cdef object OK = Outcome.OK
cdef Py_ssize_t MAX_WORDS = 20  # reasons for an end are the server's words: any beyond these are counted together
cdef Py_ssize_t MAX_STOP_CHARACTERS = 64


@cython.final
cdef class Counter:
    """Counts records that have their outcome.

    Args:
        tally: Adds up their numbers.
        rows: Keeps a row of each.
        add_more: Called with each record of which there is more to count than is counted here: it
            failed, was sent several times, its user was to leave, it brought what no rule took, or
            its stream was open for `silence_ns`.
        always: Whether to call it with every record.
        silence_ns: See `add_more`.

    Attributes:
        ended: Records that were added.
        ok: Those of them with the outcome OK.
        finishes: Finish reasons of answers with tokens, and how often each came.
        early_stops: The same of answers with fewer tokens than planned, with the stop word (in
            quotes) or token id where the server names it.
    """

    def __init__(
        self, Tally tally not None, RequestRows rows not None, add_more, *, bint always,
        int64_t silence_ns
    ):
        self._tally, self._rows, self._add_more = tally, rows, add_more
        self._always, self._silence_ns = always, silence_ns
        self.finishes, self.early_stops = {}, {}

    def divide(self, list parts not None, Py_ssize_t classes):
        """Have other counters count the records from now on; this one only has how many ended.

        Args:
            parts: Of each pair of a target and a class, by target * classes + class.
            classes: How many classes there are, at least 1.
        """
        self._parts, self._classes = parts, classes

    @cython.boundscheck(True)  # a damaged file may name any target
    cpdef add(self, Record record):
        """Count a record."""
        cdef Counter part
        self.ended += 1
        if self._parts is not None:
            part = self._parts[record.target * self._classes + record.class_number]
            part.add(record)
            return
        self._rows.add(record)
        self._tally.add(record)
        if record.outcome is OK:
            self.ok += 1
            if record.results < 0:
                count_word(self.finishes, record.finish_reason or "")
            if record.has_count() and record.get_answer_tokens() < record.output_tokens:
                count_word(self.early_stops, why_ended(record))
        if self._always or self._has_more(record):
            self._add_more(record)

    cdef bint _has_more(self, Record record) noexcept:
        return (
            record.outcome is not OK
            or record.attempts > 1
            or record.unread is not None
            or record.disconnect_tokens > 0
            or record.disconnect_ns >= 0
            or (record.first_token > 0 and record.closed - record.first_token >= self._silence_ns)
        )


cdef int count_word(dict counts, word) except -1:
    if len(counts) >= MAX_WORDS and word not in counts:
        word = "other"
    counts[word] = counts.get(word, 0) + 1
    return 0


cdef object why_ended(Record record):
    """Return the finish reason of an answer, with its stop word or token id."""
    finish, stop = record.finish_reason or "none", record.matched_stop
    if stop is None:
        return finish
    if isinstance(stop, str):
        return f"{finish} ({json.dumps(stop[:MAX_STOP_CHARACTERS])})"
    return f"{finish} (token {stop})"
