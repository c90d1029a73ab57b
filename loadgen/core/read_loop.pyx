# cython: language_level=3
"""ReadLoop: an epoll set that reads sockets ahead of the event loop, in one queue with the alarms
of the sender.

On uvloop the read loop waits in place of the event loop, so that a read takes no turn of that. Its
epoll set watches the event loop, and libuv says for how long that has nothing to do otherwise. So
nothing in the event loop is later than it would be: a callback, a timer, a file.

An alarm alone is not enough to send on time: an engine that steps a large batch makes a thousand
streams readable at once, and a loop reads all of them before it looks at a timer (p99 lag 1.5 ms).
So each read also compares its time with the next due time. The kernel reports a socket only when
more has come (EPOLLET). An end that comes with data is reported once, with the data: so such a
socket is looked at again. Where a reader fails, the others of the batch are still read.

Budget per read: one list look-up and one call through a C pointer, then the reader's own recv,
stamp and parsing, and one comparison with the time of the next send. One epoll_wait reports up to
1,024 sockets.
"""
cimport cython
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.errno cimport errno
from libc.stdint cimport int64_t, uint32_t

from loadgen.core.c.event_loop cimport find_event_loop, loop_wait_ms
from loadgen.core.c.kernel cimport NEVER as C_NEVER, ask_for_stamps, now_ns, run_delay_ns
from loadgen.core.kernel_clock cimport KernelClock
from loadgen.util.method cimport call

import asyncio
import contextlib
import os
import socket
import sys

SCHEDSTAT = "/proc/thread-self/schedstat"
NEVER = C_NEVER  # for Python

cdef extern from *:
    """
    #include <unistd.h>
    #ifdef __linux__
    #include <sys/epoll.h>
    #else  /* no epoll: epoll_create1 fails, and the event loop reads */
    #include <stdint.h>
    enum { EPOLLIN = 1, EPOLLRDHUP = 2, EPOLLET = 4, EPOLL_CLOEXEC = 0 };
    enum { EPOLL_CTL_ADD = 1, EPOLL_CTL_DEL = 2, EPOLL_CTL_MOD = 3 };
    struct epoll_event { uint32_t events; union { int fd; } data; };
    static int epoll_create1(int flags) { return -1; }
    static int epoll_ctl(int set, int operation, int fd, struct epoll_event *event) { return -1; }
    static int epoll_wait(int set, struct epoll_event *events, int max_events, int timeout_ms) {
        return -1;
    }
    #endif
    """
    ctypedef union epoll_data_t:
        int fd
    ctypedef struct epoll_event "struct epoll_event":
        uint32_t events
        epoll_data_t data
    enum: EPOLLIN, EPOLLRDHUP, EPOLLET, EPOLL_CLOEXEC, EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD
    int epoll_create1(int) nogil
    int epoll_ctl(int, int, int, epoll_event *) nogil
    int epoll_wait(int, epoll_event *, int, int) nogil
    int close_fd "close"(int) nogil


cdef class SendHook:
    """A callback that is due at a time and must not wait for a long turn of the loop.

    An engine that steps a large batch makes a thousand streams readable at once, and a loop reads
    them all before it looks at its timers. So each read compares its time with `due_ns`, and then
    calls `callback`. The hook also counts what the connections of its loop do, and says who is told
    of faults.

    Attributes:
        due_ns: When `callback` is due, CLOCK_MONOTONIC; NEVER: not at all.
        callback: Called without arguments by the first read that is not before `due_ns`.
        on_fault: Called with an exception of ours in what the event loop calls by itself; by
            default the event loop logs it.
        late_ns: How late the loop may have come to a read, over the last alarms of the probe;
            NEVER: not known.
        is_sparse: Whether the alarms are so far apart that a stall may lie between two of them.
        handled_ns: When the alarm before the last one was due: what had come by then has been read.
        alarm_ns: When the next alarm is due.
        stalled_ns: When an alarm was handled last that was late by more than STALL_NS; -1: never.
        reads: Reads of sockets.
        tokens: Tokens that these reads brought to requests of the run, which have numbers from 0;
            an event that does not say how many it bears counts as one.
        sends: Attempts of such requests that were written.
        loop_bounded_reads: Reads with tokens whose arrival no kernel stamp shows: their bounds need
            frequent alarms of the probe.
    """

    def __init__(self):
        self.due_ns, self.callback = NEVER, None
        self.late_ns = self.alarm_ns = NEVER
        self.stalled_ns = -1
        self.on_fault = _log

    def guarded(self, callback, *arguments):
        """Call back; an exception goes to `on_fault`, since the event loop would only log it."""
        try:
            callback(*arguments)
        except Exception as fault:
            self.on_fault(fault)


