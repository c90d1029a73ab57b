# cython: language_level=3
"""The C side of an alarm by a Linux timerfd."""
cimport cython
from libc.stdint cimport int64_t


@cython.final
cdef class TimerfdAlarm:
    cdef object _readers, _callback
    cdef int _fd
    cpdef int set(self, int64_t due_ns) except -1


cdef inline int set_alarm(object alarm, int64_t due_ns) except -1:
    """Set an alarm of any kind (`clock.AnyAlarm`)."""
    if type(alarm) is TimerfdAlarm:
        return (<TimerfdAlarm>alarm).set(due_ns)
    alarm.set(due_ns)
    return 0
