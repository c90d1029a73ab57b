# cython: language_level=3
"""KernelClock: converts the kernel's stamps, which are on CLOCK_REALTIME, to CLOCK_MONOTONIC.

Budget per turn of the read loop: one reading of a clock, and three more a thousand times a second;
per stamp one subtraction.
"""
cimport cython
from libc.stdint cimport int64_t

from loadgen.core.c.kernel cimport now_ns, real_ns

cdef enum:
    PAIR_NS = 1000000  # age at which a pair of readings is replaced
    # A pair that is wider is of a slow clock, or this process was interrupted between its readings.
    NARROW_NS = 2000
    ATTEMPTS = 4  # to read a narrow pair
    # by so much the kernel lets CLOCK_REALTIME run fast or slow, so as to correct it without a step
    SLEWED_PPM = 500


@cython.final
cdef class KernelClock:
    """The difference between CLOCK_REALTIME and CLOCK_MONOTONIC, read again and again.

    Each pair of readings is CLOCK_REALTIME between two of CLOCK_MONOTONIC, whose middle counts.
    Where somebody sets CLOCK_REALTIME, or the machine was suspended, the difference jumps: then the
    stamps since the pair before cannot be converted, and `usable` is False until the next pair.

    Attributes:
        usable: Whether stamps can be converted now.
        slack_ns: By how much a converted stamp may be off beyond NARROW_NS; above 0 where reading
            the clock is slow.
        max_width_ns: The greatest distance between the two outer readings of a pair in use: a
            converted stamp is within half of it of the true one.
        steps: Jumps of CLOCK_REALTIME seen.
    """

    cdef int64_t refresh(self) except -1:
        """Replace the pair of readings if it is old; return the time, ns."""
        cdef int64_t at_ns = now_ns(), before_ns, on_real_ns, after_ns
        if self.paired_ns and at_ns - self.paired_ns < PAIR_NS:
            return at_ns
        for _ in range(ATTEMPTS):
            before_ns = now_ns()
            on_real_ns = real_ns()
            after_ns = now_ns()
            if on_real_ns == 0:  # the system has no stamps
                return after_ns
            if self.narrowest_ns == 0 or after_ns - before_ns < self.narrowest_ns:
                self.narrowest_ns = max(1, after_ns - before_ns)
            # Where reading the clock is slow, no pair is narrow.
            if after_ns - before_ns <= max(NARROW_NS, 2 * self.narrowest_ns):
                self.compare(before_ns, on_real_ns, after_ns)
                break
        return after_ns

    cdef int compare(self, int64_t before_ns, int64_t on_real_ns, int64_t after_ns) except -1:
        """Take a new pair of readings, and compare it with the one before."""
        cdef int64_t offset_ns = on_real_ns - before_ns - (after_ns - before_ns) // 2
        cdef int64_t width_ns = after_ns - before_ns
        cdef int64_t slewed_ns = (before_ns - self.paired_ns) * SLEWED_PPM // 1000000
        cdef int64_t jump_ns = offset_ns - self.offset_ns
        cdef int64_t least_ns = slewed_ns + width_ns + self.width_ns  # of a jump that is a step
        self.usable = self.paired_ns == 0 or -least_ns <= jump_ns <= least_ns
        if not self.usable:
            self.steps += 1
        self.offset_ns, self.width_ns, self.paired_ns = offset_ns, width_ns, before_ns
        self.max_width_ns = max(self.max_width_ns, width_ns)
        self.slack_ns = width_ns // 2 if width_ns > NARROW_NS else 0
        return 0

    def observe(self, int64_t before_ns, int64_t on_real_ns, int64_t after_ns):
        """Take a pair of readings from a test."""
        self.compare(before_ns, on_real_ns, after_ns)

    def convert(self, int64_t at_ns):
        """Return a stamp on CLOCK_REALTIME as one on CLOCK_MONOTONIC, ns; None while stamps
        cannot be converted.
        """
        return self.monotonic_ns(at_ns) if self.usable else None
