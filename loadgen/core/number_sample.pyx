# cython: language_level=3
"""NumberSample: which requests of a run are in a sample of them.

Budget per request: two divisions, once the sample is full.
"""
cimport cython
from libc.stdint cimport int64_t


@cython.final
cdef class NumberSample:
    """Numbers of requests, spread evenly over a run of unknown length: every `of`-th, as long as
    they are few, then each time they are too many every other of them.

    Args:
        of: How many workers share the run, each with every `of`-th number.
        most: How many numbers may be taken at most, at least 1.
        thinned: Called without arguments whenever half of the numbers have left the sample.
    """
    cdef int64_t _of, _step
    cdef Py_ssize_t _most
    cdef object _thinned
    cdef list _taken

    def __init__(self, int64_t of, Py_ssize_t most, thinned):
        if of < 1:
            raise ValueError(of)
        self._of, self._most, self._thinned = of, most, thinned
        self._step, self._taken = 1, []

    cpdef bint wants(self, int64_t index) noexcept:
        """Return whether a number is in the sample, if it was taken."""
        return index // self._of % self._step == 0

    cpdef bint take(self, int64_t index) except -1:
        """Take the number of a request that is sent now; return whether it is in the sample."""
        if not self.wants(index):
            return False
        self._taken.append(index)
        if len(self._taken) > self._most:
            self._step *= 2
            self._taken = [number for number in self._taken if self.wants(number)]
            self._thinned()
        return self.wants(index)
