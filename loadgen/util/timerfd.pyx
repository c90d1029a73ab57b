# cython: language_level=3
"""TimerfdAlarm: an alarm by a Linux timerfd."""
cimport cython
from libc.errno cimport errno
from libc.stdint cimport int64_t

from loadgen.util.method cimport call, method_of

import os

cdef extern from *:
    """
    #include <stdint.h>
    #include <unistd.h>
    #ifdef __linux__
    #include <sys/timerfd.h>

    enum { HAS_TIMERFD = 1 };

    static int loadgen_create_timer(void) {
        return timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    }

    static int loadgen_set_timer(int fd, int64_t at_ns) {
        struct itimerspec spec = {{0, 0}, {at_ns / 1000000000, at_ns % 1000000000}};
        return timerfd_settime(fd, TFD_TIMER_ABSTIME, &spec, NULL);
    }
    #else
    enum { HAS_TIMERFD = 0 };
    static int loadgen_create_timer(void) { return -1; }
    static int loadgen_set_timer(int fd, int64_t at_ns) { return -1; }
    #endif
    """
    enum: HAS_TIMERFD
    int create_timer "loadgen_create_timer"() nogil
    int set_timer "loadgen_set_timer"(int fd, int64_t at_ns) nogil
    ssize_t read_fd "read"(int fd, void *data, size_t size) nogil

is_supported = bool(HAS_TIMERFD)


@cython.final
cdef class TimerfdAlarm:
    """Calls `callback()` at a set time, accurate to microseconds; `clock.AnyAlarm`.

    The timerfd is watched, because uvloop rounds `call_later` to whole milliseconds, and asyncio
    waits in epoll for whole milliseconds. Call `close()` after use.

    Args:
        readers: Watches the timerfd: an event loop, or the read loop of the client.
        callback: Called without arguments.

    Raises:
        OSError: No timer is available, usually for lack of file descriptors.
    """

    def __init__(self, readers, callback):
        self._readers, self._callback = readers, callback
        self._fd = create_timer()
        if self._fd < 0:
            raise OSError(errno, f"timerfd_create: {os.strerror(errno)}")
        try:
            readers.add_reader(self._fd, method_of(self, ring))
        except BaseException:
            os.close(self._fd)
            self._fd = -1
            raise

    cpdef int set(self, int64_t due_ns) except -1:
        """Call back once the clock reaches `due_ns`, which replaces an earlier time."""
        if set_timer(self._fd, max(due_ns, 1)):  # 0 would disarm the timer
            raise OSError(errno, f"timerfd_settime: {os.strerror(errno)}")
        return 0

    def close(self):
        """Cancel the alarm for good and close its file descriptor. It may be closed twice."""
        if self._fd >= 0:
            self._readers.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1


cdef int ring(object target, object nothing) except -1:
    """Read the alarm of a timerfd that has become readable, and call back."""
    cdef TimerfdAlarm alarm = <TimerfdAlarm>target
    cdef int64_t expirations
    # fails where it was set anew since it became readable
    if read_fd(alarm._fd, &expirations, sizeof(expirations)) == sizeof(expirations):
        call(alarm._callback)
    return 0