def _log(fault):
    """Report an exception as the event loop does."""
    context = {"message": "an error of loadgen", "exception": fault}
    asyncio.get_running_loop().call_exception_handler(context)


@cython.final
cdef class Watcher:
    """What to call when a file can be read."""


cdef int call_target(object target) except -1:
    """Call back: the `on_readable` of `add_reader`."""
    call(target)
    return False


cdef epoll_event edge_of(int fd) noexcept:
    """Return the request to report each moment at which a file has more to read, or has ended."""
    cdef epoll_event event
    event.events, event.data.fd = EPOLLIN | EPOLLRDHUP | EPOLLET, fd
    return event


@cython.final
cdef class ReadLoop:
    """Calls readers of sockets, and the alarms of the sender, in the order in which they became
    ready.

    On uvloop the epoll set watches the event loop, which calls `turn` whenever it has nothing else
    to do. Any other event loop watches the epoll set as one file. Where there is no epoll, or the
    set is not open, `watch` returns False and the event loop reads.

    Attributes:
        hook: The send hook of its connections.
        kernel_clock: Converts the stamps of what its connections read.
    """

    def __init__(self):
        self.hook, self.kernel_clock = SendHook(), KernelClock()
        self.fd, self.watchers = -1, []
        self.schedstat = self.run_delay_ns = -1

    def open(self, loop):
        """Have the event loop `loop` watch it, until it has been closed as often as opened."""
        cdef epoll_event event
        self.users += 1
        if self.users == 1:
            self.loop = loop
            self.fd = epoll_create1(EPOLL_CLOEXEC)
            if self.fd >= 0:
                self.loop_fd = self._find_event_loop()
                self.turn_fd = self.fd
                if self.loop_fd >= 0:
                    event.events, event.data.fd = EPOLLIN, self.loop_fd
                    epoll_ctl(self.fd, EPOLL_CTL_ADD, self.loop_fd, &event)
                    self.turn_fd = os.eventfd(1)  # the two sets cannot watch each other
                loop.add_reader(self.turn_fd, self.turn)
                # The kernel begins to stamp some time after the first socket of the system has
                # asked for it.
                self.stamped_socket = socket.socket()
                ask_for_stamps(self.stamped_socket.fileno(), False)
                with contextlib.suppress(OSError):
                    self.schedstat = os.open(SCHEDSTAT, os.O_RDONLY)

    def close(self):
        """Undo one `open`; the last one closes the epoll set."""
        self.users -= 1
        if self.users == 0 and self.fd >= 0:
            self.loop.remove_reader(self.turn_fd)
            if self.turn_fd != self.fd:
                os.close(self.turn_fd)
            close_fd(self.fd)
            self.stamped_socket.close()
            if self.schedstat >= 0:
                os.close(self.schedstat)
            self.fd, self.schedstat, self.watchers = -1, -1, []

    cdef int _find_event_loop(self) except -2:
        """Return the descriptor of a loop of uvloop; -1: it is another one."""
        uvloop = sys.modules.get("uvloop.loop")
        if uvloop is None or not isinstance(self.loop, uvloop.Loop):
            return -1
        capsule = uvloop.libuv_get_loop_t_ptr(self.loop)
        cdef bytes module = os.fsencode(uvloop.__file__)
        return find_event_loop(PyCapsule_GetPointer(capsule, NULL), module, &self.event_loop)

    def add_reader(self, int fd, callback):
        """Call `callback`, which has to read all there is, whenever more can be read from `fd`.

        Raises:
            OSError: The kernel watches no more files.
        """
        if self.fd < 0:
            self.loop.add_reader(fd, self.hook.guarded, callback)
        elif not self.watch(fd, callback, call_target):
            raise OSError(errno, os.strerror(errno))

    def remove_reader(self, int fd):
        """Undo `add_reader`."""
        if self.fd < 0:
            self.loop.remove_reader(fd)
        else:
            self.forget(fd)

    cdef bint watch(self, int fd, object target, OnReadable on_readable) except -1:
        """Call `on_readable(target)` whenever `fd` has become readable; False: the kernel
        watches no more files.
        """
        cdef epoll_event event = edge_of(fd)
        cdef Watcher watcher
        if epoll_ctl(self.fd, EPOLL_CTL_ADD, fd, &event) != 0:
            return False
        if fd >= len(self.watchers):
            self.watchers.extend([None] * (fd + 1 - len(self.watchers)))
        watcher = Watcher()
        watcher.target, watcher.on_readable = target, on_readable
        self.watchers[fd] = watcher
        return True

    cdef int forget(self, int fd) except -1:
        """Undo `watch`."""
        cdef epoll_event event
        if self.fd >= 0 and fd < len(self.watchers) and self.watchers[fd] is not None:
            epoll_ctl(self.fd, EPOLL_CTL_DEL, fd, &event)
            self.watchers[fd] = None
        return 0

    cdef int look_again(self, int fd) except -1:
        """Have the kernel report `fd` again if there is still something to read, if it is
        watched.
        """
        cdef epoll_event event = edge_of(fd)
        if self.fd >= 0 and fd < len(self.watchers) and self.watchers[fd] is not None:
            epoll_ctl(self.fd, EPOLL_CTL_MOD, fd, &event)
        return 0

    cdef int64_t empty_until_ns(self, int64_t at_ns) noexcept:
        """Return when a socket, of which all was read before, had received nothing yet of what is
        read now, ns.

        The kernel was asked, and did not report it. But where all processors are busy, it may stamp
        a segment and hand it to the socket later. A stamp from before the question shows such a
        delay; the longest one is allowed for.

        Args:
            at_ns: The stamp of what is read now.
        """
        self.longest_delay_ns = max(self.longest_delay_ns, self.asked_before_ns - at_ns)
        return self.asked_before_ns - self.longest_delay_ns

    cdef int64_t ready_since_ns(self, int64_t read_ns, int64_t at_ns) noexcept:
        """Return when a socket that is read now became readable at the earliest, ns.

        Where that woke this thread, the kernel says for how long the thread then waited for a
        processor, though not for how long a signal stopped it: an alarm would be overdue, or is
        read in the same turn. Nor does it say how long a sleeping processor took to wake: the
        longest such time is allowed for. Else the loop was as late as to the alarms of its probe,
        between two of which it may have stalled. Where the stamp shows that this is not enough,
        what is read may have come at any time since an alarm was handled.

        Args:
            read_ns: When the socket was read.
            at_ns: When it had become readable at the latest.
        """
        cdef SendHook hook = self.hook
        cdef int64_t since_ns
        hook.loop_bounded_reads += 1
        if self._may_have_stalled(read_ns):
            return hook.handled_ns
        if self.longest_wake_ns and self._set_ready():
            since_ns = self._ready_since_ns()
        else:
            since_ns = min(read_ns - hook.late_ns, hook.alarm_ns)
        return since_ns if since_ns <= at_ns else hook.handled_ns

    cpdef int64_t event_loop_since_ns(self) noexcept:
        """Return when a file of the event loop that is read now had nothing to read yet, ns.

        On uvloop the kernel was asked then, and did not report it; or that wait ended, less the
        longest time that a processor takes to wake. Other event loops wait by themselves: it may
        have come since an alarm was handled.
        """
        self.hook.loop_bounded_reads += 1
        return self.loop_empty_ns if self.loop_fd >= 0 else self.hook.handled_ns

    cdef int learn_wake(self, int64_t at_ns, int64_t read_ns) noexcept:
        """Learn how long a processor takes to wake, by what woke this thread.

        Args:
            at_ns: The stamp of a segment that came alone, or when an alarm was due.
            read_ns: When the thread ran.
        """
        if (
            self.woken_ns - at_ns > self.longest_wake_ns
            and not self.hook.is_sparse
            and read_ns - self.hook.alarm_ns <= STALL_NS
            and self._set_ready()
        ):
            self.longest_wake_ns = max(self.longest_wake_ns, self.ready_ns - at_ns)
        return 0

    cdef bint _may_have_stalled(self, int64_t at_ns) noexcept:
        """Whether this thread may have been stopped between the last question and `at_ns`."""
        cdef SendHook hook = self.hook
        return (
            hook.is_sparse or hook.stalled_ns >= self.asked_ns or at_ns - hook.alarm_ns > STALL_NS
        )

    cdef int64_t _ready_since_ns(self) noexcept:
        """When what woke this thread came at the earliest, once `_set_ready` has said so; 0: not
        known.
        """
        if self.longest_wake_ns == 0:
            return 0
        return self.ready_ns - max(self.longest_wake_ns, self.longest_delay_ns)

    cdef bint _set_ready(self) noexcept:
        """Set `ready_ns` of what is read now; returns whether that is known."""
        cdef int64_t before_ns = self.run_delay_ns
        if self.woken_ns and self.ready_ns == 0 and before_ns >= 0:
            self.run_delay_ns = run_delay_ns(self.schedstat)
            if self.run_delay_ns >= 0:
                self.ready_ns = self.woken_ns - (self.run_delay_ns - before_ns)
        return self.ready_ns != 0

    cdef int _wait(self, void *events, int wait_ms) except -2:
        """Wait for files that can be read, and return their number.

        Args:
            events: Gets them.
            wait_ms: The longest wait, ms; -1: there is none.
        """
        cdef int64_t woken_ns
        cdef int n
        if self.asked_ns - self.delay_asked_ns > DELAY_AGE_NS:  # before: it counts from here
            self.run_delay_ns = run_delay_ns(self.schedstat)
            self.delay_asked_ns = self.asked_ns
        n = epoll_wait(self.fd, <epoll_event *>events, EVENTS_AT_ONCE, 0)
        if n != 0:
            return n
        self.asked_before_ns = self.loop_empty_ns = self.asked_ns
        if wait_ms == 0:
            return 0
        with nogil:
            n = epoll_wait(self.fd, <epoll_event *>events, EVENTS_AT_ONCE, wait_ms)
            woken_ns = now_ns()
        if n > 0:
            self.woken_ns = woken_ns
            if self.asked_ns < self.hook.alarm_ns:
                self.learn_wake(self.hook.alarm_ns, woken_ns)
        return n

    def turn(self):
        """Call the readers of all files that can be read; on uvloop, until the event loop has
        something to do.
        """
        cdef epoll_event[EVENTS_AT_ONCE] events
        cdef bint waits = self.loop_fd >= 0, is_over = False
        cdef int wait_ms, n
        if waits:
            os.eventfd_read(self.turn_fd)
        try:
            while not is_over:
                wait_ms = loop_wait_ms(&self.event_loop) if waits else 0
                self.asked_ns = self.kernel_clock.refresh()
                n = self._wait(events, wait_ms)
                is_over = n <= 0 or self._read(events, n) or wait_ms == 0
        finally:
            if waits and self.fd >= 0:  # a reader may have closed it
                os.eventfd_write(self.turn_fd, 1)

    cdef bint _read(self, void *ready, int n) except -1:
        """Call the readers of n files; returns whether the event loop was one of them."""
        cdef epoll_event *events = <epoll_event *>ready
        cdef Watcher watcher
        cdef bint may_have_more, has_event_loop = False
        cdef int i, fd
        for i in range(n):
            fd = events[i].data.fd
            if fd == self.loop_fd:
                has_event_loop = True
                continue
            watcher = self.watchers[fd] if fd < len(self.watchers) else None
            if watcher is None:  # forgotten since the kernel was asked
                continue
            try:
                may_have_more = watcher.on_readable(watcher.target)
            except Exception as fault:  # the files after this one would not be reported again
                may_have_more = False
                self.hook.on_fault(fault)
            # An end that came with data is behind it, and would not be reported again.
            if may_have_more or events[i].events != EPOLLIN:
                self.look_again(fd)
        if not has_event_loop and n < EVENTS_AT_ONCE:
            self.loop_empty_ns = self.asked_ns
        elif has_event_loop and not self._may_have_stalled(self.woken_ns) and self._set_ready():
            self.loop_empty_ns = max(self.loop_empty_ns, self._ready_since_ns())
        self.woken_ns = self.ready_ns = 0
        # All that had come when the kernel was asked has been read, unless it reported as much as
        # it can.
        self.asked_before_ns = self.asked_ns if n < EVENTS_AT_ONCE else 0
        return has_event_loop
