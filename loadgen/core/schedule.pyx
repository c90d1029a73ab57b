# cython: language_level=3
"""Schedule: which request may be sent at a time, by due times, slots and follow-ups.

Budget per request: some comparisons of integers. It reads no clock: the caller gives the time.
"""
cimport cython
from libc.stdint cimport int64_t

from loadgen.core.c.kernel cimport NEVER

from array import array
from bisect import bisect_right
from collections import deque
from heapq import heappop, heappush

NO_CAP_CHANGE = (NEVER, 0)


@cython.final
cdef class Schedule:
    """The requests that have not been handed out. Each is handed out once, and never early.

    All times are ns on the clock of the run.

    Args:
        start_ns: When the clock of the run starts.
        numbers: The numbers of the requests that follow none.
        due: Their due times, ns from the start, ascending.
        following: How many more requests become due only once others have ended: `follow()` says
            when, or `cancel()` that they never do.
        cap: Maximum of requests in flight; None for no limit. `release()` frees a slot.
        caps: When the cap changes, and to what; ascending. Where it falls, requests in flight end,
            and none is handed out until fewer are left.
        closed_loop: Every request is due when a slot is free for it: a burst under a cap has no
            other due time. Those that follow have one, and go first.
        until_ns: Nothing becomes due from then on; None for no end.

    Attributes:
        index: The number of the request that was handed out last.
        due_ns: When it was due.
        ready_ns: When a slot was free for it.
        next_ns: When the next one may be due, after `step` has handed out none.
        cap: Most requests in flight now; None for no limit.
        cut_off: Requests that were not handed out since `until_ns` had come.
    """
    def __init__(
        self, int64_t start_ns, numbers, due, *, int64_t following=0, cap=None, caps=(),
        bint closed_loop=False, until_ns=None
    ):
        self._start_ns, self._closed_loop = start_ns, closed_loop
        self._until_ns = NEVER if until_ns is None else until_ns
        self._numbers, self._count = numbers, len(due)
        if isinstance(numbers, range):
            self._first, self._step = numbers.start, numbers.step
        is_plain = isinstance(due, array) and due.typecode == "q"
        self._due_times = due if is_plain else array("q", due)
        cdef const int64_t[::1] due_times = self._due_times
        self._due = &due_times[0] if self._count else NULL
        self._following = following
        self.cap = cap
        self._slots = self._count + following if cap is None else cap
        self._caps = iter(caps)
        self._change_ns, self._next_cap = next(self._caps, NO_CAP_CHANGE)
        self._later, self._waiting = [], deque()
        self.next_ns = start_ns

    @property
    def is_done(self):
        """Whether nothing is left to be handed out."""
        return not self.has_more()

    cdef bint has_more(self) noexcept:
        return self._next < self._count or self._following > 0 or len(self._waiting) > 0

    def overdue(self, int64_t at_ns):
        """Return how many requests are due and not handed out: without a slot, or late; without
        late follow-ups.
        """
        cdef Py_ssize_t late = 0
        if not self._closed_loop:
            late = bisect_right(self._due_times, at_ns - self._start_ns, self._next) - self._next
        return len(self._waiting) + late

    cpdef bint step(self, int64_t at_ns) except -1:
        """Hand out the next request that may be sent at `at_ns`, if there is one.

        Returns:
            Whether there is: `index`, `due_ns` and `ready_ns` are of it. Else `next_ns` says when
            to ask again.
        """
        cdef int64_t due_ns
        cdef bint follows
        if self._change_ns <= at_ns:
            self._change_cap(at_ns)
        if self._slots > 0 and self._waiting:
            if self._is_over(at_ns):
                return False
            self.due_ns, self.index = self._waiting.popleft()
            self.ready_ns = at_ns
            self._slots -= 1
            return True
        while True:
            due_ns, follows = NEVER, False
            if self._next < self._count and (self._slots > 0 or not self._closed_loop):
                due_ns = self._start_ns + self._due[self._next]
            if self._later and <int64_t>self._later[0][0] < due_ns:
                due_ns, follows = self._later[0][0], True
            if due_ns > at_ns:
                break
            self.due_ns = self.ready_ns = at_ns if self._closed_loop and not follows else due_ns
            if self._slots > 0 and self._is_over(self.ready_ns):
                return False
            if follows:
                self.index = heappop(self._later)[1]
                self._following -= 1
            else:
                self.index = self._number(self._next)
                self._next += 1
            if self._slots > 0:
                self._slots -= 1
                return True
            self._waiting.append((due_ns, self.index))
        if not self._is_over(at_ns):
            self.next_ns = min(due_ns, self._change_ns, self._until_ns)
        return False

    cpdef bint release(self) except -1:
        """Free the slot of a request that has ended; return whether another one may take it."""
        self._slots += 1
        return bool(self._waiting) or (self._closed_loop and self._next < self._count)

    def follow(self, int64_t index, int64_t due_ns):
        """Have a follow-up become due at `due_ns`; return whether it is the next of them."""
        heappush(self._later, (due_ns, index))
        return self._later[0][1] == index

    def cancel(self, int64_t count):
        """Cancel this many follow-ups, which will never be due."""
        self._following -= count

    def stop(self):
        """Drop all requests.

        Returns:
            How many were due or would have been; 0 where `until_ns` is set, since how many more
            would have found a slot in time is not known: they are added to `cut_off`.
        """
        cdef int64_t count = self._drop_all()
        if self._until_ns == NEVER:
            return count
        self.cut_off += count
        return 0

    cdef int64_t _number(self, Py_ssize_t i) except? -1:
        return self._first + i * self._step if self._step else self._numbers[i]

    cdef int _change_cap(self, int64_t at_ns) except -1:
        """Take the cap of this time."""
        before = self.cap
        while self._change_ns <= at_ns:
            self.cap = self._next_cap
            self._change_ns, self._next_cap = next(self._caps, NO_CAP_CHANGE)
        self._slots += self.cap - before
        return 0

    cdef bint _is_over(self, int64_t ready_ns) except -1:
        """Return whether time is up for a request that could be sent at `ready_ns`; then none is
        handed out any more.
        """
        if ready_ns < self._until_ns:
            return False
        self.cut_off += self._drop_all()
        return True

    cdef int64_t _drop_all(self) except -1:
        """Drop the requests that have not been handed out, and return how many those are."""
        cdef int64_t left = self._count - self._next + <int64_t>len(self._waiting) + self._following
        self._next, self._following = self._count, 0
        self.next_ns = NEVER
        self._waiting.clear()
        self._later.clear()
        return left
