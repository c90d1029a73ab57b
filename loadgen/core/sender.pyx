# cython: language_level=3
"""Sender: what happens to a request between its schedule and its link, and to its record when it
has ended.

Budget per request: a plain run pays for the tests whether a hook is set. Features of a run register
hooks, each in a module of its own.
"""
cimport cython
from libc.stdint cimport int64_t

from loadgen.core.connections cimport Connections
from loadgen.core.pacer cimport Pacer
from loadgen.core.record cimport Record
from loadgen.core.request_table cimport RequestTable
from loadgen.core.schedule cimport Schedule
from loadgen.util.method cimport call_with, method_of

import asyncio


@cython.final
cdef class Sender:
    """Sends the requests of a schedule over one link, and counts the ends.

    An exception of ours, also in a hook, ends the run: in the event loop it would be logged, and
    the run would never end.

    Args:
        schedule: When requests are due.
        table: The requests.
        link: Has `send(record, body)`, `on_end`, and `hook`, the hook of its reads. `on_end` becomes
            `end`, and the hook's `on_fault` becomes `fail`.
        add: Called with each record that has ended.
        clock: The clock of the schedule.

    Attributes:
        pacer: Hands out the requests.
        in_flight: When each request that has not ended was ready to be sent, ns, by its number; the
            oldest first.
        ended: How many have ended.
        drained: Set once all have been sent and have ended, or there is a failure.
        failure: The exception that ended the run; None: there is none.
        keeps_text: Whether records keep the text of their answers.
        keeps_answer: Whether they keep the bytes of it.
        samples: None, or called with the number of each request: whether to keep its text.
        defers: Called with records that have kept their text: whether who set it gives them to
            `add` later; set it with `samples` or `keeps_text`.
        body: None, or called with the number of a request for its body.
        before_send: Called, in their order, with each record before its first attempt is sent.
        resends: None, or called with each record that has ended: whether it is sent again, and so
            goes on.
        after_end: Called, in their order, with each record once it has ended: first who reads it,
            then who takes something from it, last who has others follow it.
    """

    cdef readonly Pacer pacer
    cdef readonly dict in_flight
    cdef public int64_t ended
    cdef readonly object drained, failure
    cdef public bint keeps_text, keeps_answer
    cdef public object samples, defers, body, resends
    cdef readonly list before_send, after_end
    cdef RequestTable _table
    cdef object _add, _link

    def __init__(
        self, Schedule schedule not None, RequestTable table not None, link, add, clock
    ):
        self._table, self._link, self._add = table, link, add
        self.pacer = Pacer(schedule, method_of(self, send_due), link.hook, clock)
        self.in_flight, self.before_send, self.after_end = {}, [], []
        self.drained = asyncio.Event()
        link.on_end, link.hook.on_fault = method_of(self, end_request), self.fail

    cdef int _send(self, Schedule schedule) except -1:
        """Send the request that the schedule has handed out."""
        cdef Record record
        cdef bint is_sampled
        cdef object index = schedule.index
        try:
            record = self._table.record(schedule.index, schedule.due_ns)
            record.ready = schedule.ready_ns
            is_sampled = self.samples is not None and self.samples(index)
            record.keeps_text = self.keeps_text or is_sampled
            record.keeps_answer = self.keeps_answer
            for before_send in self.before_send:
                call_with(before_send, record)
            self.in_flight[index] = record.ready
            self._put(record)
        except Exception as error:
            self.fail(error)
        return 0

    def send_again(self, Record record not None):
        """Send the next attempt of a request that is in flight for its user."""
        try:
            self._put(record)
        except Exception as error:
            self.fail(error)

    def end(self, Record record not None):
        """Count a request that has its outcome."""
        self._end(record)

    cdef int _end(self, Record record) except -1:
        """As `end`."""
        try:
            if self.resends is not None and self.resends(record):
                return 0
            self.ended += 1
            del self.in_flight[record.index]
            if not (record.keeps_text and self.defers(record)):
                call_with(self._add, record)
            for after_end in self.after_end:
                call_with(after_end, record)
            self.pacer.release()
            if not self.in_flight and not self.pacer.schedule.has_more():
                self.drained.set()
        except Exception as error:
            self.fail(error)
        return 0

    cdef int _put(self, Record record) except -1:
        """Give a request to the link."""
        cdef int64_t index = record.index
        cdef bytes body = self._table.body(index) if self.body is None else self.body(index)
        if isinstance(self._link, Connections):
            return (<Connections>self._link).send_request(record, body)
        self._link.send(record, body)
        return 0

    def fail(self, error):
        """End the run with an error of ours."""
        if self.failure is None:
            self.failure = error
            self.pacer.stop()
            self.drained.set()


cdef int send_due(object target, object schedule) except -1:
    """Have a sender send the request that its schedule has handed out."""
    return (<Sender>target)._send(<Schedule>schedule)


cdef int end_request(object target, object record) except -1:
    """Have a sender count a request that has its outcome."""
    return (<Sender>target)._end(<Record?>record)
