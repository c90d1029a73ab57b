# cython: language_level=3
"""RecordCounter: counts the requests of a run, each when it has ended.

Budget per request that ended as most do: no call of a Python function.
"""
cimport cython
from libc.stdint cimport int64_t

from loadgen.core.accumulator cimport Tally
from loadgen.core.record cimport Record
from loadgen.core.request_rows cimport RequestRows
from loadgen.util.method cimport method_of

import json

from loadgen.core.outcome import Outcome
from loadgen.core.server_times import BY

cdef object OK = Outcome.OK
cdef Py_ssize_t MAX_WORDS = 20  # reasons for an end are the server's words: any beyond these are counted together
cdef Py_ssize_t MAX_STOP_CHARACTERS = 64


@cython.final
cdef class RecordCounter:
    """Counts records that have their outcome.

    Args:
        tally: Adds up their numbers.
        rows: Keeps a row of each.
        incidents: Has `add_failure`, `add_retried` and `add_unread`, which are called with the
            records that failed, were sent several times, and brought what no rule took; and
            `add_silence`, called with those whose stream was open for `silence_ns`.
        silence_ns: See `incidents`.
        add_details: Called with every record, or None.

    Attributes:
        ended: Records that were added.
        ok: Those of them with the outcome OK.
        finishes: Finish reasons of answers with tokens, and how often each came.
        early_stops: The same of answers with fewer tokens than planned, with the stop word (in
            quotes) or token id where the server names it.
        said_times: Who said times of the server's, and of how many.
    """
    cdef readonly int64_t ended, ok
    cdef readonly dict finishes, early_stops, said_times
    cdef Tally _tally
    cdef RequestRows _rows
    cdef object _incidents, _add_details
    cdef int64_t _silence_ns

    def __init__(
        self, Tally tally not None, RequestRows rows not None, incidents not None, *,
        int64_t silence_ns, add_details
    ):
        self._tally, self._rows, self._incidents = tally, rows, incidents
        self._silence_ns, self._add_details = silence_ns, add_details
        self.finishes, self.early_stops, self.said_times = {}, {}, {}

    @property
    def add(self):
        """Counts a record."""
        return method_of(self, count_record)

    cdef int _add(self, Record record) except -1:
        self.ended += 1
        self._rows.add(record)
        self._tally.add(record)
        if record.outcome is OK:
            self.ok += 1
            if record.results < 0:
                count_word(self.finishes, record.finish_reason or "")
            if record.has_count() and record.get_answer_tokens() < record.output_tokens:
                count_word(self.early_stops, why_ended(record))
            if record.times.by:
                count_word(self.said_times, BY[record.times.by - 1])
        else:
            self._incidents.add_failure(record)
        if record.attempts > 1:
            self._incidents.add_retried(record)
        if record.unread is not None:
            self._incidents.add_unread(record)
        if record.first_token > 0 and record.closed - record.first_token >= self._silence_ns:
            self._incidents.add_silence(record)
        if self._add_details is not None:
            self._add_details(record)
        return 0


cdef int count_record(object target, object record) except -1:
    """Have a record counted."""
    return (<RecordCounter>target)._add(<Record?>record)


@cython.final
cdef class RecordDivider:
    """Has each record counted by what counts those of its target and class.

    Args:
        adds: What counts a record of each pair of a target and a class, by
            target * classes + class.
        classes: How many classes there are, at least 1.
    """
    cdef list _adds
    cdef Py_ssize_t _classes

    def __init__(self, list adds not None, Py_ssize_t classes):
        self._adds, self._classes = adds, classes

    def add(self, Record record not None):
        """Have a record counted."""
        cdef Py_ssize_t part = record.target * self._classes + record.class_number
        if not 0 <= part < len(self._adds):  # a damaged file may name any target
            raise IndexError(part)
        self._adds[part](record)


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
