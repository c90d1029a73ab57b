"""The C face of the clock, inlined where it is cimported: there is no extension module behind it."""

from libc.stdint cimport int64_t

cdef extern from *:
    """
    #include <stdint.h>
    #include <time.h>
    static inline int64_t loadgen_now_ns(void) {
    #ifdef __APPLE__  /* Python's is the clock that stands still while the machine sleeps; CLOCK_MONOTONIC goes on */
        return (int64_t)clock_gettime_nsec_np(CLOCK_UPTIME_RAW);
    #else
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    #endif
    }
    """
    # Nanoseconds on the clock of `time.monotonic_ns()`.
    int64_t now_ns "loadgen_now_ns"() noexcept nogil
