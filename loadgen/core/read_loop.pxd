# cython: language_level=3
"""The C side of the loop that reads sockets."""
cimport cython
from libc.stdint cimport int64_t

from loadgen.core.c.event_loop cimport EventLoop
from loadgen.core.kernel_clock cimport KernelClock

cdef enum:
    EVENTS_AT_ONCE = 1024  # readable files that the kernel reports in one call
    READ_BYTES = 1 << 18
    DELAY_AGE_NS = 10000000  # age at which the run delay is asked again

cpdef enum:
    STALL_NS = 1000000  # an alarm that is later than this shows a stall of the loop

# What a ReadLoop calls when a file has become readable, with what was given for it to `watch`. It
# returns whether there may be more to read; else it is not called before more has come.
ctypedef int (*OnReadable)(object target) except -1


cdef class SendHook:
    cdef public int64_t due_ns, late_ns, handled_ns, alarm_ns, stalled_ns
    cdef public object callback, on_fault
    cdef public bint is_sparse
    cdef public int64_t reads, tokens, sends, loop_bounded_reads


@cython.final
cdef class Watcher:
    cdef OnReadable on_readable
    cdef object target


@cython.final
cdef class ReadLoop:
    cdef readonly SendHook hook
    cdef readonly KernelClock kernel_clock
    cdef int64_t asked_ns  # before the kernel was asked which files can be read now,
    # and before that: what is read now had not come by then; 0: not known
    cdef int64_t asked_before_ns
    # the last time at which, for certain, no file of the event loop could be read
    cdef int64_t loop_empty_ns
    cdef int64_t longest_delay_ns  # from the stamp of a segment until its socket had it
    cdef int64_t longest_wake_ns  # from a stamp until the thread ran, less its run delay; 0: not known
    # when the wait ended that reported what is read now; 0: it had been there before that wait
    cdef int64_t woken_ns
    cdef int64_t ready_ns  # the same, less the run delay; 0: not computed yet
    cdef int64_t run_delay_ns  # of this thread, when it was asked last; -1: not known
    cdef int64_t delay_asked_ns
    cdef int schedstat  # file of the run delay; -1: there is none
    # whether a read of any server's ever ended between the data of a chunk and its end
    cdef bint splits_chunks
    cdef int fd  # of the epoll set; -1: not open, or there is no epoll
    cdef int loop_fd  # is readable while a file of the event loop is; -1: not known
    cdef int turn_fd  # while it is readable, the event loop calls `turn`
    cdef EventLoop event_loop
    cdef int users
    cdef object loop
    cdef object stamped_socket  # keeps the kernel stamping
    cdef list watchers  # by file descriptor; None: not watched
    cdef char[READ_BYTES] buffer
    cdef bint watch(self, int fd, object target, OnReadable on_readable) except -1
    cdef int forget(self, int fd) except -1
    cdef int look_again(self, int fd) except -1
    cdef int64_t empty_until_ns(self, int64_t at_ns) noexcept
    cdef int64_t ready_since_ns(self, int64_t read_ns, int64_t at_ns) noexcept
    cpdef int64_t event_loop_since_ns(self) noexcept
    cdef bint _may_have_stalled(self, int64_t at_ns) noexcept
    cdef int64_t _ready_since_ns(self) noexcept
    cdef int learn_wake(self, int64_t at_ns, int64_t read_ns) noexcept
    cdef bint _set_ready(self) noexcept
    cdef int _find_event_loop(self) except -2
    cdef int _wait(self, void *events, int wait_ms) except -2
    cdef bint _read(self, void *ready, int n) except -1
